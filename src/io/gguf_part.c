/* gguf_part.c - the parts of a split model put in order and joined. */
#include "io/gguf_part.h"

#include <inttypes.h>

#include "base/mem.h"
#include "io/quote.h"

/* Does the part say that it is one of n? A file that says nothing is whole. */
static enum bz_status check_split(struct gguf_part *p, uint32_t n, struct bz_err *err)
{
    uint64_t count = 1;
    gguf_get_u64(&p->meta, "split.count", &count);
    gguf_get_u64(&p->meta, "split.no", &p->no);
    if (count == n || (count == 0 && n == 1)) return BZ_OK;
    if (count <= 1)
        return fail(err, BZ_ERR_FORMAT, "%s: is a whole model and not one of %" PRIu32 " parts",
                    p->src.name, n);
    return fail(err, BZ_ERR_FORMAT,
                "%s: is part %" PRIu64 " of %" PRIu64 " of a split model, but %" PRIu32 " %s given",
                p->src.name, p->no + 1, count, n, n == 1 ? "file was" : "files were");
}

static enum bz_status sort_parts(struct gguf_part *parts, uint32_t n, struct bz_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        enum bz_status st = check_split(&parts[i], n, err);
        if (st) return st;
    }
    for (uint32_t i = 0; i < n && n > 1; i++) {
        uint32_t j = i;
        while (j < n && parts[j].no != i) j++;
        if (j == n)
            return fail(err, BZ_ERR_FORMAT,
                        "%s: part %" PRIu32 " of %" PRIu32 " of this split model is missing",
                        parts[0].src.name, i + 1, n);
        struct gguf_part swap = parts[i];
        parts[i] = parts[j];
        parts[j] = swap;
    }
    return BZ_OK;
}

/* Shard after shard into one list of tensors with unique names. */
static enum bz_status merge_tensors(struct gguf *g, const struct gguf_part *parts, uint32_t n,
                                    struct bz_err *err)
{
    uint64_t total = 0, want;
    for (uint32_t i = 0; i < n; i++) total += parts[i].n_tensors;
    if (total > UINT32_MAX)
        return fail(err, BZ_ERR_LIMIT, "%s: %" PRIu64 " tensors are more than this build can index",
                    parts[0].src.name, total);
    if (n > 1 && gguf_get_u64(&parts[0].meta, "split.tensors.count", &want) && want != total)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: the split model should have %" PRIu64
                    " tensors, but its parts hold %" PRIu64,
                    parts[0].src.name, want, total);
    g->tensors = mem_alloc((size_t)total, sizeof *g->tensors);
    if (!g->tensors || !strmap_init(&g->by_name, (size_t)total))
        return fail_memory(err, total * (sizeof *g->tensors + sizeof(struct strmap_slot)));
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < parts[i].n_tensors; k++) {
            struct gguf_tensor *t = &g->tensors[g->n_tensors];
            *t = parts[i].tensors[k];
            t->shard = i;
            if (!strmap_add(&g->by_name, t->name, (uint32_t)g->n_tensors))
                return fail(err, BZ_ERR_FORMAT, "%s: tensor '%s' appears twice", parts[i].src.name,
                            quote(t->name).z);
            g->n_tensors++;
        }
    }
    return BZ_OK;
}

/* The last step, which cannot fail once its arrays are there: what g keeps of the parts. */
static enum bz_status adopt(struct gguf *g, struct gguf_part *parts, uint32_t n, struct bz_err *err)
{
    g->sources = mem_alloc(n, sizeof *g->sources);
    g->heads = mem_alloc(n, sizeof *g->heads);
    if (!g->sources || !g->heads)
        return fail_memory(err, n * (sizeof *g->sources + sizeof *g->heads));
    g->n_sources = n;
    for (uint32_t i = 0; i < n; i++) {
        g->sources[i] = parts[i].src;
        g->heads[i] = parts[i].head;
        parts[i].src = (struct source) { 0 };
        parts[i].head = NULL;
    }
    g->kvs = parts[0].meta.kvs;
    g->n_kv = parts[0].meta.n_kv;
    g->by_key = parts[0].meta.by_key;
    g->header_bytes = parts[0].meta.header_bytes;
    parts[0].meta = (struct gguf) { 0 };
    return BZ_OK;
}

enum bz_status gguf_join_parts(struct gguf *g, struct gguf_part *parts, uint32_t n,
                               struct bz_err *err)
{
    enum bz_status st = sort_parts(parts, n, err);
    if (st == BZ_OK) st = merge_tensors(g, parts, n, err);
    if (st == BZ_OK) st = adopt(g, parts, n, err);
    return st;
}
