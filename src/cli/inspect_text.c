/* inspect_text.c - the facts of a model file for people. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/inspect.h"
#include "io/quote.h"
#include "quant/quant.h"

/* 1234567 as "1,234,567". */
struct grouped {
    char z[32];
};

static struct grouped grouped(uint64_t v)
{
    struct grouped out = { "" };
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, v);
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) out.z[at++] = ',';
        out.z[at++] = digits[i];
    }
    return out;
}

/* "3.41 GB": decimal, as disks and downloads are counted. */
static struct grouped bytes(uint64_t n)
{
    static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
    struct grouped out;
    double v = (double)n;
    size_t u = 0;
    for (; v >= 1000 && u < 4; u++) v /= 1000;
    snprintf(out.z, sizeof out.z, u ? "%.2f %s" : "%.0f %s", v, units[u]);
    return out;
}

__attribute__((format(printf, 3, 4))) static void line(struct buf *b, const char *what,
                                                       const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_printf(b, "%-16s %s\n", what, text);
}

/* ---- parts ---- */

static const char *kind_sentence(const struct inspect *x)
{
    switch (x->kind) {
    case INSPECT_TEXT: return "Gemma 4 text model (split: towers would be in an mmproj file)";
    case INSPECT_SINGLE: return "Gemma 4 text model with its towers in one file (Ollama)";
    case INSPECT_DIFFUSION: return "Gemma 4 diffusion model: it denoises a canvas of tokens";
    case INSPECT_VOCABULARY: return "vocabulary only";
    case INSPECT_MMPROJ: return "towers only (mmproj)";
    case INSPECT_ADAPTER: return "LoRA adapter";
    case INSPECT_OTHER: return "a model of another architecture";
    }
    return "";
}

static void put_files(struct buf *b, const struct inspect *x)
{
    const struct gguf *g = &x->file.gguf;
    if (!x->is_open) {
        line(b, "file", "%s", x->model);
        return;
    }
    if (x->file.from_store) {
        char name[OLLAMA_MAX_NAME];
        ollama_short_name(&x->file.store.name, name);
        line(b, "model", "%s", name);
    }
    for (uint32_t i = 0; i < g->n_sources; i++)
        line(b, "file", "%s (%s)", g->sources[i].name, bytes(g->sources[i].size).z);
    if (!x->file.from_store) return;
    static const struct {
        enum ollama_kind kind;
        const char *name;
    } others[] = { { OLLAMA_LAYER_PROJECTOR, "projector" },
                   { OLLAMA_LAYER_ADAPTER, "adapter" },
                   { OLLAMA_LAYER_DRAFT, "drafter" } };
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const struct ollama_layer *l;
        for (size_t i = 0; (l = ollama_layer_at(&x->file.store.manifest, others[k].kind, i)); i++)
            line(b, others[k].name, "%s (%s)", l->path, bytes(l->size).z);
    }
}

static void put_layer_type(struct buf *b, const struct config *c, bool swa)
{
    uint32_t n = 0, n_kv = 0, dim = 0;
    char window[48] = "";
    for (uint32_t il = 0; il < c->n_layer; il++) {
        if (c->layers[il].swa != swa) continue;
        n++;
        n_kv = c->layers[il].n_kv_head;
        dim = c->layers[il].head_dim;
    }
    if (!n) return;
    if (swa) snprintf(window, sizeof window, "window of %u, ", c->n_swa);
    line(b, swa ? "  sliding" : "  global", "%u layers, %s%u key head%s of %u", n, window, n_kv,
         n_kv == 1 ? "" : "s", dim);
}

/* Runs of layers with the same width. */
static void put_widths(struct buf *b, const struct config *c)
{
    struct buf text = { 0 };
    for (uint32_t first = 0, il; first < c->n_layer; first = il) {
        for (il = first; il < c->n_layer && c->layers[il].n_ff == c->layers[first].n_ff;) il++;
        buf_printf(&text, "%s%u", first ? ", " : "", c->layers[first].n_ff);
        if (il - first < c->n_layer) buf_printf(&text, " (layers %u-%u)", first, il - 1);
    }
    line(b, "  feed-forward", "%s wide", text.data ? text.data : "");
    buf_free(&text);
}

static void put_layers(struct buf *b, const struct config *c)
{
    struct inspect_pattern pattern;
    inspect_layer_pattern(&pattern, c);
    line(b, "context", "%s tokens, vocabulary %s", grouped(c->n_ctx).z, grouped(c->n_vocab).z);
    line(b, "layers", "%u, %u wide, %u heads: %s x %u", c->n_layer, c->n_embd, c->n_head,
         pattern.unit, pattern.times);
    put_layer_type(b, c, true);
    put_layer_type(b, c, false);
    if (c->n_own < c->n_layer)
        line(b, "  shared keys", "layers %u-%u read those of layer %u (sliding) or %u (global)",
             c->n_own, c->n_layer - 1, c->n_own - 2, c->n_own - 1);
    put_widths(b, c);
    if (c->n_expert)
        line(b, "  experts", "%u, %u used, %u wide", c->n_expert, c->n_expert_used, c->n_ff_expert);
    if (c->n_ple) line(b, "  per layer", "embeddings of %u", c->n_ple);
}

/* Of a number of a canvas: " (default)" where the file does not have its key. */
static const char *mark(const struct inspect *x, const char *key)
{
    return inspect_is_default(x, key) ? " (default)" : "";
}

/* How a canvas is denoised where the caller does not say. */
static void put_canvas(struct buf *b, const struct inspect *x)
{
    const struct canvas_config *c = &x->config.canvas;
    line(b, "canvas", "%u tokens%s", c->n_canvas, mark(x, KEY_CANVAS_LENGTH));
    line(b, "  steps", "%u at most%s", c->n_steps, mark(x, KEY_CANVAS_STEPS));
    line(b, "  temperature", "%g%s to %g%s", (double)c->t_max, mark(x, KEY_CANVAS_T_MAX),
         (double)c->t_min, mark(x, KEY_CANVAS_T_MIN));
    line(b, "  accepts", "tokens by entropy, while the surer ones add up to at most %g nats%s",
         (double)c->entropy_bound, mark(x, KEY_CANVAS_BOUND));
    line(b, "  stops", "after %u step%s without a change%s, at a mean entropy below %g nats%s",
         c->n_stable, c->n_stable == 1 ? "" : "s", mark(x, KEY_CANVAS_STABILITY),
         (double)c->confidence, mark(x, KEY_CANVAS_CONFIDENCE));
    line(b, "  conditioning", "a feed-forward %u wide", c->n_ff);
    if (x->runs)
        line(b, "  encoder", "%u of %u layers have a scale of their own for the encoder pass",
             x->n_encoder_scales, x->config.n_layer);
}

static void put_sum(struct buf *b, const char *name, const struct inspect_sum *s)
{
    if (!s->n_tensors) return;
    buf_printf(b, "  %-21s %7" PRIu64 " %18s %12s\n", name, s->n_tensors, grouped(s->n_params).z,
               bytes(s->n_bytes).z);
}

static void put_weights(struct buf *b, const struct inspect *x)
{
    bool roles = x->kind == INSPECT_TEXT || x->kind == INSPECT_SINGLE ||
                 x->kind == INSPECT_DIFFUSION || x->kind == INSPECT_MMPROJ;
    if (!x->all.n_tensors) return;
    buf_printf(b, "\n%-23s %7s %18s %12s\n", "weights", "tensors", "parameters", "size");
    for (int r = 0; r < N_ROLE && roles; r++)
        put_sum(b, inspect_role_name((enum inspect_role)r), &x->roles[r]);
    put_sum(b, "all", &x->all);
    buf_printf(b, "\nformats\n");
    for (uint32_t t = 0; t < INSPECT_N_TYPES; t++) put_sum(b, quant_type_name(t), &x->types[t]);
    if (!roles || !x->roles[ROLE_UNKNOWN].n_tensors) return;
    buf_printf(b, "\nunknown tensors\n");
    const struct gguf *g = &x->file.gguf;
    for (uint64_t i = 0, shown = 0; i < g->n_tensors; i++) {
        if (inspect_role_of(g->tensors[i].name) != ROLE_UNKNOWN) continue;
        if (shown++ == 20) {
            buf_printf(b, "  ... (--tensors lists all)\n");
            break;
        }
        buf_printf(b, "  %s\n", quote(g->tensors[i].name).z);
    }
}

static void put_adapter(struct buf *b, const struct adapter *a)
{
    uint32_t low = UINT32_MAX, high = 0;
    uint64_t n_params = 0;
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct adapter_target *t = &a->targets[i];
        if (t->rank < low) low = t->rank;
        if (t->rank > high) high = t->rank;
        n_params += (uint64_t)t->rank * (t->n_in + t->n_out) * t->n_expert;
    }
    if (low < high) line(b, "rank", "%u to %u", low, high);
    else line(b, "rank", "%u", high);
    line(b, "alpha", "%g", (double)a->alpha);
    line(b, "parameters", "%s", grouped(n_params).z);
    line(b, "targets", "%zu tensors", a->n_targets);
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct adapter_target *t = &a->targets[i];
        static const char *const where[] = { "", ", encoder", ", decoder" };
        buf_printf(b, "  %-32s %u -> %u, rank %u, scale %g%s\n", quote(str_of(t->name)).z, t->n_in,
                   t->n_out, t->rank, (double)t->scale, where[t->pass]);
    }
    for (size_t i = 0; i < a->n_warnings; i++) line(b, "note", "%s", a->warnings[i]);
}

static void put_verdict(struct buf *b, const struct inspect *x)
{
    buf_putc(b, '\n');
    for (int i = 0; i < 2 && x->has_config; i++)
        if (x->kv_context[i])
            line(b, "keys and values", "%s for %s tokens", bytes(x->kv_bytes[i]).z,
                 grouped(x->kv_context[i]).z);
    const struct inspect_sum *v = &x->roles[ROLE_VISION], *a = &x->roles[ROLE_AUDIO];
    if (v->n_tensors || a->n_tensors)
        line(b, "towers",
             "%" PRIu64 " tensors for images, %" PRIu64 " for sound: recognised, not used yet",
             v->n_tensors, a->n_tensors);
    if (x->runs && x->kind == INSPECT_DIFFUSION)
        line(b, "runs", "yes, as text; a step reads up to %s of weights", bytes(x->bytes_a_step).z);
    else if (x->runs)
        line(b, "runs", "yes, as text; a token reads %s of weights", bytes(x->bytes_a_token).z);
    else line(b, "runs", "no: %s", x->why.text);
}

/* ---- lists ---- */

static void put_element(struct buf *b, const struct gguf_kv *kv, uint64_t i)
{
    int64_t whole;
    double v;
    if (kv->elem == GGUF_BOOL && gguf_at_i64(kv, i, &whole)) buf_puts(b, whole ? "true" : "false");
    else if (kv->elem != GGUF_F32 && kv->elem != GGUF_F64 && gguf_at_i64(kv, i, &whole))
        buf_printf(b, "%" PRId64, whole);
    else if (gguf_at_f64(kv, i, &v)) buf_printf(b, "%.9g", v);
}

static void put_keys(struct buf *b, const struct gguf *g)
{
    buf_printf(b, "\nmetadata\n");
    for (uint64_t i = 0; i < g->n_kv; i++) {
        const struct gguf_kv *kv = &g->kvs[i];
        uint64_t cursor = 0, n = kv->n < 8 ? kv->n : 8;
        buf_printf(b, "  %-44s ", quote(kv->key).z);
        if (kv->type == GGUF_ARRAY)
            buf_printf(b, "%" PRIu64 " x %s:", kv->n, gguf_type_name(kv->elem));
        for (uint64_t k = 0; k < n; k++) {
            struct str s = { 0 };
            if (kv->type == GGUF_ARRAY) buf_putc(b, ' ');
            if (kv->elem != GGUF_STRING) put_element(b, kv, k);
            else if (gguf_next_str(kv, &cursor, &s)) buf_printf(b, "\"%s\"", quote(s).z);
        }
        buf_puts(b, n < kv->n ? " ...\n" : "\n");
    }
}

static void put_tensors(struct buf *b, const struct gguf *g)
{
    buf_printf(b, "\ntensors\n");
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        char shape[96];
        int n = snprintf(shape, sizeof shape, "%" PRIu64, t->ne[0]);
        for (uint32_t k = 1; k < t->n_dims; k++)
            n += snprintf(shape + n, sizeof shape - (size_t)n, " x %" PRIu64, t->ne[k]);
        buf_printf(b, "  %-40s %-8s %-24s %12s  %s\n", quote(t->name).z, quant_type_name(t->type),
                   shape, bytes(t->n_bytes).z, inspect_role_name(inspect_role_of(t->name)));
    }
}

void inspect_put_text(struct buf *b, const struct inspect *x, struct inspect_wish wish)
{
    put_files(b, x);
    line(b, "kind", "%s", kind_sentence(x));
    if (x->arch.n) line(b, "architecture", "%s", quote(x->arch).z);
    if (x->name.n) line(b, "name", "%s", quote(x->name).z);
    if (x->kind == INSPECT_ADAPTER) {
        put_adapter(b, &x->adapter);
    } else {
        if (x->file_type) line(b, "file type", "%s", x->file_type);
        line(b, "parameters", "%s in %s tensors", grouped(x->all.n_params).z,
             grouped(x->all.n_tensors).z);
        line(b, "header", "%s", bytes(x->file.gguf.header_bytes).z);
        if (x->has_config) put_layers(b, &x->config);
        if (x->has_config && x->kind == INSPECT_DIFFUSION) put_canvas(b, x);
        put_weights(b, x);
        put_verdict(b, x);
    }
    if (wish.keys && x->is_open) put_keys(b, &x->file.gguf);
    if (wish.tensors && x->is_open) put_tensors(b, &x->file.gguf);
}
