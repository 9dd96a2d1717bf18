/* adapter_peft.c - owns PEFT's spelling of a LoRA adapter: adapter_config.json, and the names and
 * shapes of the tensors beside it.
 *
 *     base_model.model.<module path>.lora_A.weight   rank x in
 *     base_model.model.<module path>.lora_B.weight   out x rank
 *
 * Experts are parameters, not modules (the config's target_parameters). PEFT wraps their module
 * once for each parameter, in the order gate_up_proj, down_proj: with both, "experts" itself is the
 * outer wrapper (down_proj) and "experts.base_layer" the inner one (gate_up_proj); with one alone,
 * "experts" is that one. All experts share two matrices:
 *
 *     lora_A   (expert, rank) x in        lora_B   out x (rank, expert)
 *
 * with the expert the slower index in A and the faster one in B. Before PEFT 0.19 the sides of an
 * expert were taken the wrong way round: there lora_A has `out` columns, lora_B has `in` rows.
 */
#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "io/adapter.h"
#include "io/adapter_plan.h"
#include "io/pattern.h"
#include "io/quote.h"
#include "io/safetensors.h"
#include "quant/quant.h"

/* Module paths up to the layer number: the conditional-generation class, the text-only class, an
 * older spelling, and the two bare models below those classes. DiffusionGemma's two classes have a
 * module for each pass; what is learned of one acts in its pass alone, though the weight is one. */
static const struct {
    const char *prefix;
    enum adapter_pass pass;
} layer_prefixes[] = {
    { "model.language_model.layers.", ADAPTER_BOTH },
    { "model.layers.", ADAPTER_BOTH },
    { "language_model.model.layers.", ADAPTER_BOTH },
    { "language_model.layers.", ADAPTER_BOTH },
    { "layers.", ADAPTER_BOTH },
    { "model.encoder.language_model.layers.", ADAPTER_ENCODER },
    { "model.decoder.layers.", ADAPTER_DECODER },
    { "encoder.language_model.layers.", ADAPTER_ENCODER },
    { "decoder.layers.", ADAPTER_DECODER },
};

/* DiffusionGemma's modules outside of layers, below either class. */
static const struct {
    const char *module, *tensor;
} outer_modules[] = {
    { "decoder.self_conditioning.gate_proj", "self_cond_gate.weight" },
    { "decoder.self_conditioning.up_proj", "self_cond_up.weight" },
    { "decoder.self_conditioning.down_proj", "self_cond_down.weight" },
};

static const struct {
    const char *module, *tensor;
} modules[] = {
    { "self_attn.q_proj", "attn_q" },
    { "self_attn.k_proj", "attn_k" },
    { "self_attn.v_proj", "attn_v" },
    { "self_attn.o_proj", "attn_output" },
    { "mlp.gate_proj", "ffn_gate" },
    { "mlp.up_proj", "ffn_up" },
    { "mlp.down_proj", "ffn_down" },
    { "per_layer_input_gate", "inp_gate" },
    { "per_layer_projection", "proj" },
    { "router.proj", "ffn_gate_inp" },
    { "experts.gate_up_proj", "ffn_gate_up_exps" },
    { "experts.down_proj", "ffn_down_exps" },
};

struct config {
    double r, alpha;
    bool rslora;
    bool old_experts;                                /* written before PEFT 0.19 */
    const struct json *rank_pattern, *alpha_pattern; /* objects, or NULL */
    const struct json *parameters;                   /* array, or NULL */
    uint64_t work; /* that matching names against the three has taken so far */
};

/* A second. Real adapters, every module of sixty layers named by itself, take half of it. */
#define MAX_WORK      ((uint64_t)1000000000)
#define TOO_MUCH_WORK "its config names too many patterns for that many tensors"

/* --- the configuration --- */

static const struct json *get_as(const struct json *root, const char *key, enum json_type type)
{
    const struct json *j = json_get(root, key);
    return j && j->type == type ? j : NULL;
}

static bool is_number(const struct json *j)
{
    return j && (j->type == JSON_INT || j->type == JSON_FLOAT) && isfinite((float)j->number);
}

/* null, false, empty: the ways of saying that a feature is not used. */
static bool is_off(const struct json *j)
{
    return !j || j->type == JSON_NULL || (j->type == JSON_BOOL && !j->boolean) ||
           ((j->type == JSON_ARRAY || j->type == JSON_OBJECT) && j->n == 0);
}

/* "0.18.1" is older than 0.19; so is a file that does not say. */
static bool is_old_version(struct str v)
{
    uint32_t part[2] = { 0, 0 };
    size_t at = 0;
    for (int i = 0; i < 2; i++, at++)
        for (; at < v.n && v.p[at] >= '0' && v.p[at] <= '9' && part[i] < 10000; at++)
            part[i] = 10 * part[i] + (uint32_t)(v.p[at] - '0');
    return part[0] == 0 && part[1] < 19;
}

static enum bz_status read_config(struct config *c, const struct json *root, const char *file,
                                  struct bz_err *err)
{
    static const char *const refused[] = { "use_dora", "use_qalora", "use_bdlora", "lora_bias",
                                           "layer_replication" };
    struct str type = json_get_str(root, "peft_type");
    if (!str_is(type, "LORA"))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s: its config has peft_type \"%s\"; Bezel reads LORA", file, quote(type).z);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!is_off(json_get(root, refused[i])))
            return fail(err, BZ_ERR_UNSUPPORTED,
                        "%s: its config sets %s, a kind of LoRA that Bezel does not read", file,
                        refused[i]);
    const struct json *r = json_get(root, "r"), *alpha = json_get(root, "lora_alpha");
    if (!is_number(r) || !is_number(alpha))
        return fail(err, BZ_ERR_FORMAT, "%s: its config has no numbers r and lora_alpha", file);
    *c = (struct config) {
        .r = r->number,
        .alpha = alpha->number,
        .rslora = !is_off(json_get(root, "use_rslora")),
        .old_experts = is_old_version(json_get_str(root, "peft_version")),
        .rank_pattern = get_as(root, "rank_pattern", JSON_OBJECT),
        .alpha_pattern = get_as(root, "alpha_pattern", JSON_OBJECT),
        .parameters = get_as(root, "target_parameters", JSON_ARRAY),
    };
    if ((!c->rank_pattern && !is_off(json_get(root, "rank_pattern"))) ||
        (!c->alpha_pattern && !is_off(json_get(root, "alpha_pattern"))))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: rank_pattern and alpha_pattern in its config must be objects", file);
    return BZ_OK;
}

/* The value of the first key that matches the module's path, else `otherwise`. */
static enum bz_status look_up(double *out, struct config *c, const struct json *patterns,
                              double otherwise, struct str path, struct bz_err *err)
{
    *out = otherwise;
    for (const struct json *j = patterns ? patterns->child : NULL; j; j = j->next) {
        bool hit = false;
        enum bz_status st = pattern_match_tail(&hit, j->key, path, &c->work, err);
        if (st) return st;
        if (c->work > MAX_WORK) return fail(err, BZ_ERR_LIMIT, TOO_MUCH_WORK);
        if (!hit) continue;
        if (!is_number(j))
            return fail(err, BZ_ERR_FORMAT, "the value of pattern \"%s\" is not a number",
                        quote(j->key).z);
        *out = j->number;
        return BZ_OK;
    }
    return BZ_OK;
}

/* --- names --- */

struct module {
    struct str path;   /* as PEFT knows it: without base_model.model. */
    const char *outer; /* the tensor of a module outside of layers; else NULL, and: */
    enum adapter_pass pass;
    uint32_t layer;
    struct str in_layer; /* "self_attn.q_proj" */
};

static bool skip(struct str *s, const char *prefix)
{
    if (!str_starts(*s, prefix)) return false;
    size_t n = strlen(prefix);
    *s = (struct str) { s->p + n, s->n - n };
    return true;
}

static bool contains(struct str s, const char *z)
{
    size_t n = strlen(z);
    for (size_t i = 0; i + n <= s.n; i++)
        if (memcmp(s.p + i, z, n) == 0) return true;
    return false;
}

static bool read_layer_number(struct str *s, uint32_t *out)
{
    size_t n = 0;
    *out = 0;
    for (; n < s->n && n < 5 && s->p[n] >= '0' && s->p[n] <= '9'; n++)
        *out = 10 * *out + (uint32_t)(s->p[n] - '0');
    if (n == 0 || n == 5 || n == s->n || s->p[n] != '.') return false;
    *s = (struct str) { s->p + n + 1, s->n - n - 1 };
    return true;
}

static bool split_path(struct module *m, struct str path)
{
    *m = (struct module) { .path = path };
    for (size_t i = 0; i < sizeof layer_prefixes / sizeof *layer_prefixes; i++) {
        m->in_layer = path;
        m->pass = layer_prefixes[i].pass;
        if (skip(&m->in_layer, layer_prefixes[i].prefix))
            return read_layer_number(&m->in_layer, &m->layer);
    }
    *m = (struct module) { .path = path };
    skip(&path, "model.");
    for (size_t i = 0; i < sizeof outer_modules / sizeof *outer_modules; i++)
        if (str_is(path, outer_modules[i].module)) m->outer = outer_modules[i].tensor;
    return m->outer;
}

/* --- one adapter being read --- */

struct reader {
    struct adapter_plan plan;
    struct config config;
    struct safetensors file;
};

/* PEFT's rule: a parameter is targeted when its path is an entry or ends with "." and an entry. */
static bool is_targeted(struct config *c, struct str path)
{
    const struct json *j = c->parameters ? c->parameters->child : NULL;
    for (; j && c->work <= MAX_WORK; j = j->next, c->work += 4) {
        if (j->type != JSON_STRING || j->text.n == 0 || j->text.n > path.n) continue;
        struct str tail = { path.p + path.n - j->text.n, j->text.n };
        if (str_eq(tail, j->text) && (tail.n == path.n || tail.p[-1] == '.')) return true;
    }
    return false;
}

/* Rewrite the path of an experts wrapper as the path of its parameter; `path` is scratch. False
 * when the config does not say which one it is. */
static bool name_expert_parameter(struct module *m, struct config *c, struct buf *path)
{
    bool inner = str_ends(m->path, ".base_layer");
    struct str stem = { m->path.p, m->path.n - (inner ? strlen(".base_layer") : 0) };
    path->n = 0;
    buf_put_str(path, stem);
    buf_puts(path, ".gate_up_proj");
    bool gate_up = !path->failed && is_targeted(c, buf_str(path));
    path->n = 0;
    buf_put_str(path, stem);
    buf_puts(path, ".down_proj");
    bool down = !path->failed && is_targeted(c, buf_str(path));
    if (inner ? !(gate_up && down) : !(gate_up || down)) return false;
    if (inner || !down) {
        path->n = 0;
        buf_put_str(path, stem);
        buf_puts(path, ".gate_up_proj");
    }
    return !path->failed && split_path(m, buf_str(path));
}

/* The name of the tensor that a module changes. False: Bezel knows no such module. */
static bool put_tensor_name(struct buf *to, const struct module *m)
{
    if (m->outer) buf_puts(to, m->outer);
    for (size_t i = 0; !m->outer && i < sizeof modules / sizeof *modules; i++)
        if (str_is(m->in_layer, modules[i].module))
            buf_printf(to, "blk.%" PRIu32 ".%s.weight", m->layer, modules[i].tensor);
    return to->n || to->failed;
}

static bool find_format(enum st_dtype dtype, uint32_t *out)
{
    switch (dtype) {
    case ST_F32: *out = QUANT_F32; return true;
    case ST_F16: *out = QUANT_F16; return true;
    case ST_BF16: *out = QUANT_BF16; return true;
    default: return false;
    }
}

/* The matrix as it is meant. For experts `r` tells rows of one expert from rows of the next. */
static bool shape_half(struct adapter_half *h, const struct st_tensor *t, bool is_b, bool experts,
                       bool old, uint64_t r)
{
    uint64_t rows = t->shape[0], cols = t->shape[1];
    h->n_expert = 1;
    h->rows = rows;
    h->cols = cols;
    adapter_half_plain(h);
    if (!experts) return true;
    uint64_t folded = is_b ? cols : rows;
    if (folded == 0 || folded % r) return false;
    uint64_t n = folded / r;
    h->n_expert = n;
    if (!is_b) {
        /* (expert, rank) x side */
        h->rows = old ? cols : r;
        h->cols = old ? r : cols;
        h->by_expert = r * cols;
        h->by_row = old ? 1 : cols;
        h->by_col = old ? cols : 1;
    } else {
        /* side x (rank, expert) */
        h->rows = old ? r : rows;
        h->cols = old ? rows : r;
        h->by_expert = 1;
        h->by_row = old ? n : r * n;
        h->by_col = old ? r * n : n;
    }
    return true;
}

static enum bz_status refuse_name(const struct reader *rd, struct str name, struct bz_err *err)
{
    const char *file = rd->plan.file;
    if (contains(name, "embed_tokens") || contains(name, "lm_head"))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s adapts %s: the embedding and the output head are one table here, and Bezel "
                    "does not adapt it; train without embed_tokens and lm_head",
                    file, quote(name).z);
    return fail(err, BZ_ERR_UNSUPPORTED, "%s adapts %s, a module that Bezel does not know", file,
                quote(name).z);
}

/* `tensor`: the name of the one that the module changes. */
static enum bz_status add_half(struct reader *rd, const struct st_tensor *t, const struct module *m,
                               struct str tensor, bool is_b, struct bz_err *err)
{
    struct config *c = &rd->config;
    const char *file = rd->plan.file;
    struct adapter_half h = { .src = &rd->file.source, .offset = t->offset, .n_bytes = t->n_bytes };
    bool experts = str_starts(m->in_layer, "experts.");
    bool swap = experts && c->old_experts;
    double r, alpha;
    if (!find_format(t->dtype, &h.format))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s: %s is stored as %s; PEFT adapters are read in "
                    "F32, F16 and BF16",
                    file, quote(t->name).z, quote(t->dtype_name).z);
    enum bz_status st = look_up(&r, c, c->rank_pattern, c->r, m->path, err);
    if (!st) st = look_up(&alpha, c, c->alpha_pattern, c->alpha, m->path, err);
    if (st) return fail_prefix(err, st, "%s", file);
    if (!(r >= 1 && r <= 65536) || r != floor(r))
        return fail(err, BZ_ERR_FORMAT, "%s: its config gives %s the rank %g", file,
                    quote(m->path).z, r);
    if (t->n_dims != 2 || !shape_half(&h, t, is_b, experts, c->old_experts, (uint64_t)r))
        return fail(err, BZ_ERR_FORMAT, "%s: %s does not have the shape of a LoRA matrix", file,
                    quote(t->name).z);
    uint64_t rank = is_b != swap ? h.cols : h.rows;
    if (rank != (uint64_t)r)
        return fail(err, BZ_ERR_FORMAT, "%s: %s has rank %" PRIu64 " and the config says %g", file,
                    quote(t->name).z, rank, r);
    return adapter_plan_half(&rd->plan, tensor, m->pass, is_b != swap, &h,
                             (float)(alpha / (c->rslora ? sqrt(r) : r)), err);
}

static enum bz_status add_tensor(struct reader *rd, const struct st_tensor *t, struct bz_err *err)
{
    static const char tail_a[] = ".lora_A.weight", tail_b[] = ".lora_B.weight";
    struct str path = t->name;
    skip(&path, "base_model.model."); /* first: the two may share a dot */
    bool is_b = str_ends(path, tail_b);
    if (!is_b && !str_ends(path, tail_a)) {
        if (str_ends(path, "norm.weight"))
            return adapter_plan_warn(&rd->plan, err, "%s was left out: norms are not adapted",
                                     quote(path).z);
        return refuse_name(rd, path, err);
    }
    path.n -= sizeof tail_a - 1;
    struct module m;
    if (!split_path(&m, path) ||
        (str_starts(m.in_layer, "experts.") && !str_is(m.in_layer, "experts.base_layer")))
        return refuse_name(rd, path, err);
    struct buf scratch = { 0 }, name = { 0 };
    enum bz_status st = BZ_OK;
    bool wrapper = str_is(m.in_layer, "experts") || str_is(m.in_layer, "experts.base_layer");
    if (wrapper && !name_expert_parameter(&m, &rd->config, &scratch))
        st = scratch.failed ? fail_memory(err, path.n)
             : rd->config.work > MAX_WORK
                 ? fail(err, BZ_ERR_LIMIT, "%s: %s", rd->plan.file, TOO_MUCH_WORK)
                 : fail(err, BZ_ERR_FORMAT,
                        "%s adapts %s, but target_parameters in its config does not say "
                        "which parameter that is",
                        rd->plan.file, quote(path).z);
    if (!st && !put_tensor_name(&name, &m)) st = refuse_name(rd, m.path, err);
    else if (!st)
        st = name.failed ? fail_memory(err, 64) : add_half(rd, t, &m, buf_str(&name), is_b, err);
    buf_free(&name);
    buf_free(&scratch);
    return st;
}

static enum bz_status read_tensors(struct reader *rd, struct adapter *out, struct bz_err *err)
{
    const struct safetensors *f = &rd->file;
    enum bz_status st = BZ_OK;
    rd->plan.out.alpha = (float)rd->config.alpha;
    for (uint64_t i = 0; !st && i < f->n_tensors; i++) st = add_tensor(rd, &f->tensors[i], err);
    if (!st) st = adapter_plan_check(&rd->plan, f->source.size, err);
    if (!st) st = adapter_plan_load(&rd->plan, out, err);
    return st;
}

enum bz_status adapter_open_peft(struct adapter *out, const struct source *weights,
                                 struct str config, struct bz_err *err)
{
    struct reader rd = { 0 };
    struct arena tree = { 0 };
    struct json *root;
    enum bz_status st = safetensors_open(&rd.file, weights, err);
    if (st) return st;
    const char *file = rd.file.source.name;
    st = json_parse(&root, config, &tree, err);
    if (st) fail_prefix(err, st, "%s: its adapter_config.json", file);
    if (!st) st = read_config(&rd.config, root, file, err);
    if (!st) st = adapter_plan_init(&rd.plan, file, rd.file.n_tensors, err);
    if (!st && !is_off(json_get(root, "alora_invocation_tokens")))
        st = adapter_plan_warn(&rd.plan, err,
                               "an activated LoRA: it is applied to every token here");
    if (!st) st = read_tensors(&rd, out, err);
    adapter_plan_free(&rd.plan);
    safetensors_close(&rd.file);
    arena_free(&tree);
    return st;
}
