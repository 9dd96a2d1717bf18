/* gguf.c - the parser of GGUF headers.
 *
 *   "GGUF"  u32 version = 3  u64 n_tensors  u64 n_kv
 *   n_kv      x { string key; u32 type; value }
 *   n_tensors x { string name; u32 n_dims; u64 ne[n_dims]; u32 type; u64 offset }
 *   padding to general.alignment, then the data section that the offsets count from
 *
 *   string = u64 length, bytes        array = u32 element type, u64 count, elements
 *
 * The file does not say how long the header is. It is read in windows that double while it is
 * walked, every length is checked, and the tables grow with what was found. A count is used only as
 * far as the source has bytes to back it. The header may move while it grows, so until its end is
 * known the tables hold offsets in place of pointers.
 *
 * This file owns the rules of the container. It does not know what any key means to a model, except
 * those that describe the file itself (general.alignment, split.*).
 */
#include "io/gguf.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/le.h"
#include "base/mem.h"
#include "io/gguf_part.h"
#include "io/gguf_place.h"
#include "io/quote.h"
#include "quant/quant.h"

#define N_FIXED       24u /* magic, version, two counts */
#define MIN_KV        13u /* an empty key, its type, one byte of value */
#define MIN_TENSOR    24u /* an empty name, n_dims, type, offset */
#define MAX_NAME      65535u
#define MAX_DEPTH     8 /* arrays inside arrays */
#define MAX_HEADER    ((uint64_t)512 << 20)
#define FIRST_WINDOW  ((uint64_t)256 << 10)
#define MOST_WINDOW   ((uint64_t)4 << 20)  /* a large header is not read twice its size */
#define SMALL_HEADER  ((uint64_t)2 << 20)  /* an adapter's; a larger one holds a vocabulary, */
#define LARGE_HEADER  ((uint64_t)20 << 20) /* which mostly ends here, and need not move again */
#define FIRST_ENTRIES 64u
#define DEFAULT_ALIGN 32u

/* The header of one source while it is walked. */
struct head {
    const struct source *src;
    uint8_t *data;        /* its bytes so far */
    uint64_t room;        /* for how many */
    uint64_t n_have, pos; /* how many there are; where the walk stands */
    uint64_t n_kv, n_tensors;
    const char *kind; /* "key" or "tensor": what the walk is at, for sentences */
    uint64_t index;   /* which one */
    uint64_t name_at; /* where its name starts in data */
    size_t n_name;
};

/* What the walk is at: its name where that is known already, and its number where it is not. */
struct place {
    char z[sizeof(struct quoted) + 2];
};

static struct place here(const struct head *h)
{
    struct place q;
    struct str name = { (const char *)h->data + h->name_at, h->n_name };
    if (h->n_name) snprintf(q.z, sizeof q.z, "'%s'", quote(name).z);
    else snprintf(q.z, sizeof q.z, "number %" PRIu64, h->index + 1);
    return q;
}

static uint64_t n_left(const struct head *h)
{
    return h->src->size - h->pos;
}

static enum bz_status make_room(struct head *h, uint64_t n, struct bz_err *err)
{
    if (n <= h->room) return BZ_OK;
    uint64_t room = h->room < LARGE_HEADER ? LARGE_HEADER : 2 * h->room;
    if (room > h->src->size) room = h->src->size;
    if (room < n || n <= SMALL_HEADER) room = n;
    uint8_t *data = mem_grow(h->data, (size_t)room, 1);
    if (!data) return fail_memory(err, room);
    h->data = data;
    h->room = room;
    return BZ_OK;
}

/* Make the n bytes at pos part of data. */
static enum bz_status widen(struct head *h, uint64_t n, struct bz_err *err)
{
    if (n > n_left(h))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: %s %s reaches past the end of the file at byte %" PRIu64
                    ": it is cut off or damaged",
                    h->src->name, h->kind, here(h).z, h->src->size);
    uint64_t end = h->pos + n;
    if (end > MAX_HEADER)
        return fail(err, BZ_ERR_LIMIT, "%s: %s %s makes the header larger than %" PRIu64 " MiB",
                    h->src->name, h->kind, here(h).z, MAX_HEADER >> 20);
    uint64_t more = h->n_have < FIRST_WINDOW ? FIRST_WINDOW : h->n_have;
    uint64_t want = h->n_have + (more < MOST_WINDOW ? more : MOST_WINDOW);
    if (want < end) want = end;
    if (want > MAX_HEADER) want = MAX_HEADER;
    if (want > h->src->size) want = h->src->size;
    enum bz_status st = make_room(h, want, err);
    if (st == BZ_OK)
        st = source_read(h->src, h->n_have, h->data + h->n_have, (size_t)(want - h->n_have), err);
    if (st == BZ_OK) h->n_have = want;
    return st;
}

/* Step over n bytes; they are at data + pos - n afterwards. */
static inline enum bz_status take(struct head *h, uint64_t n, struct bz_err *err)
{
    if (n > h->n_have - h->pos) {
        enum bz_status st = widen(h, n, err);
        if (st) return st;
    }
    h->pos += n;
    return BZ_OK;
}

static enum bz_status take_u32(struct head *h, uint32_t *v, struct bz_err *err)
{
    enum bz_status st = take(h, 4, err);
    if (st == BZ_OK) *v = le_get32(h->data + h->pos - 4);
    return st;
}

static inline enum bz_status take_u64(struct head *h, uint64_t *v, struct bz_err *err)
{
    enum bz_status st = take(h, 8, err);
    if (st == BZ_OK) *v = le_get64(h->data + h->pos - 8);
    return st;
}

static inline enum bz_status take_string(struct head *h, struct bz_err *err)
{
    uint64_t n;
    enum bz_status st = take_u64(h, &n, err);
    return st ? st : take(h, n, err);
}

/* The key or name that starts an entry; from here on sentences can say it. */
static enum bz_status take_name(struct head *h, const char *kind, uint64_t index,
                                struct bz_err *err)
{
    h->kind = kind;
    h->index = index;
    h->n_name = 0;
    uint64_t n;
    enum bz_status st = take_u64(h, &n, err);
    if (st) return st;
    if (n > MAX_NAME)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: %s number %" PRIu64 " has a name of %" PRIu64 " bytes; %u are allowed",
                    h->src->name, kind, index + 1, n, MAX_NAME);
    st = take(h, n, err);
    if (st) return st;
    h->name_at = h->pos - n;
    h->n_name = (size_t)n;
    /* Writers and lookups take C strings: a longer name would be taken for its beginning. */
    if (memchr(h->data + h->name_at, 0, h->n_name))
        return fail(err, BZ_ERR_FORMAT, "%s: the name of %s %s holds a zero byte", h->src->name,
                    kind, here(h).z);
    return BZ_OK;
}

/* Its offset, until settle(). */
static struct str name_taken(const struct head *h)
{
    return (struct str) { (const char *)(uintptr_t)h->name_at, h->n_name };
}

static enum bz_status take_type(struct head *h, enum gguf_type *t, struct bz_err *err)
{
    uint32_t v;
    enum bz_status st = take_u32(h, &v, err);
    if (st) return st;
    if (v > GGUF_F64)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: key %s has a value of type %" PRIu32 ", which GGUF does not have",
                    h->src->name, here(h).z, v);
    *t = (enum gguf_type)v;
    return BZ_OK;
}

static enum bz_status take_array_start(struct head *h, enum gguf_type *elem, uint64_t *n,
                                       struct bz_err *err)
{
    enum bz_status st = take_type(h, elem, err);
    if (st == BZ_OK) st = take_u64(h, n, err);
    if (st) return st;
    uint32_t least = *elem == GGUF_STRING ? 8 : *elem == GGUF_ARRAY ? 12 : gguf_type_size(*elem);
    if (*n > n_left(h) / least)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: key %s claims %" PRIu64
                    " elements, more than the rest of the file can hold",
                    h->src->name, here(h).z, *n);
    return BZ_OK;
}

/* Step over n values of one type. */
static enum bz_status take_values(struct head *h, enum gguf_type t, uint64_t n, int depth,
                                  struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    if (t == GGUF_STRING) {
        for (uint64_t i = 0; i < n && st == BZ_OK; i++) st = take_string(h, err);
        return st;
    }
    if (t != GGUF_ARRAY) return take(h, n * gguf_type_size(t), err);
    if (depth == MAX_DEPTH)
        return fail(err, BZ_ERR_FORMAT, "%s: key %s has arrays nested more than %d deep",
                    h->src->name, here(h).z, MAX_DEPTH);
    for (uint64_t i = 0; i < n && st == BZ_OK; i++) {
        enum gguf_type elem;
        uint64_t n_elem;
        st = take_array_start(h, &elem, &n_elem, err);
        if (st == BZ_OK) st = take_values(h, elem, n_elem, depth + 1, err);
    }
    return st;
}

static enum bz_status take_kv(struct head *h, uint64_t index, struct gguf_kv *out,
                              struct bz_err *err)
{
    struct gguf_kv kv = { .n = 1 };
    enum bz_status st = take_name(h, "key", index, err);
    if (st == BZ_OK) st = take_type(h, &kv.type, err);
    if (st) return st;
    kv.elem = kv.type;
    if (kv.type == GGUF_ARRAY) st = take_array_start(h, &kv.elem, &kv.n, err);
    if (st) return st;
    uint64_t start = h->pos;
    st = take_values(h, kv.elem, kv.n, 1, err);
    if (st) return st;
    kv.key = name_taken(h);
    kv.value = (const uint8_t *)(uintptr_t)start; /* until settle() */
    kv.n_bytes = h->pos - start;
    *out = kv;
    return BZ_OK;
}

/* The offset stays relative to the data section until gguf_place_tensors. */
static enum bz_status take_tensor(struct head *h, uint64_t index, struct gguf_tensor *out,
                                  struct bz_err *err)
{
    struct gguf_tensor t = { .ne = { 1, 1, 1, 1 } };
    enum bz_status st = take_name(h, "tensor", index, err);
    if (st == BZ_OK) st = take_u32(h, &t.n_dims, err);
    if (st) return st;
    if (t.n_dims > 4)
        return fail(err, BZ_ERR_FORMAT, "%s: tensor %s has %" PRIu32 " dimensions; 4 are allowed",
                    h->src->name, here(h).z, t.n_dims);
    for (uint32_t i = 0; i < t.n_dims && st == BZ_OK; i++) st = take_u64(h, &t.ne[i], err);
    if (st == BZ_OK) st = take_u32(h, &t.type, err);
    if (st == BZ_OK) st = take_u64(h, &t.offset, err);
    if (st) return st;
    t.name = name_taken(h);
    *out = t;
    return BZ_OK;
}

/* Magic, version and counts. */
static enum bz_status take_start(struct head *h, struct bz_err *err)
{
    const char *name = h->src->name;
    if (h->src->size < N_FIXED)
        return fail(err, BZ_ERR_FORMAT, "%s: not a GGUF file: it has only %" PRIu64 " bytes", name,
                    h->src->size);
    enum bz_status st = take(h, N_FIXED, err);
    if (st) return st;
    const uint8_t *p = h->data;
    if (memcmp(p, "GGUF", 4) != 0)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: not a GGUF file: it starts with the bytes %02x %02x %02x %02x", name, p[0],
                    p[1], p[2], p[3]);
    uint32_t version = le_get32(p + 4);
    if (version && (version & 0xffff) == 0)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s: a big-endian GGUF file; this build reads little-endian ones", name);
    if (version == 1 || version == 2)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s: GGUF version %" PRIu32
                    " is from 2023; convert the model again to get version 3",
                    name, version);
    if (version != 3)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s: GGUF version %" PRIu32 "; this build reads version 3", name, version);
    h->n_tensors = le_get64(p + 8);
    h->n_kv = le_get64(p + 16);
    if (h->n_kv > n_left(h) / MIN_KV || h->n_tensors > n_left(h) / MIN_TENSOR)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: claims %" PRIu64 " keys and %" PRIu64 " tensors, more than its %" PRIu64
                    " bytes can hold",
                    name, h->n_kv, h->n_tensors, h->src->size);
    return BZ_OK;
}

/* Room for one more in a table of n entries. */
static enum bz_status grow_table(void **table, uint64_t n, uint64_t *cap, size_t size,
                                 struct bz_err *err)
{
    if (n < *cap) return BZ_OK;
    *cap = n ? 2 * n : FIRST_ENTRIES;
    void *grown = mem_grow(*table, (size_t)*cap, size);
    if (!grown) return fail_memory(err, *cap * size);
    *table = grown;
    return BZ_OK;
}

static enum bz_status walk(struct head *h, struct gguf_part *p, struct bz_err *err)
{
    struct gguf *m = &p->meta;
    enum bz_status st = BZ_OK;
    for (uint64_t cap = 0; m->n_kv < h->n_kv && st == BZ_OK; m->n_kv++) {
        st = grow_table((void **)&m->kvs, m->n_kv, &cap, sizeof *m->kvs, err);
        if (st == BZ_OK) st = take_kv(h, m->n_kv, &m->kvs[m->n_kv], err);
    }
    for (uint64_t cap = 0; p->n_tensors < h->n_tensors && st == BZ_OK; p->n_tensors++) {
        st = grow_table((void **)&p->tensors, p->n_tensors, &cap, sizeof *p->tensors, err);
        if (st == BZ_OK) st = take_tensor(h, p->n_tensors, &p->tensors[p->n_tensors], err);
    }
    return st;
}

/* The header stays where it is now: offsets become pointers. */
static void settle(struct gguf_part *p)
{
    const uint8_t *data = p->head;
    for (uint64_t i = 0; i < p->meta.n_kv; i++) {
        struct gguf_kv *kv = &p->meta.kvs[i];
        kv->key.p = (const char *)data + (uintptr_t)kv->key.p;
        kv->value = data + (uintptr_t)kv->value;
    }
    for (uint64_t i = 0; i < p->n_tensors; i++)
        p->tensors[i].name.p = (const char *)data + (uintptr_t)p->tensors[i].name.p;
}

/* The header block and the tables belong to p, whatever happens. */
static enum bz_status read_tables(struct gguf_part *p, struct bz_err *err)
{
    struct head h = { .src = &p->src };
    enum bz_status st = take_start(&h, err);
    if (st == BZ_OK) st = walk(&h, p, err);
    p->head = h.data;
    if (st) return st;
    uint8_t *fitted = mem_grow(h.data, (size_t)h.pos, 1);
    if (!fitted) return fail_memory(err, h.pos);
    p->head = fitted;
    p->meta.header_bytes = h.pos;
    settle(p);
    return BZ_OK;
}

static enum bz_status index_keys(struct gguf_part *p, struct bz_err *err)
{
    struct gguf *m = &p->meta;
    if (!strmap_init(&m->by_key, (size_t)m->n_kv))
        return fail_memory(err, m->n_kv * sizeof(struct strmap_slot));
    for (uint64_t i = 0; i < m->n_kv; i++)
        if (!strmap_add(&m->by_key, m->kvs[i].key, (uint32_t)i))
            return fail(err, BZ_ERR_FORMAT, "%s: key '%s' appears twice", p->src.name,
                        quote(m->kvs[i].key).z);
    return BZ_OK;
}

/* Where the data section starts becomes meta.header_bytes. */
static enum bz_status find_data(struct gguf_part *p, uint64_t *align, struct bz_err *err)
{
    *align = DEFAULT_ALIGN;
    if (gguf_find(&p->meta, "general.alignment") &&
        !gguf_get_u64(&p->meta, "general.alignment", align))
        return fail(err, BZ_ERR_FORMAT, "%s: key 'general.alignment' is not a whole number",
                    p->src.name);
    if (*align == 0 || (*align & (*align - 1)))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: key 'general.alignment' is %" PRIu64 ", which is not a power of two",
                    p->src.name, *align);
    uint64_t n;
    if (!size_add(p->meta.header_bytes, *align - 1, &n))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: key 'general.alignment' is %" PRIu64 ", larger than any file", p->src.name,
                    *align);
    p->meta.header_bytes = n & ~(*align - 1);
    return BZ_OK;
}

static enum bz_status parse_part(struct gguf_part *p, struct bz_err *err)
{
    enum bz_status st = read_tables(p, err);
    if (st == BZ_OK) st = index_keys(p, err);
    uint64_t align = 0;
    if (st == BZ_OK) st = find_data(p, &align, err);
    if (st) return st;
    return gguf_place_tensors(p->tensors, p->n_tensors, &p->src, p->meta.header_bytes, align, err);
}

static void free_part(struct gguf_part *p)
{
    source_close(&p->src);
    mem_free(p->head);
    mem_free(p->meta.kvs);
    mem_free(p->tensors);
    strmap_free(&p->meta.by_key);
}

static enum bz_status open_parts(struct gguf *g, struct gguf_part *parts, uint32_t n,
                                 struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    for (uint32_t i = 0; i < n && st == BZ_OK; i++) st = parse_part(&parts[i], err);
    if (st == BZ_OK) st = gguf_join_parts(g, parts, n, err);
    return st;
}

enum bz_status gguf_open(struct gguf *out, const struct source *sources, uint32_t n_sources,
                         struct bz_err *err)
{
    struct gguf g = { 0 };
    struct gguf_part *parts = mem_alloc(n_sources, sizeof *parts);
    enum bz_status st = BZ_OK;
    if (!parts) st = fail_memory(err, n_sources * sizeof *parts);
    else if (n_sources == 0 || n_sources > GGUF_MAX_SHARDS)
        st = fail(err, BZ_ERR_ARGUMENT, "a model cannot have %" PRIu32 " files; it has 1 to %d",
                  n_sources, GGUF_MAX_SHARDS);
    for (uint32_t i = 0; i < n_sources; i++) {
        struct source s = sources[i];
        if (parts) parts[i].src = s;
        else source_close(&s);
    }
    if (st == BZ_OK) st = open_parts(&g, parts, n_sources, err);
    for (uint32_t i = 0; parts && i < n_sources; i++) free_part(&parts[i]);
    mem_free(parts);
    if (st) {
        gguf_close(&g);
        return st;
    }
    *out = g;
    return BZ_OK;
}

void gguf_close(struct gguf *g)
{
    for (uint32_t i = 0; i < g->n_sources; i++) {
        source_close(&g->sources[i]);
        mem_free(g->heads[i]);
    }
    mem_free(g->sources);
    mem_free(g->heads);
    mem_free(g->kvs);
    mem_free(g->tensors);
    strmap_free(&g->by_key);
    strmap_free(&g->by_name);
    *g = (struct gguf) { 0 };
}
