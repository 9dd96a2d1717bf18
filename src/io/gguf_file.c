/* gguf_file.c - GGUF models on disk: a path, and where the other files of a split model are.
 *
 * A shard is named NAME-00002-of-00005.gguf (two numbers of five digits, counted from 1). Whichever
 * of them is opened, the siblings are looked for in the same directory.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "io/gguf.h"

#define N_SUFFIX 20u /* of "-00002-of-00005.gguf" */

static bool five_digits(const char *p, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < 5; i++) {
        if (p[i] < '0' || p[i] > '9') return false;
        v = 10 * v + (uint32_t)(p[i] - '0');
    }
    *out = v;
    return true;
}

/* How many files the name speaks of; 1 when it is not a shard's. */
static uint32_t count_shards(struct str path)
{
    if (path.n <= N_SUFFIX) return 1;
    const char *p = path.p + path.n - N_SUFFIX;
    uint32_t no, count;
    if (p[0] != '-' || !five_digits(p + 1, &no) || memcmp(p + 6, "-of-", 4) != 0 ||
        !five_digits(p + 10, &count) || memcmp(p + 15, ".gguf", 5) != 0)
        return 1;
    return no >= 1 && no <= count ? count : 1;
}

static enum bz_status open_shards(struct source *sources, uint32_t n, struct str path,
                                  struct bz_err *err)
{
    struct str stem = { path.p, path.n - N_SUFFIX };
    for (uint32_t i = 0; i < n; i++) {
        struct buf name = { 0 };
        buf_put_str(&name, stem);
        buf_printf(&name, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", i + 1, n);
        enum bz_status st = name.failed ? fail_memory(err, path.n + 1)
                                        : source_open_file(&sources[i], name.data, err);
        buf_free(&name);
        if (st == BZ_ERR_NOT_FOUND)
            fail_prefix(err, st, "part %" PRIu32 " of %" PRIu32 " of a split model", i + 1, n);
        if (st) return st;
    }
    return BZ_OK;
}

enum bz_status gguf_open_file(struct gguf *out, const char *path, struct bz_err *err)
{
    uint32_t n = count_shards(str_of(path));
    if (n > GGUF_MAX_SHARDS)
        return fail(err, BZ_ERR_LIMIT,
                    "%s: %" PRIu32 " files are more than the %d that can be read", path, n,
                    GGUF_MAX_SHARDS);
    struct source *sources = mem_alloc(n, sizeof *sources);
    if (!sources) return fail_memory(err, n * sizeof *sources);
    enum bz_status st =
        n == 1 ? source_open_file(sources, path, err) : open_shards(sources, n, str_of(path), err);
    if (st == BZ_OK) {
        st = gguf_open(out, sources, n, err);
    } else {
        for (uint32_t i = 0; i < n; i++) source_close(&sources[i]);
    }
    mem_free(sources);
    return st;
}
