/* Any bytes as a GGUF file: opened or refused, and if opened, every accessor and every byte that it
 * hands out is touched. */
#include <stdlib.h>

#include "base/mem.h"
#include "io/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum; /* what is read goes somewhere */

static void touch(const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) sum += ((const uint8_t *)p)[i];
}

static void touch_kv(const struct gguf *g, const struct gguf_kv *kv)
{
    uint64_t u, cursor = 0, n_strs = 0;
    int64_t v = 0;
    double d;
    bool b;
    struct str s;
    char *key = mem_copy_str(kv->key.p, kv->key.n);
    if (gguf_find(g, key) != kv) abort();
    gguf_get_u64(g, key, &u);
    gguf_get_f64(g, key, &d);
    gguf_get_bool(g, key, &b);
    if (gguf_get_str(g, key, &s)) touch(s.p, s.n);
    mem_free(key);
    touch(kv->value, (size_t)kv->n_bytes);
    touch(gguf_type_name(kv->elem), 1);
    for (uint64_t i = 0; i < kv->n && i < 1000; i++) {
        if (gguf_at_i64(kv, i, &v) && !gguf_at_f64(kv, i, &d)) abort();
        sum += (uint64_t)v;
    }
    while (gguf_next_str(kv, &cursor, &s)) {
        touch(s.p, s.n);
        n_strs++;
    }
    if (kv->elem == GGUF_STRING && n_strs != kv->n) abort();
}

static void touch_tensor(const struct gguf *g, const struct gguf_tensor *t)
{
    touch(t->name.p, t->name.n);
    char *name = mem_copy_str(t->name.p, t->name.n);
    if (gguf_tensor_find(g, name) != t) abort();
    mem_free(name);
    if (t->shard >= g->n_sources || t->offset > g->sources[t->shard].size) abort();
    if (!t->n_bytes) return;
    const void *p = source_map(&g->sources[t->shard], t->offset, t->n_bytes);
    if (!p) abort();
    touch(p, (size_t)t->n_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    struct bz_err err = { "" };
    struct source s;
    struct gguf g = { 0 };
    if (source_open_memory(&s, "input", data, size, &err)) return 0;
    if (gguf_open(&g, &s, 1, &err) == BZ_OK) {
        for (uint64_t i = 0; i < g.n_kv; i++) touch_kv(&g, &g.kvs[i]);
        for (uint64_t i = 0; i < g.n_tensors; i++) touch_tensor(&g, &g.tensors[i]);
        gguf_close(&g);
    } else if (!err.text[0]) {
        abort();
    }
    if (mem_live() != live) abort();
    return 0;
}
