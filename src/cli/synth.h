/* synth.h - made-up models: the shape, tensor mix and metadata of a real one, random weights.
 *
 * Benchmarks need full-size files and tests need tiny ones; neither needs a trained model. Three
 * parts: synth_shapes.c says what a member of the family looks like and plans its tensors (with
 * synth_towers.c for images and sound), synth_fill.c makes the bytes, synth.c writes the file.
 */
#ifndef BEZEL_CLI_SYNTH_H
#define BEZEL_CLI_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/quant_mix.h"
#include "io/gguf_write.h"

/* A vision tower of n_layer blocks, and a sound tower where a_layer is not 0. */
struct synth_tower {
    uint32_t n_layer, n_embd, n_ff, head_dim, n_pos;
    bool clamps; /* linears with limits on their input and output; otherwise a standardised end */
    uint32_t a_layer, a_embd, a_ff, a_head_dim, a_out;
};

/* A member of the family as numbers. */
struct synth_size {
    const char *name; /* as the command line says it */
    const char *label;
    uint32_t n_layer, n_embd, n_head;
    uint32_t n_kv_swa, n_kv_global; /* key heads of a layer */
    uint32_t dim_swa, dim_global;   /* of a head */
    uint32_t period;                /* every period-th layer is global */
    uint32_t n_swa, n_ctx, n_vocab; /* window, context */
    uint32_t n_ff, n_ff_shared;     /* width where a layer owns its keys, and where it does not */
    uint32_t n_shared;              /* layers at the end that read another one's keys */
    uint32_t n_ple;                 /* width of a per-layer embedding */
    uint32_t n_expert, n_expert_used, n_ff_expert;
    bool v_is_k;                     /* global layers have no value projection */
    bool old_experts;                /* gate and up apart, the old name of the experts' scale */
    uint32_t n_canvas;               /* tokens of a diffusion model's canvas; 0: it has none */
    const struct synth_tower *tower; /* NULL: never published in one file with its towers */
};

const struct synth_size *synth_size_find(const char *name); /* NULL: there is none */
const struct synth_size *synth_size_at(size_t i);           /* NULL past the last */

static inline bool synth_is_swa(const struct synth_size *s, uint32_t il)
{
    return (il + 1) % s->period != 0;
}

/* One tensor to be. Its weights have this mean and this standard deviation. */
struct synth_tensor {
    char name[56];
    uint32_t type, n_dims;
    uint64_t ne[4];
    uint64_t n_weights, n_bytes;
    float mean, std;
    bool is_rope; /* not random: ones, then 1e30 */
};

struct synth_options {
    const struct synth_size *size;
    enum mix_id mix;
    bool ollama; /* one file with towers, as Ollama's own converter makes it */
    /* Of a diffusion model: the dialect whose layers have one scale for both passes, and whose
     * self-conditioning norm has another name; without the keys that have defaults. */
    bool one_scale, few_keys;
    uint64_t seed;
    uint32_t n_ctx, n_vocab; /* 0: the size's own */
    bool hollow;             /* matrices are zeros, which take no room on the disk */
};

/* All tensors in file order. */
struct synth_plan {
    struct synth_options options; /* with n_ctx and n_vocab settled */
    struct synth_tensor *tensors;
    size_t n, cap;
    uint64_t n_params, n_bytes; /* n_bytes: data as it lies in the file, padding included */
    bool failed;                /* memory was short */
};

/* On failure *out is untouched. */
enum bz_status synth_plan_make(struct synth_plan *out, const struct synth_options *options,
                               struct bz_err *err);
void synth_plan_free(struct synth_plan *p);

/* Adds one tensor, whose type the mix may change later; NULL when memory is short (and then p has
 * failed). For the two files that plan. */
struct synth_tensor *synth_plan_add(struct synth_plan *p, uint32_t type, const uint64_t ne[4],
                                    float mean, float std, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
void synth_plan_towers(struct synth_plan *p); /* synth_towers.c */

/* Weights made in one go. A chunk's bytes depend on seed, name and number alone. */
enum { SYNTH_CHUNK = 1 << 21 };

/* Chunk number i of a tensor into dst, which has room for 4 * SYNTH_CHUNK bytes; returns how many
 * bytes it has (0 past the last chunk). */
size_t synth_fill(const struct synth_tensor *t, uint64_t seed, uint64_t i, void *dst);

/* Called now and then with the bytes done so far. */
typedef void (*synth_progress)(void *ctx, uint64_t done, uint64_t total);

/* Make the file; progress may be NULL. On failure nothing is left behind. */
enum bz_status synth_write(const struct synth_plan *p, const char *path, synth_progress progress,
                           void *ctx, struct bz_err *err);

#endif
