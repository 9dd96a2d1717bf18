/* diffuse.c - continue a text with a diffusion model, every step of its canvases in reach. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/cli_model.h"
#include "cli/script.h"
#include "cli/watch.h"
#include "io/source.h"

struct diffuse_args {
    const char *ids, *prompt, *script;
    bool chat, thinking, json, watch, stats, specials;
    bool set_steps, set_bound, set_confidence, set_stable, set_t_min, set_t_max, set_seed;
    uint64_t n_steps, n_stable, n_canvases, n_max, seed;
    double bound, confidence, t_min, t_max;
};

struct diffuse {
    const struct diffuse_args *args;
    bz_engine *e;
    bz_session *s;
    struct bz_diffusion how;
    struct script script;
    struct watch watch;
    struct buf text, canvases; /* of --json */
};

/* ---- what comes out ---- */

static bool on_text(void *ctx, const char *text, size_t n)
{
    struct diffuse *d = ctx;
    if (d->args->json) {
        buf_put(&d->text, text, n);
        return !d->text.failed;
    }
    if (d->args->watch) watch_end(&d->watch);
    return cli_put_text((struct str) { text, n });
}

static bool on_step(void *ctx, const struct bz_canvas *c)
{
    struct diffuse *d = ctx;
    if (c->stopped)
        buf_printf(&d->canvases, "%s{\"steps\":%u,\"stopped\":\"%s\"}", c->canvas ? "," : "",
                   c->step, c->stopped == BZ_CANVAS_STABLE ? "stable" : "steps");
    return !d->args->watch || watch_step(&d->watch, c);
}

static enum bz_status print_json(struct diffuse *d, const struct bz_generated *g,
                                 struct bz_err *err)
{
    struct buf out = { 0 };
    const int32_t *tokens = bz_session_tokens(d->s, NULL);
    buf_puts(&out, "{\"ids\":[");
    for (size_t i = 0; i < g->n; i++) buf_printf(&out, "%s%d", i ? "," : "", tokens[g->first + i]);
    buf_puts(&out, "],\"text\":");
    json_put_string(&out, buf_str(&d->text));
    buf_puts(&out, ",\"canvases\":[");
    buf_put_str(&out, buf_str(&d->canvases));
    buf_puts(&out, "]}\n");
    bool failed = out.failed || d->canvases.failed;
    if (!failed) fwrite(out.data, 1, out.n, stdout);
    buf_free(&out);
    return failed ? fail_memory(err, d->canvases.n) : BZ_OK;
}

/* ---- what goes in ---- */

static uint32_t clipped(uint64_t v)
{
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static struct bz_diffusion choose(const struct diffuse_args *a, const bz_engine *e)
{
    struct bz_diffusion d = bz_diffusion_defaults(e);
    if (a->set_steps) d.n_steps = clipped(a->n_steps);
    if (a->set_stable) d.n_stable = clipped(a->n_stable);
    if (a->set_bound) d.entropy_bound = (float)a->bound;
    if (a->set_confidence) d.confidence = (float)a->confidence;
    if (a->set_t_min) d.t_min = (float)a->t_min;
    if (a->set_t_max) d.t_max = (float)a->t_max;
    d.n_canvases = clipped(a->n_canvases);
    return d;
}

static enum bz_status read_script(struct diffuse *d, const struct bz_info *info, struct bz_err *err)
{
    struct source file;
    enum bz_status st = source_open_file(&file, d->args->script, err);
    if (st) return st;
    char *text = mem_alloc(file.size, 1);
    st = text ? source_read(&file, 0, text, (size_t)file.size, err)
              : fail_memory(err, (size_t)file.size);
    if (st == BZ_OK) {
        st = script_read(&d->script, (struct str) { text, (size_t)file.size }, info->n_canvas,
                         info->n_vocab, err);
        if (st) fail_prefix(err, st, "%s", d->args->script);
    }
    mem_free(text);
    source_close(&file);
    if (st) return st;
    d->how.random = d->script.random;
    d->how.n_random = d->script.n_random;
    d->how.sampled = d->script.sampled;
    d->how.n_sampled = d->script.n_sampled;
    return BZ_OK;
}

/* The text to continue: ids, or a prompt as it is, or one as a question. */
static enum bz_status read_prompt(const struct diffuse *d, int32_t **ids, size_t *n,
                                  struct bz_err *err)
{
    const struct diffuse_args *a = d->args;
    if (a->ids) return cli_read_ids(a->ids, ids, n, err);
    if (!a->chat) return bz_tokenize(d->e, a->prompt, strlen(a->prompt), true, false, ids, n, err);
    struct buf json = { 0 };
    struct bz_chat_options o = { .variant = bz_engine_info(d->e).chat_variant,
                                 .thinking = a->thinking };
    buf_puts(&json, "{\"messages\":[{\"role\":\"user\",\"content\":");
    json_put_string(&json, str_of(a->prompt));
    buf_puts(&json, "}]}");
    enum bz_status st = json.failed
                            ? fail_memory(err, json.n)
                            : bz_chat_tokenize(d->e, json.data, json.n, &o, ids, n, NULL, err);
    buf_free(&json);
    return st;
}

static enum bz_status diffuse(struct diffuse *d, const int32_t *ids, size_t n, struct bz_err *err)
{
    const struct diffuse_args *a = d->args;
    struct bz_generate_options o = bz_generate_defaults(d->e);
    d->how.on_step = on_step;
    d->how.ctx = d;
    o.diffusion = &d->how;
    if (a->set_seed || !o.sampling.seed)
        o.sampling.seed = a->set_seed ? a->seed : (uint64_t)time(NULL) * 1000003u;
    if (a->n_max) o.n_max = clipped(a->n_max);
    o.specials = a->specials;
    o.on_text = on_text;
    o.ctx = d;
    watch_begin(&d->watch, d->e, d->how.n_steps);
    struct bz_generated g = { 0 };
    enum bz_status st = bz_session_feed(d->s, ids, n, 0, NULL, NULL, err);
    double start = cli_now();
    if (st == BZ_OK) st = bz_generate(d->s, &o, &g, err);
    double seconds = cli_now() - start;
    watch_end(&d->watch);
    if (st == BZ_OK && a->json) st = print_json(d, &g, err);
    else if (st == BZ_OK) putchar('\n');
    if (st == BZ_OK && g.stop == BZ_STOP_CONTEXT)
        fprintf(stderr, "(the context is full; --ctx N makes it larger)\n");
    if (st == BZ_OK && a->stats)
        fprintf(stderr, "%zu tokens, %u canvases, %u steps, %.1f ms a step, %.2f tok/s\n", g.n,
                g.n_canvases, g.n_steps, 1000 * seconds / (g.n_steps ? g.n_steps : 1),
                (double)g.n / seconds);
    return st;
}

static enum bz_status run(struct diffuse *d, const struct cli_model *m, const char *model,
                          struct bz_err *err)
{
    int32_t *ids = NULL;
    size_t n = 0;
    enum bz_status st = cli_open(m, model, &d->e, &d->s, err);
    if (st) return st;
    struct bz_info info = bz_engine_info(d->e);
    d->how = choose(d->args, d->e);
    if (!info.n_canvas)
        st = fail(err, BZ_ERR_ARGUMENT,
                  "this model writes one token after the other; see: bezel "
                  "generate");
    if (st == BZ_OK && d->args->script) st = read_script(d, &info, err);
    if (st == BZ_OK) st = read_prompt(d, &ids, &n, err);
    if (st == BZ_OK) st = diffuse(d, ids, n, err);
    mem_free(ids);
    script_free(&d->script);
    buf_free(&d->text);
    buf_free(&d->canvases);
    bz_session_close(d->s);
    bz_engine_close(d->e);
    return st;
}

int cmd_diffuse(int argc, char **argv)
{
    struct cli_model m = CLI_MODEL_DEFAULTS;
    struct diffuse_args a = { 0 };
    const char *model;
    const struct cli_option options[] = {
        { "--prompt", "TEXT", "text to continue (special tokens are parsed)", CLI_STR, &a.prompt,
          NULL },
        { "--ids", "LIST", "token ids to continue instead", CLI_STR, &a.ids, NULL },
        { "--chat", NULL, "the prompt is a question to answer", CLI_FLAG, &a.chat, NULL },
        { "--thinking", NULL, "with --chat: let the model think first", CLI_FLAG, &a.thinking,
          NULL },
        { "--steps", "N", "steps of a canvas at most", CLI_U64, &a.n_steps, &a.set_steps },
        { "--entropy-bound", "X", "nats that the accepted positions may have together", CLI_F64,
          &a.bound, &a.set_bound },
        { "--confidence", "X", "mean nats below which a stable canvas is finished", CLI_F64,
          &a.confidence, &a.set_confidence },
        { "--stability", "K", "steps that must leave the best tokens as they are", CLI_U64,
          &a.n_stable, &a.set_stable },
        { "--t-max", "X", "temperature of the first step", CLI_F64, &a.t_max, &a.set_t_max },
        { "--t-min", "X", "temperature that the steps go down to", CLI_F64, &a.t_min,
          &a.set_t_min },
        { "--canvases", "N", "canvases at most; default until the model ends", CLI_U64,
          &a.n_canvases, NULL },
        { "--n", "N", "tokens at most", CLI_U64, &a.n_max, NULL },
        { "--seed", "N", "same seed, same text", CLI_U64, &a.seed, &a.set_seed },
        { "--script", "FILE",
          "tokens to use instead of random ones: JSON {\"random\": [[...], "
          "...],\n\"sampled\": [[...], ...]}, canvases and draws in the order of use",
          CLI_STR, &a.script, NULL },
        { "--watch", NULL, "show the canvas after every step", CLI_FLAG, &a.watch, NULL },
        { "--specials", NULL, "show control tokens too", CLI_FLAG, &a.specials, NULL },
        { "--json", NULL, "print {\"ids\", \"text\", \"canvases\"} at the end", CLI_FLAG, &a.json,
          NULL },
        { "--stats", NULL, "speed, on standard error", CLI_FLAG, &a.stats, NULL },
        CLI_MODEL_OPTIONS(m),
    };
    const struct cli_command c = { "diffuse",
                                   "MODEL --prompt TEXT | --ids LIST",
                                   "Continue a text with a diffusion model. What is not said, the "
                                   "file says.",
                                   options,
                                   sizeof options / sizeof *options,
                                   1,
                                   1 };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    if (!a.ids == !a.prompt) return cli_misuse(&c, "give either --prompt or --ids");
    if (a.chat && a.ids) return cli_misuse(&c, "--chat takes a --prompt");
    if (a.json && a.watch) return cli_misuse(&c, "--watch and --json exclude each other");
    struct bz_err err;
    struct diffuse d = { .args = &a };
    enum bz_status st = run(&d, &m, model, &err);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
