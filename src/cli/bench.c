/* bench.c - llama-bench's table: prompt processing (ppN) and token generation (tgN). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cli/cli_model.h"

#define DASHES "--------------------------------"

struct bench {
    bz_engine *e;
    bz_session *s;
    struct bz_info info;
    uint64_t repeats, depth, n_steps; /* n_steps: of a canvas */
};

/* Random tokens: what they are does not matter to the speed. */
static int32_t *random_ids(uint64_t n, uint32_t n_vocab)
{
    struct rng r = { 1 };
    int32_t *ids = mem_alloc(n, sizeof *ids);
    for (uint64_t i = 0; ids && i < n; i++) ids[i] = (int32_t)rng_below(&r, n_vocab);
    return ids;
}

/* A canvas after the depth, in n_steps steps whatever becomes of it. */
static enum bz_status denoise(struct bench *b, const int32_t *ids, struct bz_err *err)
{
    struct bz_diffusion how = bz_diffusion_defaults(b->e);
    struct bz_generate_options o = { .diffusion = &how };
    struct bz_generated g = { 0 };
    how.n_steps = (uint32_t)b->n_steps;
    how.n_canvases = 1;
    how.confidence = 0; /* below which nothing is */
    enum bz_status st = b->depth ? BZ_OK : bz_session_feed(b->s, ids, 1, 0, NULL, NULL, err);
    if (st == BZ_OK) st = bz_generate(b->s, &o, &g, err);
    if (st || g.n_steps == b->n_steps) return st;
    return fail(err, BZ_ERR_LIMIT,
                "a canvas of %u tokens does not fit after %llu; --ctx makes room", b->info.n_canvas,
                (unsigned long long)b->depth);
}

/* Seconds for n tokens: together (prompt, logits of the last) or one by one (generation). A
 * diffusion model generates a canvas. */
static enum bz_status run_once(struct bench *b, const int32_t *ids, uint64_t n, bool one_by_one,
                               double *seconds, struct bz_err *err)
{
    uint32_t kept;
    enum bz_status st = bz_session_truncate(b->s, 0, &kept, err);
    if (st == BZ_OK) st = bz_session_feed(b->s, ids, b->depth, 0, NULL, NULL, err);
    double start = cli_now();
    if (!one_by_one && st == BZ_OK)
        st = bz_session_feed(b->s, ids + b->depth, n, 1, NULL, NULL, err);
    if (one_by_one && b->info.n_canvas && st == BZ_OK) st = denoise(b, ids, err);
    for (uint64_t i = 0; one_by_one && !b->info.n_canvas && st == BZ_OK && i < n; i++)
        st = bz_session_feed(b->s, ids + b->depth + i, 1, 1, NULL, NULL, err);
    *seconds = cli_now() - start;
    return st;
}

static enum bz_status run_row(struct bench *b, const char *model, uint64_t n, bool one_by_one,
                              struct bz_err *err)
{
    int32_t *ids = random_ids(b->depth + n, b->info.n_vocab);
    if (!ids) return fail_memory(err, n * sizeof *ids);
    double sum = 0, squares = 0, seconds;
    enum bz_status st = run_once(b, ids, one_by_one && n > 1 ? 1 : n, one_by_one, &seconds, err);
    for (uint64_t i = 0; st == BZ_OK && i < b->repeats; i++) {
        st = run_once(b, ids, n, one_by_one, &seconds, err);
        double rate = (double)n / seconds;
        sum += rate;
        squares += rate * rate;
    }
    mem_free(ids);
    if (st) return st;
    double mean = sum / (double)b->repeats;
    double spread = sqrt(fmax(0, squares / (double)b->repeats - mean * mean));
    char test[128], depth[32] = "", rate[40], bandwidth[24] = "";
    bool canvas = one_by_one && b->info.n_canvas;
    char steps[32] = "";
    if (canvas) snprintf(steps, sizeof steps, "/%llu", (unsigned long long)b->n_steps);
    if (b->depth) snprintf(depth, sizeof depth, " @ d%llu", (unsigned long long)b->depth);
    snprintf(test, sizeof test, "%s%llu%s%s", one_by_one ? "tg" : "pp", (unsigned long long)n,
             steps, depth);
    snprintf(rate, sizeof rate, "%.2f ± %.2f", mean, spread);
    if (one_by_one && !canvas)
        snprintf(bandwidth, sizeof bandwidth, "%.2f GB/s",
                 mean * (double)b->info.bytes_a_token / 1e9);
    printf("| %-30.30s | %8.2f GiB | %8.2f B | %-14s | %18s | %12s |\n", model,
           (double)b->info.weight_bytes / 0x1p30, (double)b->info.n_params / 1e9, test, rate,
           bandwidth);
    fflush(stdout);
    return BZ_OK;
}

int cmd_bench(int argc, char **argv)
{
    struct cli_model m = CLI_MODEL_DEFAULTS;
    uint64_t pp = 512, tg = 128;
    struct bench b = { .repeats = 3, .n_steps = 20 };
    const char *model;
    const struct cli_option options[] = {
        { "--pp", "N", "prompt tokens; 0 leaves the row out; default 512", CLI_U64, &pp, NULL },
        { "--tg", "N", "generated tokens; 0 leaves the row out; default 128", CLI_U64, &tg, NULL },
        { "--steps", "N", "steps of a diffusion model's canvas; default 20", CLI_U64, &b.n_steps,
          NULL },
        { "--depth", "N", "tokens already in the context; default 0", CLI_U64, &b.depth, NULL },
        { "--repeats", "N", "measurements of each row; default 3", CLI_U64, &b.repeats, NULL },
        CLI_MODEL_OPTIONS(m),
    };
    const struct cli_command c = {
        "bench",
        "MODEL",
        "Speed of reading a prompt (ppN) and of generating (tgN), tokens a "
        "second, after a\nwarm-up: mean and standard deviation. Of a diffusion model "
        "tgN/S: a canvas of N\ntokens in S steps.",
        options,
        sizeof options / sizeof *options,
        1,
        1
    };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    if (b.n_steps < 1 || b.n_steps > 1024)
        return cli_misuse(&c, "--steps must be between 1 and 1024");
    if (!b.repeats) return cli_misuse(&c, "--repeats must be at least 1");
    struct bz_err err;
    if (!m.n_context) m.n_context = b.depth + (pp > tg ? pp : tg) + 1;
    enum bz_status st = cli_open(&m, model, &b.e, &b.s, &err);
    if (st == BZ_OK) {
        const char *name = strrchr(model, '/') ? strrchr(model, '/') + 1 : model;
        b.info = bz_engine_info(b.e);
        printf("| %-30s | %12s | %10s | %-14s | %17s | %12s |\n", "model", "size", "params", "test",
               "tok/s", "weights read");
        printf("|%.32s|%.14s|%.12s|%.16s|%.19s|%.14s|\n", DASHES, DASHES, DASHES, DASHES, DASHES,
               DASHES);
        if (pp) st = run_row(&b, name, pp, false, &err);
        uint64_t n = b.info.n_canvas ? b.info.n_canvas : tg;
        if (st == BZ_OK && tg) st = run_row(&b, name, n, true, &err);
    }
    bz_session_close(b.s);
    bz_engine_close(b.e);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
