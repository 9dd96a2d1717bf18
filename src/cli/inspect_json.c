/* inspect_json.c - the facts of a model file for programs. What does not apply is left out. */
#include <inttypes.h>

#include "base/json.h"
#include "cli/inspect.h"
#include "quant/quant.h"

/* Arrays longer than this are given by type and length alone: a vocabulary is 16 MB. */
enum { MAX_ARRAY = 1100 };

/* ,"key": - or without the comma after an opening bracket. */
static void key(struct buf *b, const char *name)
{
    if (b->n && b->data[b->n - 1] != '{' && b->data[b->n - 1] != '[') buf_putc(b, ',');
    buf_printf(b, "\"%s\":", name);
}

static void put_text(struct buf *b, const char *name, struct str s)
{
    key(b, name);
    json_put_string(b, s);
}

static void put_u64(struct buf *b, const char *name, uint64_t v)
{
    key(b, name);
    buf_printf(b, "%" PRIu64, v);
}

static void next_item(struct buf *b)
{
    if (b->n && b->data[b->n - 1] != '[') buf_putc(b, ',');
}

/* ---- parts ---- */

static void put_files(struct buf *b, const struct inspect *x)
{
    const struct gguf *g = &x->file.gguf;
    key(b, "files");
    buf_putc(b, '[');
    for (uint32_t i = 0; x->is_open && i < g->n_sources; i++) {
        next_item(b);
        buf_putc(b, '{');
        put_text(b, "path", str_of(g->sources[i].name));
        put_u64(b, "bytes", g->sources[i].size);
        buf_putc(b, '}');
    }
    buf_putc(b, ']');
    if (!x->file.from_store) return;
    char name[OLLAMA_MAX_NAME];
    ollama_short_name(&x->file.store.name, name);
    put_text(b, "store_name", str_of(name));
    const struct ollama_layer *l =
        ollama_layer_at(&x->file.store.manifest, OLLAMA_LAYER_PROJECTOR, 0);
    if (l) put_text(b, "projector", str_of(l->path));
}

static void put_config(struct buf *b, const struct config *c)
{
    struct inspect_pattern pattern;
    inspect_layer_pattern(&pattern, c);
    put_u64(b, "context", c->n_ctx);
    put_u64(b, "vocabulary", c->n_vocab);
    key(b, "shape");
    buf_putc(b, '{');
    put_u64(b, "n_layer", c->n_layer);
    put_u64(b, "n_embd", c->n_embd);
    put_u64(b, "n_head", c->n_head);
    put_u64(b, "n_swa", c->n_swa);
    put_u64(b, "n_own", c->n_own);
    put_u64(b, "n_ple", c->n_ple);
    put_u64(b, "n_expert", c->n_expert);
    put_u64(b, "n_expert_used", c->n_expert_used);
    put_u64(b, "n_ff_expert", c->n_ff_expert);
    put_text(b, "pattern", str_of(pattern.unit));
    put_u64(b, "pattern_times", pattern.times);
    key(b, "layers");
    buf_putc(b, '[');
    for (uint32_t il = 0; il < c->n_layer; il++) {
        const struct layer_config *l = &c->layers[il];
        next_item(b);
        buf_printf(b, "{\"swa\":%s", l->swa ? "true" : "false");
        put_u64(b, "n_kv_head", l->n_kv_head);
        put_u64(b, "head_dim", l->head_dim);
        put_u64(b, "n_ff", l->n_ff);
        put_u64(b, "donor", (uint64_t)l->donor);
        buf_putc(b, '}');
    }
    buf_puts(b, "]}");
}

static void put_f32(struct buf *b, const char *name, float v)
{
    key(b, name);
    json_put_f32(b, v);
}

/* `defaults` are the keys that the file does not have. */
static void put_canvas(struct buf *b, const struct inspect *x)
{
    const struct canvas_config *c = &x->config.canvas;
    key(b, "canvas");
    buf_putc(b, '{');
    put_u64(b, "length", c->n_canvas);
    put_u64(b, "steps", c->n_steps);
    put_f32(b, "t_max", c->t_max);
    put_f32(b, "t_min", c->t_min);
    put_f32(b, "entropy_bound", c->entropy_bound);
    put_u64(b, "stability", c->n_stable);
    put_f32(b, "confidence", c->confidence);
    put_u64(b, "n_ff", c->n_ff);
    if (x->runs) put_u64(b, "encoder_scales", x->n_encoder_scales);
    key(b, "defaults");
    buf_putc(b, '[');
    static const char *const keys[] = { KEY_CANVAS_LENGTH,    KEY_CANVAS_STEPS,
                                        KEY_CANVAS_T_MAX,     KEY_CANVAS_T_MIN,
                                        KEY_CANVAS_BOUND,     KEY_CANVAS_STABILITY,
                                        KEY_CANVAS_CONFIDENCE };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!inspect_is_default(x, keys[i])) continue;
        next_item(b);
        json_put_string(b, str_of(keys[i]));
    }
    buf_puts(b, "]}");
}

static void put_sum(struct buf *b, const char *what, const char *name, const struct inspect_sum *s)
{
    if (!s->n_tensors) return;
    next_item(b);
    buf_putc(b, '{');
    put_text(b, what, str_of(name));
    put_u64(b, "tensors", s->n_tensors);
    put_u64(b, "parameters", s->n_params);
    put_u64(b, "bytes", s->n_bytes);
    buf_putc(b, '}');
}

static void put_weights(struct buf *b, const struct inspect *x)
{
    put_u64(b, "parameters", x->all.n_params);
    put_u64(b, "tensors", x->all.n_tensors);
    put_u64(b, "bytes", x->all.n_bytes);
    put_u64(b, "header_bytes", x->file.gguf.header_bytes);
    key(b, "weights");
    buf_putc(b, '[');
    for (int r = 0; r < N_ROLE; r++)
        put_sum(b, "role", inspect_role_name((enum inspect_role)r), &x->roles[r]);
    buf_putc(b, ']');
    key(b, "formats");
    buf_putc(b, '[');
    for (uint32_t t = 0; t < INSPECT_N_TYPES; t++)
        put_sum(b, "format", quant_type_name(t), &x->types[t]);
    buf_putc(b, ']');
    key(b, "unknown");
    buf_putc(b, '[');
    const struct gguf *g = &x->file.gguf;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        if (inspect_role_of(g->tensors[i].name) != ROLE_UNKNOWN) continue;
        next_item(b);
        json_put_string(b, g->tensors[i].name);
    }
    buf_putc(b, ']');
}

static void put_adapter(struct buf *b, const struct adapter *a)
{
    key(b, "alpha");
    json_put_f32(b, a->alpha);
    key(b, "targets");
    buf_putc(b, '[');
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct adapter_target *t = &a->targets[i];
        next_item(b);
        buf_putc(b, '{');
        put_text(b, "name", str_of(t->name));
        put_u64(b, "rank", t->rank);
        put_u64(b, "n_in", t->n_in);
        put_u64(b, "n_out", t->n_out);
        put_u64(b, "n_expert", t->n_expert);
        key(b, "scale");
        json_put_f32(b, t->scale);
        if (t->pass != ADAPTER_BOTH)
            put_text(b, "pass", str_of(t->pass == ADAPTER_ENCODER ? "encoder" : "decoder"));
        buf_putc(b, '}');
    }
    buf_putc(b, ']');
    key(b, "notes");
    buf_putc(b, '[');
    for (size_t i = 0; i < a->n_warnings; i++) {
        next_item(b);
        json_put_string(b, str_of(a->warnings[i]));
    }
    buf_putc(b, ']');
}

static void put_verdict(struct buf *b, const struct inspect *x)
{
    key(b, "kv_cache");
    buf_putc(b, '[');
    for (int i = 0; i < 2; i++) {
        if (!x->has_config || !x->kv_context[i]) continue;
        next_item(b);
        buf_printf(b, "{\"context\":%u,\"bytes\":%" PRIu64 "}", x->kv_context[i], x->kv_bytes[i]);
    }
    buf_putc(b, ']');
    key(b, "runs");
    buf_puts(b, x->runs ? "true" : "false");
    if (x->runs) put_u64(b, "bytes_a_token", x->bytes_a_token);
    if (x->runs && x->kind == INSPECT_DIFFUSION) put_u64(b, "bytes_a_step", x->bytes_a_step);
    if (!x->runs) put_text(b, "why", str_of(x->why.text));
}

/* ---- lists ---- */

static void put_element(struct buf *b, const struct gguf_kv *kv, uint64_t i)
{
    int64_t whole = 0;
    double v = 0;
    if (kv->elem == GGUF_BOOL) {
        gguf_at_i64(kv, i, &whole);
        buf_puts(b, whole ? "true" : "false");
    } else if (kv->elem == GGUF_F32 || kv->elem == GGUF_F64) {
        gguf_at_f64(kv, i, &v);
        if (kv->elem == GGUF_F32) json_put_f32(b, (float)v);
        else json_put_f64(b, v);
    } else if (gguf_at_i64(kv, i, &whole)) {
        buf_printf(b, "%" PRId64, whole);
    } else { /* past 2^63, or an array of arrays */
        buf_puts(b, "null");
    }
}

static void put_value(struct buf *b, const struct gguf_kv *kv)
{
    uint64_t cursor = 0;
    struct str s = { 0 };
    bool list = kv->type == GGUF_ARRAY;
    if (list && kv->n > MAX_ARRAY) {
        buf_printf(b, "{\"type\":\"%s\",\"n\":%" PRIu64 "}", gguf_type_name(kv->elem), kv->n);
        return;
    }
    if (list) buf_putc(b, '[');
    for (uint64_t i = 0; i < kv->n; i++) {
        if (list) next_item(b);
        if (kv->elem != GGUF_STRING) put_element(b, kv, i);
        else json_put_string(b, gguf_next_str(kv, &cursor, &s) ? s : str_of(""));
    }
    if (list) buf_putc(b, ']');
}

static void put_keys(struct buf *b, const struct gguf *g)
{
    key(b, "keys");
    buf_putc(b, '{');
    for (uint64_t i = 0; i < g->n_kv; i++) {
        if (i) buf_putc(b, ',');
        json_put_string(b, g->kvs[i].key);
        buf_putc(b, ':');
        put_value(b, &g->kvs[i]);
    }
    buf_putc(b, '}');
}

static void put_tensors(struct buf *b, const struct gguf *g)
{
    key(b, "tensor_list");
    buf_putc(b, '[');
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        next_item(b);
        buf_putc(b, '{');
        put_text(b, "name", t->name);
        put_text(b, "format", str_of(quant_type_name(t->type)));
        key(b, "shape");
        buf_putc(b, '[');
        for (uint32_t k = 0; k < t->n_dims; k++)
            buf_printf(b, "%s%" PRIu64, k ? "," : "", t->ne[k]);
        buf_putc(b, ']');
        put_u64(b, "shard", t->shard);
        put_u64(b, "offset", t->offset);
        put_u64(b, "bytes", t->n_bytes);
        put_text(b, "role", str_of(inspect_role_name(inspect_role_of(t->name))));
        buf_putc(b, '}');
    }
    buf_putc(b, ']');
}

void inspect_put_json(struct buf *b, const struct inspect *x, struct inspect_wish wish)
{
    buf_putc(b, '{');
    put_text(b, "model", str_of(x->model));
    put_files(b, x);
    put_text(b, "kind", str_of(inspect_kind_name(x->kind)));
    if (x->arch.p) put_text(b, "architecture", x->arch);
    if (x->name.p) put_text(b, "name", x->name);
    if (x->file_type) put_text(b, "file_type", str_of(x->file_type));
    if (x->has_config) put_config(b, &x->config);
    if (x->has_config && x->kind == INSPECT_DIFFUSION) put_canvas(b, x);
    if (x->kind == INSPECT_ADAPTER) {
        put_adapter(b, &x->adapter);
    } else {
        put_weights(b, x);
        put_verdict(b, x);
    }
    if (wish.keys && x->is_open) put_keys(b, &x->file.gguf);
    if (wish.tensors && x->is_open) put_tensors(b, &x->file.gguf);
    buf_puts(b, "}\n");
}
