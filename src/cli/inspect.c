/* inspect.c - what is in an opened file: sorts its tensors, and asks the engine whether it would
 * run. It reads only headers and the small vectors that loading reads. Opening is in
 * inspect_cmd.c. */
#include "cli/inspect.h"

#include "cli/quant_mix.h"
#include "io/quote.h"
#include "model/kv.h"
#include "model/weights.h"
#include "ops/ops_cpu.h"
#include "text/tokenizer.h"

/* The context that sessions have by default, and their batch. */
enum { USUAL_CONTEXT = 4096, USUAL_BATCH = 256 };

static const char *const kind_names[] = {
    [INSPECT_TEXT] = "text",           [INSPECT_SINGLE] = "text and towers",
    [INSPECT_DIFFUSION] = "diffusion", [INSPECT_VOCABULARY] = "vocabulary",
    [INSPECT_MMPROJ] = "mmproj",       [INSPECT_ADAPTER] = "adapter",
    [INSPECT_OTHER] = "other",
};

static const char *const role_names[N_ROLE] = {
    [ROLE_EMBEDDING] = "embeddings",
    [ROLE_PLE] = "per-layer embeddings",
    [ROLE_ATTENTION] = "attention",
    [ROLE_FFN] = "feed-forward",
    [ROLE_EXPERTS] = "experts",
    [ROLE_PLE_PROJ] = "per-layer projections",
    [ROLE_SELF_COND] = "self-conditioning",
    [ROLE_SMALL] = "norms and scalars",
    [ROLE_VISION] = "vision tower",
    [ROLE_AUDIO] = "audio tower",
    [ROLE_UNKNOWN] = "unknown",
};

const char *inspect_kind_name(enum inspect_kind k)
{
    return kind_names[k];
}

const char *inspect_role_name(enum inspect_role r)
{
    return role_names[r];
}

/* ---- tensor names ---- */

static const char *const global_names[] = {
#define GLOBAL(field, name, in, out, n, need, adapt) name,
#define LAYER(...)
#include "model/weights.def"
#undef GLOBAL
#undef LAYER
    "self_cond_norm.weight", /* other converters' name of self_cond_pre_norm.weight */
};

static const char *const layer_names[] = {
#define GLOBAL(...)
#define LAYER(field, name, in, out, n, need, adapt) name,
#include "model/weights.def"
#undef GLOBAL
#undef LAYER
    "ffn_gate_inp.per_expert_scale", /* old spelling of ffn_down_exps.scale */
};

static bool is_listed(struct str name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(name, list[i])) return true;
    return false;
}

/* What follows "blk.N."; empty for every other name. */
static struct str layer_part(struct str name)
{
    size_t i = 4;
    if (!str_starts(name, "blk.")) return (struct str) { 0 };
    while (i < name.n && name.p[i] >= '0' && name.p[i] <= '9') i++;
    if (i == 4 || i == name.n || name.p[i] != '.') return (struct str) { 0 };
    return (struct str) { name.p + i + 1, name.n - i - 1 };
}

/* The matrices of its feed-forward; its norm is as small as any. */
static bool is_self_conditioning(struct str name)
{
    return str_is(name, "self_cond_gate.weight") || str_is(name, "self_cond_up.weight") ||
           str_is(name, "self_cond_down.weight");
}

enum inspect_role inspect_role_of(struct str name)
{
    if (str_starts(name, "a.") || str_starts(name, "mm.a.")) return ROLE_AUDIO;
    if (str_starts(name, "v.") || str_starts(name, "mm.")) return ROLE_VISION;
    if (str_is(name, "token_embd.weight") || str_is(name, "output.weight")) return ROLE_EMBEDDING;
    if (str_is(name, "per_layer_token_embd.weight")) return ROLE_PLE;
    if (str_is(name, "per_layer_model_proj.weight")) return ROLE_PLE_PROJ;
    if (is_self_conditioning(name)) return ROLE_SELF_COND;
    if (is_listed(name, global_names, sizeof global_names / sizeof *global_names))
        return ROLE_SMALL;
    struct str part = layer_part(name);
    if (!is_listed(part, layer_names, sizeof layer_names / sizeof *layer_names))
        return ROLE_UNKNOWN;
    if (str_ends(part, "_exps.weight") || str_starts(part, "ffn_gate_inp.") ||
        str_is(part, "ffn_down_exps.scale"))
        return ROLE_EXPERTS;
    if (str_ends(part, "_norm.weight")) return ROLE_SMALL;
    if (str_starts(part, "attn_")) return ROLE_ATTENTION;
    if (str_starts(part, "ffn_")) return ROLE_FFN;
    if (str_is(part, "inp_gate.weight") || str_is(part, "proj.weight")) return ROLE_PLE_PROJ;
    return ROLE_SMALL;
}

/* ---- facts ---- */

static void add_tensor(struct inspect_sum *s, const struct gguf_tensor *t)
{
    s->n_tensors++;
    s->n_params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    s->n_bytes += t->n_bytes;
}

static void sum_tensors(struct inspect *x)
{
    const struct gguf *g = &x->file.gguf;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        add_tensor(&x->all, t);
        add_tensor(&x->roles[inspect_role_of(t->name)], t);
        if (t->type < INSPECT_N_TYPES) add_tensor(&x->types[t->type], t);
    }
}

static enum inspect_kind find_kind(const struct inspect *x)
{
    const struct gguf *g = &x->file.gguf;
    struct str type = { 0 }, tokenizer = { 0 };
    gguf_get_str(g, "general.type", &type);
    gguf_get_str(g, "tokenizer.ggml.model", &tokenizer);
    if (str_is(type, "adapter")) return INSPECT_ADAPTER;
    if (str_is(type, "mmproj") || str_is(x->arch, "clip")) return INSPECT_MMPROJ;
    if (!g->n_tensors && gguf_find(g, "tokenizer.ggml.tokens")) return INSPECT_VOCABULARY;
    if (str_is(x->arch, "diffusion-gemma")) return INSPECT_DIFFUSION;
    if (!str_is(x->arch, "gemma4")) return INSPECT_OTHER;
    bool towers = x->roles[ROLE_VISION].n_tensors || x->roles[ROLE_AUDIO].n_tensors;
    return towers || str_is(tokenizer, "llama") ? INSPECT_SINGLE : INSPECT_TEXT;
}

static void read_config(struct inspect *x)
{
    if (config_read(&x->config, &x->file.gguf, &x->why)) return;
    const struct config *c = &x->config;
    x->has_config = true;
    x->kv_context[0] = c->n_ctx < USUAL_CONTEXT ? c->n_ctx : USUAL_CONTEXT;
    x->kv_context[1] = c->n_ctx > USUAL_CONTEXT ? c->n_ctx : 0;
    for (int i = 0; i < 2; i++)
        if (x->kv_context[i]) x->kv_bytes[i] = kv_bytes(c, x->kv_context[i], USUAL_BATCH, false);
}

/* Would the engine take it? The answer is the engine's own. */
static void try_loading(struct inspect *x)
{
    struct backend be = { 0 };
    struct model m = { 0 };
    struct tokenizer *t = NULL;
    enum bz_status st = cpu_open(&be, false, 1, &x->why);
    if (st == BZ_OK) {
        st = model_load(&m, &x->file.gguf, &be, &x->why);
        x->bytes_a_token = m.bytes_a_token;
        if (x->kind == INSPECT_DIFFUSION) x->bytes_a_step = m.n_bytes;
        for (uint32_t il = 0; st == BZ_OK && il < m.config.n_layer; il++)
            x->n_encoder_scales += weight_exists(&m.layers[il].enc_out_scale);
        if (st == BZ_OK) model_free(&m, &be);
    }
    cpu_close(&be);
    if (st == BZ_OK) st = tokenizer_open(&t, &x->file.gguf, &x->why);
    tokenizer_close(t);
    x->runs = st == BZ_OK;
}

static enum bz_status collect(struct inspect *x, struct bz_err *err)
{
    const struct gguf *g = &x->file.gguf;
    uint64_t file_type;
    gguf_get_str(g, "general.architecture", &x->arch);
    gguf_get_str(g, "general.name", &x->name);
    if (gguf_get_u64(g, "general.file_type", &file_type))
        x->file_type = mix_file_type_name(file_type);
    sum_tensors(x);
    x->kind = find_kind(x);
    switch (x->kind) {
    case INSPECT_TEXT:
    case INSPECT_SINGLE:
    case INSPECT_DIFFUSION:
        read_config(x);
        if (x->has_config) try_loading(x);
        return BZ_OK;
    case INSPECT_ADAPTER: return adapter_open_gguf(&x->adapter, g, err);
    case INSPECT_VOCABULARY:
        fail(&x->why, BZ_ERR_UNSUPPORTED, "it has a vocabulary but no tensors; it can tokenize");
        return BZ_OK;
    case INSPECT_MMPROJ:
        fail(&x->why, BZ_ERR_UNSUPPORTED, "it has towers but no text model");
        return BZ_OK;
    case INSPECT_OTHER:
        fail(&x->why, BZ_ERR_UNSUPPORTED,
             "its architecture is \"%s\"; this build runs gemma4 and diffusion-gemma",
             quote(x->arch).z);
        return BZ_OK;
    }
    return BZ_OK;
}

enum bz_status inspect_file(struct inspect *out, struct located *file, const char *model,
                            struct bz_err *err)
{
    struct inspect x = { .model = model, .file = *file, .is_open = true };
    enum bz_status st = collect(&x, err);
    if (st) {
        inspect_close(&x);
        return st;
    }
    *out = x;
    return BZ_OK;
}

void inspect_peft(struct inspect *out, struct adapter *adapter, const char *model)
{
    *out = (struct inspect) { .model = model, .kind = INSPECT_ADAPTER, .adapter = *adapter };
}

void inspect_close(struct inspect *x)
{
    adapter_close(&x->adapter);
    config_free(&x->config);
    if (x->is_open) locate_close(&x->file);
    *x = (struct inspect) { 0 };
}

void inspect_layer_pattern(struct inspect_pattern *out, const struct config *c)
{
    char *unit = out->unit;
    uint32_t n = c->n_layer, period = 1;
    for (uint32_t il = 0; il < n; il++) unit[il] = c->layers[il].swa ? 'S' : 'F';
    for (; period < n; period++) {
        bool repeats = n % period == 0;
        for (uint32_t il = period; il < n && repeats; il++) repeats = unit[il] == unit[il - period];
        if (repeats) break;
    }
    unit[period] = '\0';
    out->times = n / period;
}

bool inspect_is_default(const struct inspect *x, const char *key)
{
    return !gguf_find(&x->file.gguf, key);
}
