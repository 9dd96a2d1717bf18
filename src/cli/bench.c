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
    uint64_t repeats, depth;
};

/* Random tokens: what they are does not matter to the speed. */
static int32_t *random_ids(uint64_t n, uint32_t n_vocab)
{
    struct rng r = { 1 };
    int32_t *ids = mem_alloc(n, sizeof *ids);
    for (uint64_t i = 0; ids && i < n; i++) ids[i] = (int32_t)rng_below(&r, n_vocab);
    return ids;
}

/* Seconds for n tokens: together (prompt, logits of the last) or one by one (generation). */
static enum bz_status run_once(struct bench *b, const int32_t *ids, uint64_t n, bool one_by_one,
                               double *seconds, struct bz_err *err)
{
    uint32_t kept;
    enum bz_status st = bz_session_truncate(b->s, 0, &kept, err);
    if (st == BZ_OK) st = bz_session_feed(b->s, ids, b->depth, 0, NULL, NULL, err);
    double start = cli_now();
    if (!one_by_one && st == BZ_OK)
        st = bz_session_feed(b->s, ids + b->depth, n, 1, NULL, NULL, err);
    for (uint64_t i = 0; one_by_one && st == BZ_OK && i < n; i++)
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
    char test[64], depth[32] = "", rate[40], bandwidth[24] = "";
    if (b->depth) snprintf(depth, sizeof depth, " @ d%llu", (unsigned long long)b->depth);
    snprintf(test, sizeof test, "%s%llu%s", one_by_one ? "tg" : "pp", (unsigned long long)n, depth);
    snprintf(rate, sizeof rate, "%.2f ± %.2f", mean, spread);
    if (one_by_one)
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
    struct bench b = { .repeats = 3 };
    const char *model;
    const struct cli_option options[] = {
        { "--pp", "N", "prompt tokens; 0 leaves the row out; default 512", CLI_U64, &pp, NULL },
        { "--tg", "N", "generated tokens; 0 leaves the row out; default 128", CLI_U64, &tg, NULL },
        { "--depth", "N", "tokens already in the context; default 0", CLI_U64, &b.depth, NULL },
        { "--repeats", "N", "measurements of each row; default 3", CLI_U64, &b.repeats, NULL },
        CLI_MODEL_OPTIONS(m),
    };
    const struct cli_command c = {
        "bench",
        "MODEL",
        "Speed of reading a prompt (ppN) and of generating (tgN), tokens a "
        "second, after a\nwarm-up: mean and standard deviation.",
        options,
        sizeof options / sizeof *options,
        1,
        1
    };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
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
        if (st == BZ_OK && tg) st = run_row(&b, name, tg, true, &err);
    }
    bz_session_close(b.s);
    bz_engine_close(b.e);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
