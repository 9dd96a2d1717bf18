#include "model/kv.h"

#include <inttypes.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/sha256.h"

static uint32_t ring_rows(const struct config *c, uint32_t n_ctx, uint32_t n_batch)
{
    uint64_t ring = (uint64_t)c->n_swa + n_batch + KV_SLACK;
    return ring < n_ctx ? (uint32_t)ring : n_ctx;
}

static uint32_t rows_of(const struct layer_config *l, const struct config *c, uint32_t n_ctx,
                        uint32_t n_batch)
{
    return l->swa ? ring_rows(c, n_ctx, n_batch) : n_ctx;
}

uint64_t kv_bytes(const struct config *c, uint32_t n_ctx, uint32_t n_batch, bool half)
{
    uint64_t n = 0;
    for (uint32_t il = 0; il < c->n_own; il++) {
        const struct layer_config *l = &c->layers[il];
        n += 2 * rows_of(l, c, n_ctx, n_batch) * (uint64_t)l->n_kv_head * l->head_dim;
    }
    return n * (half ? 2 : sizeof(float));
}

/* Two halves share a word of memory on the GPU, so rows must be whole ones; every Gemma's are. */
static enum bz_status check_halves(const struct config *c, struct bz_err *err)
{
    for (uint32_t il = 0; il < c->n_own; il++)
        if (c->layers[il].n_kv_head * c->layers[il].head_dim % 8 != 0)
            return fail(err, BZ_ERR_UNSUPPORTED,
                        "a cache of halves needs keys of a multiple of 8 numbers; layer %u has %u",
                        il, c->layers[il].n_kv_head * c->layers[il].head_dim);
    return BZ_OK;
}

enum bz_status kv_open(struct kv_cache *out, const struct config *c, const struct backend *be,
                       uint32_t n_ctx, uint32_t n_batch, bool half, struct bz_err *err)
{
    struct kv_cache kv = { .be = be, .config = c, .n_ctx = n_ctx, .half = half };
    enum bz_status st = half ? check_halves(c, err) : BZ_OK;
    if (st) return st;
    bool (*make)(const struct backend *, struct tensor *, uint32_t, uint32_t) =
        half ? tensor_alloc_half : tensor_alloc;
    kv.n_ring = ring_rows(c, n_ctx, n_batch);
    kv.layers = mem_alloc(c->n_own, sizeof *kv.layers);
    bool ok = kv.layers != NULL;
    for (uint32_t il = 0; ok && il < c->n_own; il++) {
        const struct layer_config *l = &c->layers[il];
        struct kv *one = &kv.layers[il];
        one->n_kv_head = l->n_kv_head;
        one->head_dim = l->head_dim;
        uint32_t rows = rows_of(l, c, n_ctx, n_batch), cols = l->n_kv_head * l->head_dim;
        ok = make(be, &one->k, rows, cols) && make(be, &one->v, rows, cols);
        one->k.rows = one->v.rows = rows;
    }
    if (!ok) {
        kv_close(&kv);
        return fail(err, BZ_ERR_MEMORY,
                    "not enough memory for a context of %u tokens (%" PRIu64
                    " MiB of keys and values); ask for a smaller one",
                    n_ctx, kv_bytes(c, n_ctx, n_batch, half) >> 20);
    }
    *out = kv;
    return BZ_OK;
}

void kv_close(struct kv_cache *kv)
{
    for (uint32_t il = 0; kv->layers && il < kv->config->n_own; il++) {
        tensor_free(kv->be, &kv->layers[il].k);
        tensor_free(kv->be, &kv->layers[il].v);
    }
    mem_free(kv->layers);
    *kv = (struct kv_cache) { 0 };
}

struct kv *kv_of(const struct kv_cache *kv, uint32_t il)
{
    return &kv->layers[kv->config->layers[il].donor];
}

void kv_begin(struct kv_cache *kv, uint32_t n)
{
    uint32_t end = kv->n_past + n, first = end > kv->n_ring ? end - kv->n_ring : 0;
    if (first > kv->oldest) kv->oldest = first;
}

void kv_advance(struct kv_cache *kv, uint32_t n)
{
    kv->n_past += n;
}

/* The first position that the token at position n sees in a sliding layer. */
static uint32_t window_start(const struct config *c, uint32_t n)
{
    return n + 1 > c->n_swa ? n + 1 - c->n_swa : 0;
}

static bool has_sliding_layers(const struct config *c)
{
    for (uint32_t il = 0; il < c->n_own; il++)
        if (c->layers[il].swa) return true;
    return false;
}

uint32_t kv_truncate(struct kv_cache *kv, uint32_t n)
{
    if (n > kv->n_past) n = kv->n_past;
    if (kv->oldest > window_start(kv->config, n) && has_sliding_layers(kv->config)) n = 0;
    kv->n_past = n;
    if (n == 0) kv->oldest = 0;
    return n;
}

/* ---- snapshots ----
 *
 *     "BZKV"  u32 version = 3  fingerprint[64]  u32 n_past  u32 n_own  u32 width  u64 worn
 *     i32 tokens[n_past]
 *     per owning layer:  u32 first  u32 cols  k[n_past - first][cols]  v[same]
 *     sha256 of everything before it
 *
 * All little-endian. k and v are f32 where width is 4 and f16 where it is 2. `first` is the oldest
 * position that the layer's ring still held.
 */
enum {
    SNAPSHOT_VERSION = 3,
    HEAD_BYTES = 4 + 4 + 64 + 4 + 4 + 4 + 8,
    WINDOW_BYTES = 256 << 10, /* of a snapshot in memory while it is read */
};

/* Rows of positions [first, end), in order: at most two runs of the ring. */
static void walk_rows(const struct tensor *t, uint32_t first, uint32_t end, kv_section_fn fn,
                      void *ctx)
{
    while (first < end) {
        struct kv_section s = { .rows_of = t, .row = first % t->rows };
        uint32_t n = t->rows - s.row < end - first ? t->rows - s.row : end - first;
        s.n = n;
        fn(ctx, &s);
        first += n;
    }
}

void kv_walk(const struct kv_cache *kv, const struct kv_origin *origin, const int32_t *tokens,
             kv_section_fn fn, void *ctx)
{
    char head[HEAD_BYTES] = "BZKV";
    uint32_t version = SNAPSHOT_VERSION, width = kv->half ? 2 : 4;
    memcpy(head + 4, &version, 4);
    memcpy(head + 8, origin->model, 64);
    memcpy(head + 72, &kv->n_past, 4);
    memcpy(head + 76, &kv->config->n_own, 4);
    memcpy(head + 80, &width, 4);
    memcpy(head + 84, &origin->worn, 8);
    fn(ctx, &(struct kv_section) { .bytes = head, .n = sizeof head });
    fn(ctx, &(struct kv_section) { .bytes = tokens, .n = (size_t)kv->n_past * sizeof *tokens });
    for (uint32_t il = 0; il < kv->config->n_own; il++) {
        const struct kv *l = &kv->layers[il];
        uint32_t first = kv->config->layers[il].swa ? kv->oldest : 0;
        uint32_t layer[] = { first, l->k.cols };
        fn(ctx, &(struct kv_section) { .bytes = layer, .n = sizeof layer });
        walk_rows(&l->k, first, kv->n_past, fn, ctx);
        walk_rows(&l->v, first, kv->n_past, fn, ctx);
    }
}

struct saving {
    struct run *r;
    struct buf *out;
};

static void save_section(void *ctx, const struct kv_section *s)
{
    struct saving *to = ctx;
    if (s->bytes) {
        buf_put(to->out, s->bytes, s->n);
        return;
    }
    size_t n_bytes = s->n * s->rows_of->cols * tensor_width(s->rows_of);
    uint8_t *flat = mem_alloc(n_bytes, 1);
    if (!flat) {
        to->out->failed = true;
        return;
    }
    op_read(to->r, s->rows_of, s->row, flat, (uint32_t)s->n);
    buf_put(to->out, flat, n_bytes);
    mem_free(flat);
}

void kv_save(struct run *r, const struct kv_cache *kv, const struct kv_origin *origin,
             const int32_t *tokens, struct buf *out)
{
    size_t start = out->n;
    struct saving to = { r, out };
    kv_walk(kv, origin, tokens, save_section, &to);
    struct sha256 s;
    uint8_t digest[KV_DIGEST];
    if (out->failed) return;
    sha256_init(&s);
    sha256_feed(&s, out->data + start, out->n - start);
    sha256_end(&s, digest);
    buf_put(out, digest, sizeof digest);
}

enum bz_status kv_digest(const struct source *snap, uint64_t n, uint8_t digest[KV_DIGEST],
                         struct bz_err *err)
{
    uint8_t *window = mem_alloc(WINDOW_BYTES, 1);
    if (!window) return fail_memory(err, WINDOW_BYTES);
    struct sha256 s;
    enum bz_status st = BZ_OK;
    sha256_init(&s);
    for (uint64_t at = 0; at < n && st == BZ_OK;) {
        size_t part = n - at < WINDOW_BYTES ? (size_t)(n - at) : WINDOW_BYTES;
        st = source_read(snap, at, window, part, err);
        if (st == BZ_OK) sha256_feed(&s, window, part);
        at += part;
    }
    sha256_end(&s, digest);
    mem_free(window);
    return st;
}

static enum bz_status check_digest(const struct source *snap, struct bz_err *err)
{
    uint8_t want[KV_DIGEST], is[KV_DIGEST];
    enum bz_status st = source_read(snap, snap->size - KV_DIGEST, want, sizeof want, err);
    if (st == BZ_OK) st = kv_digest(snap, snap->size - KV_DIGEST, is, err);
    if (st || memcmp(want, is, sizeof want) == 0) return st;
    return fail(err, BZ_ERR_FORMAT, "the session snapshot is damaged: its checksum does not match");
}

/* A snapshot while it is read. */
struct reading {
    const struct source *snap;
    uint32_t n_past;
    uint32_t width; /* bytes of a number */
    uint64_t at;    /* where the next layer begins */
};

/* Everything but the layers' rows. */
static enum bz_status get_head(const struct kv_cache *kv, const struct kv_origin *here,
                               struct reading *in, int32_t *tokens, struct bz_err *err)
{
    const struct source *snap = in->snap;
    char head[HEAD_BYTES] = { 0 };
    enum bz_status st = BZ_OK;
    bool whole = snap->size >= HEAD_BYTES + KV_DIGEST;
    if (whole) st = source_read(snap, 0, head, sizeof head, err);
    if (st) return st;
    if (!whole || memcmp(head, "BZKV", 4) != 0)
        return fail(err, BZ_ERR_FORMAT, "this is not a Bezel session snapshot");
    uint32_t version = load_u32(head + 4), n_own = load_u32(head + 76);
    if (version != SNAPSHOT_VERSION)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "session snapshot version %u; this build reads version %d", version,
                    SNAPSHOT_VERSION);
    st = check_digest(snap, err);
    if (st) return st;
    if (memcmp(head + 8, here->model, 64) != 0 || n_own != kv->config->n_own)
        return fail(err, BZ_ERR_FORMAT, "the session snapshot belongs to another model");
    if (memcmp(head + 84, &here->worn, 8) != 0)
        return fail(err, BZ_ERR_FORMAT,
                    "the session snapshot was made with other adapters, or with other strengths of "
                    "them; restore it with those, or let the model read the text again");
    in->width = load_u32(head + 80);
    if (in->width != 2 && in->width != 4)
        return fail(err, BZ_ERR_FORMAT, "the session snapshot's numbers have %u bytes, not 2 or 4",
                    in->width);
    in->n_past = load_u32(head + 72);
    if (in->n_past > kv->n_ctx)
        return fail(err, BZ_ERR_LIMIT,
                    "the session snapshot holds %u tokens; this session has room for %u",
                    in->n_past, kv->n_ctx);
    in->at = HEAD_BYTES + (uint64_t)in->n_past * sizeof *tokens;
    if (in->at > snap->size - KV_DIGEST)
        return fail(err, BZ_ERR_FORMAT, "the session snapshot is cut short");
    st = source_read(snap, HEAD_BYTES, tokens, (size_t)in->n_past * sizeof *tokens, err);
    for (uint32_t i = 0; st == BZ_OK && i < in->n_past; i++)
        if ((uint32_t)tokens[i] >= kv->config->n_vocab)
            st = fail(err, BZ_ERR_FORMAT,
                      "the session snapshot holds token %u; this vocabulary ends at %u",
                      (uint32_t)tokens[i], kv->config->n_vocab - 1);
    return st;
}

/* n numbers of `width` bytes as the tensor wants them. */
static void convert(const struct tensor *t, void *to, const void *from, size_t n, uint32_t width)
{
    const struct quant_format *f16 = quant_find(QUANT_F16);
    if (width == tensor_width(t)) memcpy(to, from, n * width);
    else if (t->half) f16->encode(from, to, n);
    else f16->decode(from, to, n);
}

/* One tensor's rows of positions [keep, n_past), which lie at `at`, a window at a time. */
static enum bz_status get_rows(struct run *r, struct tensor *t, const struct reading *in,
                               uint64_t at, uint32_t keep, struct bz_err *err)
{
    size_t row_bytes = (size_t)t->cols * in->width;
    uint32_t most = row_bytes < WINDOW_BYTES ? (uint32_t)(WINDOW_BYTES / row_bytes) : 1;
    uint8_t *window = mem_alloc(most, row_bytes + t->cols * tensor_width(t));
    if (!window) return fail_memory(err, most * row_bytes);
    uint8_t *flat = window + most * row_bytes;
    enum bz_status st = BZ_OK;
    while (keep < in->n_past && st == BZ_OK) {
        uint32_t row = keep % t->rows, n = in->n_past - keep < most ? in->n_past - keep : most;
        if (n > t->rows - row) n = t->rows - row;
        st = source_read(in->snap, at, window, n * row_bytes, err);
        convert(t, flat, window, (size_t)n * t->cols, in->width);
        if (st == BZ_OK) op_write(r, t, row, flat, n);
        keep += n;
        at += n * row_bytes;
    }
    mem_free(window);
    return st;
}

static enum bz_status get_layer(struct run *r, struct kv_cache *kv, uint32_t il, struct reading *in,
                                struct bz_err *err)
{
    struct kv *l = &kv->layers[il];
    char head[8];
    uint64_t left = in->snap->size - KV_DIGEST - in->at;
    if (left < sizeof head) return fail(err, BZ_ERR_FORMAT, "the session snapshot is cut short");
    enum bz_status st = source_read(in->snap, in->at, head, sizeof head, err);
    if (st) return st;
    uint32_t first = load_u32(head), cols = load_u32(head + 4);
    left -= sizeof head;
    in->at += sizeof head;
    bool swa = kv->config->layers[il].swa;
    if (cols != l->k.cols || first > (swa ? window_start(kv->config, in->n_past) : 0))
        return fail(err, BZ_ERR_FORMAT, "the session snapshot's layer %u does not fit this model",
                    il);
    uint64_t row_bytes = (uint64_t)cols * in->width, n_bytes = (in->n_past - first) * row_bytes;
    if (n_bytes * 2 > left) return fail(err, BZ_ERR_FORMAT, "the session snapshot is cut short");
    uint32_t keep = in->n_past - first > l->k.rows ? in->n_past - l->k.rows : first;
    uint64_t skip = (keep - first) * row_bytes; /* rows that do not fit the ring */
    st = get_rows(r, &l->k, in, in->at + skip, keep, err);
    if (st == BZ_OK) st = get_rows(r, &l->v, in, in->at + n_bytes + skip, keep, err);
    if (swa && keep > kv->oldest) kv->oldest = keep;
    in->at += n_bytes * 2;
    if (st) return st;
    return r->status ? fail(err, r->status, "%s", r->err.text) : BZ_OK;
}

enum bz_status kv_restore(struct run *r, struct kv_cache *kv, const struct kv_origin *here,
                          const struct source *snap, int32_t *tokens, struct bz_err *err)
{
    struct reading in = { .snap = snap };
    kv_truncate(kv, 0);
    enum bz_status st = get_head(kv, here, &in, tokens, err);
    for (uint32_t il = 0; st == BZ_OK && il < kv->config->n_own; il++)
        st = get_layer(r, kv, il, &in, err);
    if (st == BZ_OK && in.at != snap->size - KV_DIGEST)
        st = fail(err, BZ_ERR_FORMAT, "the session snapshot has bytes to spare");
    if (st) {
        kv->oldest = 0;
        return st;
    }
    kv->n_past = in.n_past;
    return BZ_OK;
}
