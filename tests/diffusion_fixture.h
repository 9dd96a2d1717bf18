/* diffusion_fixture.h - a small diffusion model: one of the golden ones under another name, with
 * random self-conditioning and scales of its own for the encoder.
 */
#ifndef BEZEL_TESTS_DIFFUSION_FIXTURE_H
#define BEZEL_TESTS_DIFFUSION_FIXTURE_H

#include "model_fixture.h"

enum { SELF_WIDTH = 44, MAX_LAYERS_HERE = 16 };

struct diffusion_edit {
    uint32_t n_canvas;
    uint32_t n_context; /* 0: as it is */
    const char *drop;   /* this tensor is left out; or NULL */
    bool other_dialect; /* the other name of the norm, and no scales of the encoder */
    bool same_scales;   /* the encoder's scales are the canvas's */
    bool plain;         /* no self-conditioning: its matrices are zeros */
    const char *key[4]; /* further numbers of the metadata; "diffusion.eb_t..." are floats */
    double number[4];
};

/* What the copy has beside the tensors of the model it is made of. */
struct extra {
    char name[64];
    uint64_t ne[2];
    float size, mean;
};

static inline void add_extra(struct extra *list, size_t *n, const struct diffusion_edit *edit,
                             const char *name, uint64_t cols, uint64_t rows, float size, float mean)
{
    if (edit->drop && strcmp(edit->drop, name) == 0) return;
    snprintf(list[*n].name, sizeof list->name, "%s", name);
    list[*n].ne[0] = cols;
    list[*n].ne[1] = rows;
    list[*n].size = size;
    list[*n].mean = mean;
    ++*n;
}

static inline void put_renamed(struct gguf_writer *w, const struct gguf_kv *kv)
{
    char name[128];
    struct gguf_kv copy = *kv;
    if (str_starts(kv->key, "gemma4.")) {
        snprintf(name, sizeof name, "diffusion-gemma%.*s", (int)kv->key.n - 6, kv->key.p + 6);
        copy.key = str_of(name);
    }
    gguf_put_kv(w, &copy);
}

static inline void put_metadata(struct gguf_writer *w, const struct gguf *g,
                                const struct diffusion_edit *edit)
{
    gguf_put_str(w, "general.architecture", str_of("diffusion-gemma"));
    for (uint64_t i = 0; i < g->n_kv; i++) {
        bool replaced = str_is(g->kvs[i].key, "general.architecture");
        replaced = replaced || (edit->n_context && str_is(g->kvs[i].key, "gemma4.context_length"));
        if (!replaced) put_renamed(w, &g->kvs[i]);
    }
    if (edit->n_context) gguf_put_u32(w, "diffusion-gemma.context_length", edit->n_context);
    gguf_put_u32(w, "diffusion.canvas_length", edit->n_canvas);
    for (int i = 0; i < 4 && edit->key[i]; i++) {
        bool whole = strstr(edit->key[i], "steps") || strstr(edit->key[i], "stab");
        if (strstr(edit->key[i], "shift")) gguf_put_bool(w, edit->key[i], edit->number[i] != 0);
        else if (whole) gguf_put_u32(w, edit->key[i], (uint32_t)edit->number[i]);
        else gguf_put_f32(w, edit->key[i], (float)edit->number[i]);
    }
}

static inline size_t list_extras(struct extra *list, const struct gguf *g,
                                 const struct diffusion_edit *edit)
{
    uint64_t n_layer = 0, d = gguf_tensor_find(g, "output_norm.weight")->ne[0];
    float size = edit->plain ? 0 : 0.1f;
    char name[64];
    size_t n = 0;
    CHECK(gguf_get_u64(g, "gemma4.block_count", &n_layer) && n_layer <= MAX_LAYERS_HERE);
    add_extra(list, &n, edit,
              edit->other_dialect ? "self_cond_norm.weight" : "self_cond_pre_norm.weight", d, 1,
              0.3f, 1);
    add_extra(list, &n, edit, "self_cond_gate.weight", d, SELF_WIDTH, size, 0);
    add_extra(list, &n, edit, "self_cond_up.weight", d, SELF_WIDTH, size, 0);
    add_extra(list, &n, edit, "self_cond_down.weight", SELF_WIDTH, d, size, 0);
    for (uint64_t il = 0; il < n_layer && !edit->other_dialect && !edit->same_scales; il++) {
        snprintf(name, sizeof name, "blk.%u.enc_layer_output_scale.weight", (unsigned)il);
        add_extra(list, &n, edit, name, 1, 1, 0.2f, 0.9f);
    }
    return n;
}

static inline void write_diffusion(const char *to, const char *from,
                                   const struct diffusion_edit *edit)
{
    struct gguf g = { 0 };
    struct gguf_writer *w = NULL;
    struct bz_err err = { "" };
    struct extra extras[MAX_LAYERS_HERE + 8];
    struct rng rng = { 77 };
    CHECK(gguf_open_file(&g, from, &err) == BZ_OK && gguf_writer_open(&w, to, &err) == BZ_OK);
    if (!w) exit(1);
    size_t n_extra = list_extras(extras, &g, edit);
    put_metadata(w, &g, edit);
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", STR_ARG(g.tensors[i].name));
        gguf_put_tensor(w, name, g.tensors[i].type, g.tensors[i].n_dims, g.tensors[i].ne);
    }
    for (size_t i = 0; i < n_extra; i++)
        gguf_put_tensor(w, extras[i].name, QUANT_F32, extras[i].ne[1] > 1 ? 2 : 1, extras[i].ne);
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        const struct gguf_tensor *t = &g.tensors[i];
        uint8_t *bytes = malloc(t->n_bytes);
        CHECK(source_read(&g.sources[0], t->offset, bytes, t->n_bytes, NULL) == BZ_OK);
        gguf_put_data(w, bytes, t->n_bytes);
        free(bytes);
    }
    for (size_t i = 0; i < n_extra; i++)
        for (uint64_t k = 0; k < extras[i].ne[0] * extras[i].ne[1]; k++) {
            float u = 2 * rng_unit(rng_next(&rng)) - 1, v = extras[i].mean + extras[i].size * u;
            gguf_put_data(w, &v, sizeof v);
        }
    CHECK_MSG(gguf_writer_finish(w, &err) == BZ_OK, "%s", err.text);
    gguf_close(&g);
}

#endif
