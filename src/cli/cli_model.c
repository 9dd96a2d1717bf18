#include "cli/cli_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/shipped.h"

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum bz_status cli_split_adapter(const char *spec, char **path, float *scale, struct bz_err *err)
{
    size_t n = strlen(spec);
    const char *colon = strrchr(spec, ':');
    *scale = 1;
    if (colon && colon[1]) {
        char *end;
        float v = strtof(colon + 1, &end);
        if (!*end) {
            *scale = v;
            n = (size_t)(colon - spec);
        }
    }
    *path = mem_copy_str(spec, n);
    return *path ? BZ_OK : fail_memory(err, n);
}

static enum bz_status add_adapter(bz_engine *e, const char *spec, struct bz_err *err)
{
    float scale;
    char *path;
    int id;
    enum bz_status st = cli_split_adapter(spec, &path, &scale, err);
    if (st == BZ_OK) st = bz_adapter_add(e, path, scale, &id, err);
    mem_free(path);
    return st;
}

enum bz_status cli_open(const struct cli_model *m, const char *model, bz_engine **engine,
                        bz_session **session, struct bz_err *err)
{
    struct bz_engine_options o = { .store = m->store, .n_threads = (unsigned)m->n_threads };
    if (strcmp(m->backend, "reference") == 0) o.backend = BZ_BACKEND_REFERENCE;
    else if (strcmp(m->backend, "cpu") != 0)
        return fail(err, BZ_ERR_ARGUMENT, "no backend \"%s\"; there are cpu and reference",
                    m->backend);
    bool f16 = strcmp(m->cache, "f16") == 0;
    if (!f16 && strcmp(m->cache, "f32") != 0)
        return fail(err, BZ_ERR_ARGUMENT, "no cache \"%s\"; there are f32 and f16", m->cache);
    if (m->n_context > UINT32_MAX || m->n_batch > UINT32_MAX || m->n_threads > 4096)
        return fail(err, BZ_ERR_ARGUMENT, "that number of tokens or threads is out of range");
    char path[PATH_MAX];
    enum bz_status st = bz_engine_open(engine, shipped_or(model, m->store, path), &o, err);
    if (st) return st;
    for (size_t i = 0; st == BZ_OK && i < m->adapters.n; i++)
        st = add_adapter(*engine, m->adapters.v[i], err);
    struct bz_session_options so = { .n_context = (uint32_t)m->n_context,
                                     .n_batch = (uint32_t)m->n_batch,
                                     .cache = f16 ? BZ_CACHE_F16 : BZ_CACHE_F32,
                                     .on_batch = m->on_batch,
                                     .go_on = m->go_on,
                                     .ctx = m->callback_ctx };
    if (st == BZ_OK && session) st = bz_session_open(session, *engine, &so, err);
    if (st) {
        bz_engine_close(*engine);
        *engine = NULL;
    }
    return st;
}

static enum bz_status read_bias(const struct cli_strs *list, uint32_t n_vocab,
                                struct bz_bias bias[CLI_MAX_BIAS], struct bz_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        char *end, *last;
        long id = strtol(list->v[i], &end, 10);
        float add = *end == ':' ? strtof(end + 1, &last) : 0;
        if (end == list->v[i] || *end != ':' || *last || last == end + 1 || id < 0 ||
            id >= (long)n_vocab || isnan(add))
            return fail(err, BZ_ERR_ARGUMENT,
                        "logit bias \"%s\"; it is ID:ADD, such as 107:-inf, with an id below %u",
                        list->v[i], n_vocab);
        bias[i] = (struct bz_bias) { (int32_t)id, add };
    }
    return BZ_OK;
}

/* A diffusion model draws no next token: what says how to was given by mistake. */
static enum bz_status check_kind(const struct cli_sampling *s, const bz_engine *e,
                                 struct bz_err *err)
{
    const struct {
        bool set;
        const char *option;
    } given[] = {
        { s->set_temp, "--temp" },
        { s->set_top_k, "--top-k" },
        { s->set_top_p, "--top-p" },
        { s->set_min_p, "--min-p" },
        { s->set_repeat, "--repeat-penalty" },
        { s->set_presence, "--presence-penalty" },
        { s->set_frequency, "--frequency-penalty" },
        { s->set_window, "--repeat-last-n" },
        { s->bias.n > 0, "--logit-bias" },
    };
    for (size_t i = 0; i < sizeof given / sizeof *given && bz_engine_info(e).n_canvas; i++)
        if (given[i].set)
            return fail(err, BZ_ERR_ARGUMENT,
                        "%s is not for a diffusion model; for what is, see: bezel diffuse --help",
                        given[i].option);
    return BZ_OK;
}

enum bz_status cli_sampling(const struct cli_sampling *s, const bz_engine *e,
                            struct bz_bias bias[CLI_MAX_BIAS], struct bz_sampling *out,
                            struct bz_err *err)
{
    struct bz_sampling p = bz_sampling_defaults(e);
    enum bz_status st = check_kind(s, e, err);
    if (st) return st;
    if (s->set_temp) p.temperature = (float)s->temp;
    if (s->greedy) p.temperature = 0;
    if (s->set_top_k) p.top_k = s->top_k > UINT32_MAX ? UINT32_MAX : (uint32_t)s->top_k;
    if (s->set_top_p) p.top_p = (float)s->top_p;
    if (s->set_min_p) p.min_p = (float)s->min_p;
    if (s->set_repeat) p.repeat_penalty = (float)s->repeat;
    if (s->set_presence) p.presence_penalty = (float)s->presence;
    if (s->set_frequency) p.frequency_penalty = (float)s->frequency;
    if (s->set_window) p.penalty_window = s->window > UINT32_MAX ? UINT32_MAX : (uint32_t)s->window;
    if (s->set_seed) p.seed = s->seed;
    else if (!p.seed && !(s->greedy && bz_engine_info(e).n_canvas)) /* those draw all the same */
        p.seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)clock();
    st = read_bias(&s->bias, bz_engine_info(e).n_vocab, bias, err);
    p.bias = bias;
    p.n_bias = s->bias.n;
    if (st == BZ_OK) *out = p;
    return st;
}

/* ---- what answers keep to ---- */

int cli_check_form(const struct cli_command *c, const struct cli_form *f)
{
    if (!!f->schema + !!f->grammar + !!f->regex + f->json_object <= 1) return CLI_OK;
    return cli_misuse(c, "give one of --schema, --json-object, --regex and --grammar");
}

enum bz_status cli_read_form(struct cli_form *f, struct bz_err *err)
{
    const char *path = f->schema ? f->schema : f->grammar;
    struct buf text = { 0 };
    struct arena arena = { 0 };
    struct json *schema;
    enum bz_status st = path ? cli_read_file(path, &text, err) : BZ_OK;
    if (st == BZ_OK && f->schema) {
        st = json_parse(&schema, buf_str(&text), &arena, err);
        if (st) st = fail_prefix(err, st, "%s", path);
        buf_puts(&f->json, "\"schema\":");
        buf_put_str(&f->json, buf_str(&text));
    } else if (f->grammar || f->regex) {
        buf_puts(&f->json, f->grammar ? "\"gbnf\":" : "\"regex\":");
        json_put_string(&f->json, f->grammar ? buf_str(&text) : str_of(f->regex));
    } else if (f->json_object) {
        buf_puts(&f->json, "\"json\":true");
    }
    if (st == BZ_OK && (text.failed || f->json.failed)) st = fail_memory(err, text.n);
    arena_free(&arena);
    buf_free(&text);
    return st;
}

enum bz_status cli_open_form(const struct cli_form *f, bz_engine *e, bool thinks, bool in_thought,
                             bz_constraint **out, struct bz_err *err)
{
    const char *path = f->schema ? f->schema : f->grammar;
    struct buf json = { 0 };
    *out = NULL;
    if (!f->json.n) return BZ_OK;
    buf_putc(&json, '{');
    buf_put_str(&json, buf_str(&f->json));
    if (thinks) buf_puts(&json, ",\"thinking\":true");
    if (in_thought) buf_puts(&json, ",\"in_thought\":true");
    buf_putc(&json, '}');
    enum bz_status st =
        json.failed ? fail_memory(err, json.n) : bz_constraint_open(out, e, json.data, json.n, err);
    buf_free(&json);
    return st && path ? fail_prefix(err, st, "%s", path) : st;
}
