/* quant_mix.h - which format each tensor of a file gets: the recipes of llama.cpp's quantiser.
 *
 * A mix is a name such as Q4_K_M. Most matrices get its main format. The tensors where coarse
 * weights hurt most (the embedding tables, some value and down projections) get more bits. Vectors,
 * the router and everything of a tower keep their format. `synth` and `quantize` both ask here.
 */
#ifndef BEZEL_CLI_QUANT_MIX_H
#define BEZEL_CLI_QUANT_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "model/config.h"
#include "quant/quant.h"

enum mix_id {
    MIX_F32,
    MIX_F16,
    MIX_BF16,
    MIX_Q4_0,
    MIX_Q8_0,
    MIX_Q4_K_M,
    MIX_Q5_K_M,
    MIX_Q6_K,
    N_MIX,
};

/* Every name, for help texts. */
#define MIX_NAMES "q4_k_m, q5_k_m, q6_k, q8_0, q4_0, f16, bf16, f32"

/* By name in either case; false when there is no such mix. */
bool mix_find(const char *name, enum mix_id *out);
const char *mix_name(enum mix_id id);
uint32_t mix_file_type(enum mix_id id); /* general.file_type */

/* The name of any published general.file_type; NULL when it is not known. */
const char *mix_file_type_name(uint64_t file_type);

/* What the rules need to know of the whole file. */
struct mix {
    enum mix_id id;
    bool ollama;       /* as Ollama's own converter: see mix_type */
    uint32_t n_layer;  /* text layers seen */
    uint32_t n_attn_v; /* value projections in the file, those of towers included */
    bool has_v[MAX_LAYERS];
};

/* Show every tensor of the file once, in any order, before the first mix_type. */
void mix_add(struct mix *m, struct str name);

/* The GGUF type of a tensor whose type is `now`: `now` itself when the mix leaves it alone. */
uint32_t mix_type(const struct mix *m, struct str name, uint32_t n_dims, const uint64_t *ne,
                  uint32_t now);

#endif
