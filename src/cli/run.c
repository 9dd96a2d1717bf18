/* run.c - the commands that compute: logits and generate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/cli_model.h"
#include "io/part_file.h"

/* ---- logits ---- */

struct logits_job {
    uint32_t n_vocab, top;
    struct part_file *raw; /* all logits as f32, or NULL */
    struct bz_err why;     /* what is wrong with that file, if something is */
    int32_t *best;
};

/* The `top` best of a row, best first, ties to the lower id. */
static void find_best(const float *z, uint32_t n, int32_t *best, uint32_t top)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (kept == top && !(z[i] > z[best[kept - 1]])) continue;
        uint32_t at = kept < top ? kept++ : top - 1;
        for (; at > 0 && z[i] > z[best[at - 1]]; at--) best[at] = best[at - 1];
        best[at] = (int32_t)i;
    }
}

static bool print_position(void *ctx, uint32_t position, const float *logits)
{
    struct logits_job *j = ctx;
    if (j->raw) return part_file_put(j->raw, logits, j->n_vocab * sizeof *logits, &j->why) == BZ_OK;
    struct buf line = { 0 };
    find_best(logits, j->n_vocab, j->best, j->top);
    buf_printf(&line, "{\"pos\":%u,\"top\":[", position);
    for (uint32_t i = 0; i < j->top; i++) {
        buf_printf(&line, "%s[%d,", i ? "," : "", j->best[i]);
        json_put_f32(&line, logits[j->best[i]]);
        buf_putc(&line, ']');
    }
    buf_puts(&line, "]}\n");
    bool ok = !line.failed && fwrite(line.data, 1, line.n, stdout) == line.n;
    buf_free(&line);
    return ok;
}

static enum bz_status run_logits(struct logits_job *j, bz_engine *e, bz_session *s,
                                 const int32_t *ids, size_t n, uint64_t top, const char *raw_path,
                                 struct bz_err *err)
{
    j->n_vocab = bz_engine_info(e).n_vocab;
    j->top = top < j->n_vocab ? (uint32_t)top : j->n_vocab;
    j->best = mem_alloc(j->top, sizeof *j->best);
    if (!j->best) return fail_memory(err, top * sizeof *j->best);
    enum bz_status st = raw_path ? part_file_open(&j->raw, raw_path, err) : BZ_OK;
    if (st) return st;
    st = bz_session_feed(s, ids, n, n, print_position, j, err);
    if (st == BZ_ERR_CANCELLED) /* by the above, when nothing could be written */
        st = fail(err, BZ_ERR_IO, "%s", j->raw ? j->why.text : "cannot write the logits");
    if (st == BZ_OK && j->raw) st = part_file_finish(j->raw, err);
    return st;
}

/* A context that holds n tokens, unless one was asked for. */
static void fit_context(struct cli_model *m, uint64_t n)
{
    if (!m->n_context) m->n_context = n;
}

int cmd_logits(int argc, char **argv)
{
    struct cli_model m = CLI_MODEL_DEFAULTS;
    const char *ids_text = NULL, *raw = NULL, *model;
    uint64_t top = 8;
    const struct cli_option options[] = {
        { "--ids", "LIST", "token ids, separated by commas", CLI_STR, &ids_text, NULL },
        { "--top", "K", "how many of each position; default 8", CLI_U64, &top, NULL },
        { "--all-bin", "FILE", "write every logit as f32 to FILE instead", CLI_STR, &raw, NULL },
        CLI_MODEL_OPTIONS(m),
    };
    const struct cli_command c = { "logits",
                                   "MODEL --ids LIST",
                                   "The best logits after each token, one JSON object a line.",
                                   options,
                                   sizeof options / sizeof *options,
                                   1,
                                   1 };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    if (!ids_text) return cli_misuse(&c, "--ids is needed");
    if (!top) return cli_misuse(&c, "--top must be at least 1");
    struct bz_err err;
    int32_t *ids = NULL;
    size_t n = 0;
    bz_engine *e = NULL;
    bz_session *s = NULL;
    struct logits_job job = { 0 };
    enum bz_status st = cli_read_ids(ids_text, &ids, &n, &err);
    if (st == BZ_OK && n == 0) st = fail(&err, BZ_ERR_ARGUMENT, "no token ids were given");
    fit_context(&m, n);
    if (st == BZ_OK) st = cli_open(&m, model, &e, &s, &err);
    if (st == BZ_OK) st = run_logits(&job, e, s, ids, n, top, raw, &err);
    part_file_close(job.raw);
    mem_free(job.best);
    mem_free(ids);
    bz_session_close(s);
    bz_engine_close(e);
    return st ? cli_fail(&c, &err) : CLI_OK;
}

/* ---- generate ---- */

struct generate_args {
    const char *ids, *prompt;
    bool json, stats, set_n;
    uint64_t n;
    struct cli_strs stop;
    struct cli_form form;
};

static bool write_text(void *ctx, const char *text, size_t n)
{
    (void)ctx;
    return cli_put_text((struct str) { text, n });
}

static bool collect_text(void *ctx, const char *text, size_t n)
{
    struct buf *b = ctx;
    buf_put(b, text, n);
    return !b->failed;
}

static void print_json(bz_session *s, const struct bz_generated *g, const struct buf *text)
{
    static const char *const why[] = { "end", "string", "length", "context", "cancelled" };
    struct buf out = { 0 };
    const int32_t *tokens = bz_session_tokens(s, NULL);
    buf_puts(&out, "{\"ids\":[");
    for (size_t i = 0; i < g->n; i++) buf_printf(&out, "%s%d", i ? "," : "", tokens[g->first + i]);
    buf_puts(&out, "],\"text\":");
    json_put_string(&out, buf_str(text));
    buf_printf(&out, ",\"stop\":\"%s\"}\n", why[g->stop]);
    fwrite(out.data, 1, out.n, stdout);
    buf_free(&out);
}

static enum bz_status run_generate(const struct generate_args *a, bz_engine *e, bz_session *s,
                                   const struct bz_sampling *sampling, const int32_t *ids, size_t n,
                                   struct bz_err *err)
{
    struct buf text = { 0 };
    struct bz_generate_options o = bz_generate_defaults(e);
    o.sampling = *sampling;
    if (a->set_n || !o.n_max) o.n_max = (uint32_t)a->n; /* else the store says */
    if (a->stop.n) {
        o.stop = a->stop.v;
        o.n_stop = a->stop.n;
    }
    o.on_text = a->json ? collect_text : write_text;
    o.ctx = &text;
    struct bz_generated g = { 0 };
    enum bz_status st = cli_open_form(&a->form, e, false, false, &o.constraint, err);
    double start = cli_now();
    if (st == BZ_OK) st = bz_session_feed(s, ids, n, 1, NULL, NULL, err);
    double prompt_end = cli_now();
    if (st == BZ_OK) st = bz_generate(s, &o, &g, err);
    double end = cli_now();
    if (st == BZ_OK && a->json) print_json(s, &g, &text);
    if (st == BZ_OK && !a->json) putchar('\n');
    if (st == BZ_OK && a->stats)
        fprintf(stderr, "prompt %zu tokens, %.2f tok/s; generated %zu tokens, %.2f tok/s\n", n,
                (double)n / (prompt_end - start), g.n, (double)g.n / (end - prompt_end));
    bz_constraint_close(o.constraint);
    buf_free(&text);
    return st;
}

int cmd_generate(int argc, char **argv)
{
    struct cli_model m = CLI_MODEL_DEFAULTS;
    struct cli_sampling sampling = { 0 };
    struct generate_args a = { .n = 128 };
    const char *model;
    const struct cli_option options[] = {
        { "--prompt", "TEXT", "text to continue (special tokens are parsed)", CLI_STR, &a.prompt,
          NULL },
        { "--ids", "LIST", "token ids to continue instead", CLI_STR, &a.ids, NULL },
        { "--n", "N", "tokens at most; 0: until the model ends; default 128", CLI_U64, &a.n,
          &a.set_n },
        { "--stop", "TEXT", "end before this string; may be repeated", CLI_STRS, &a.stop, NULL },
        { "--json", NULL, "print {\"ids\", \"text\", \"stop\"} at the end", CLI_FLAG, &a.json,
          NULL },
        { "--stats", NULL, "speed, on standard error", CLI_FLAG, &a.stats, NULL },
        CLI_FORM_OPTIONS(a.form),
        CLI_SAMPLING_OPTIONS(sampling),
        CLI_MODEL_OPTIONS(m),
    };
    const struct cli_command c = { "generate",
                                   "MODEL --prompt TEXT | --ids LIST",
                                   "Continue a text. For conversations see: bezel chat",
                                   options,
                                   sizeof options / sizeof *options,
                                   1,
                                   1 };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    if (!a.ids == !a.prompt) return cli_misuse(&c, "give either --prompt or --ids");
    if (a.n > UINT32_MAX) return cli_misuse(&c, "--n is too large");
    if (cli_check_form(&c, &a.form)) return CLI_USAGE;
    struct bz_err err;
    int32_t *ids = NULL;
    size_t n = 0;
    bz_engine *e = NULL;
    bz_session *s = NULL;
    struct bz_bias bias[CLI_MAX_BIAS];
    struct bz_sampling p;
    enum bz_status st = a.ids ? cli_read_ids(a.ids, &ids, &n, &err) : BZ_OK;
    if (st == BZ_OK) st = cli_read_form(&a.form, &err);
    if (st == BZ_OK) st = cli_open(&m, model, &e, &s, &err);
    if (st == BZ_OK && a.prompt)
        st = bz_tokenize(e, a.prompt, strlen(a.prompt), true, false, &ids, &n, &err);
    if (st == BZ_OK && n == 0) st = fail(&err, BZ_ERR_ARGUMENT, "the prompt is empty");
    if (st == BZ_OK) st = cli_sampling(&sampling, e, bias, &p, &err);
    if (st == BZ_OK) st = run_generate(&a, e, s, &p, ids, n, &err);
    buf_free(&a.form.json);
    bz_free(ids);
    bz_session_close(s);
    bz_engine_close(e);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
