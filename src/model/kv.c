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
 *     "BZKV"  u32 version = 2  fingerprint[64]  u32 n_past  u32 n_own  u32 width
 *     i32 tokens[n_past]
 *     per owning layer:  u32 first  u32 cols  k[n_past - first][cols]  v[same]
 *     sha256 of everything before it
 *
 * All little-endian. k and v are f32 where width is 4 and f16 where it is 2. `first` is the oldest position
 * that the layer's ring still held.
 */
enum { SNAPSHOT_VERSION = 2, HEAD_BYTES = 4 + 4 + 64 + 4 + 4 + 4, WIDTH_AT = 80 };

static void put_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, 4);
}

/* Rows [first, end) of positions, in order, to or from a flat buffer: at most two runs of the ring. */
typedef void (*move_fn)(struct run *r, struct tensor *t, uint32_t row, void *flat, uint32_t n);

static void move_rows(struct run *r, struct tensor *t, uint32_t first, uint32_t end, uint8_t *flat,
                      move_fn move)
{
    while (first < end) {
        uint32_t row = first % t->rows;
        uint32_t n = t->rows - row < end - first ? t->rows - row : end - first;
        move(r, t, row, flat, n);
        flat += (size_t)n * t->cols * tensor_width(t);
        first += n;
    }
}

static void move_out(struct run *r, struct tensor *t, uint32_t row, void *flat, uint32_t n)
{
    op_read(r, t, row, flat, n);
}

static void move_in(struct run *r, struct tensor *t, uint32_t row, void *flat, uint32_t n)
{
    op_write(r, t, row, flat, n);
}

/* Append the live rows of one tensor. */
static void put_rows(struct run *r, struct buf *out, struct tensor *t, uint32_t first, uint32_t end)
{
    size_t n_bytes = (size_t)(end - first) * t->cols * tensor_width(t);
    uint8_t *flat = mem_alloc(n_bytes, 1);
    if (!flat) {
        out->failed = true;
        return;
    }
    move_rows(r, t, first, end, flat, move_out);
    buf_put(out, flat, n_bytes);
    mem_free(flat);
}

void kv_save(struct run *r, const struct kv_cache *kv, const char *fingerprint,
             const int32_t *tokens, struct buf *out)
{
    size_t start = out->n;
    buf_puts(out, "BZKV");
    put_u32(out, SNAPSHOT_VERSION);
    buf_put(out, fingerprint, 64);
    put_u32(out, kv->n_past);
    put_u32(out, kv->config->n_own);
    put_u32(out, kv->half ? 2 : 4);
    buf_put(out, tokens, (size_t)kv->n_past * sizeof *tokens);
    for (uint32_t il = 0; il < kv->config->n_own; il++) {
        struct kv *l = &kv->layers[il];
        uint32_t first = kv->config->layers[il].swa ? kv->oldest : 0;
        put_u32(out, first);
        put_u32(out, l->k.cols);
        put_rows(r, out, &l->k, first, kv->n_past);
        put_rows(r, out, &l->v, first, kv->n_past);
    }
    struct sha256 s;
    uint8_t digest[32];
    if (out->failed) return;
    sha256_init(&s);
    sha256_feed(&s, out->data + start, out->n - start);
    sha256_end(&s, digest);
    buf_put(out, digest, sizeof digest);
}

/* Everything but the layers' rows. Returns the bytes used in *at. */
static enum bz_status check_head(const struct kv_cache *kv, const char *fingerprint,
                                 struct str snap, uint32_t *n_past, size_t *at, struct bz_err *err)
{
    if (snap.n < HEAD_BYTES + 32 || memcmp(snap.p, "BZKV", 4) != 0)
        return fail(err, BZ_ERR_FORMAT, "this is not a Bezel session snapshot");
    uint32_t version = load_u32(snap.p + 4), n_own = load_u32(snap.p + 76);
    if (version != SNAPSHOT_VERSION)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "session snapshot version %u; this build reads version %d", version,
                    SNAPSHOT_VERSION);
    struct sha256 s;
    uint8_t digest[32];
    sha256_init(&s);
    sha256_feed(&s, snap.p, snap.n - 32);
    sha256_end(&s, digest);
    if (memcmp(digest, snap.p + snap.n - 32, 32) != 0)
        return fail(err, BZ_ERR_FORMAT,
                    "the session snapshot is damaged: its checksum does not match");
    if (memcmp(snap.p + 8, fingerprint, 64) != 0 || n_own != kv->config->n_own)
        return fail(err, BZ_ERR_FORMAT, "the session snapshot belongs to another model");
    if (load_u32(snap.p + WIDTH_AT) != 2 && load_u32(snap.p + WIDTH_AT) != 4)
        return fail(err, BZ_ERR_FORMAT, "the session snapshot's numbers have %u bytes, not 2 or 4",
                    load_u32(snap.p + WIDTH_AT));
    *n_past = load_u32(snap.p + 72);
    if (*n_past > kv->n_ctx)
        return fail(err, BZ_ERR_LIMIT,
                    "the session snapshot holds %u tokens; this session has room for %u", *n_past,
                    kv->n_ctx);
    *at = HEAD_BYTES + (size_t)*n_past * sizeof(int32_t);
    if (*at > snap.n - 32) return fail(err, BZ_ERR_FORMAT, "the session snapshot is cut short");
    for (uint32_t i = 0; i < *n_past; i++) {
        uint32_t id = load_u32(snap.p + HEAD_BYTES + (size_t)i * 4);
        if (id >= kv->config->n_vocab)
            return fail(err, BZ_ERR_FORMAT,
                        "the session snapshot holds token %u; this vocabulary ends at %u", id,
                        kv->config->n_vocab - 1);
    }
    return BZ_OK;
}

/* n numbers of `width` bytes as the tensor wants them. */
static void convert(const struct tensor *t, void *to, const void *from, size_t n, uint32_t width)
{
    const struct quant_format *f16 = quant_find(QUANT_F16);
    if (width == tensor_width(t)) memcpy(to, from, n * width);
    else if (t->half) f16->encode(from, to, n);
    else f16->decode(from, to, n);
}

/* One tensor's rows of positions [first, end); those before `keep` do not fit its ring. */
static void get_rows(struct run *r, struct tensor *t, const char *bytes, uint32_t width,
                     uint32_t first, uint32_t keep, uint32_t end)
{
    size_t n = (size_t)(end - keep) * t->cols;
    uint8_t *flat = mem_alloc(n, tensor_width(t));
    if (!flat) {
        run_fail(r, BZ_ERR_MEMORY, "not enough memory to restore a session");
        return;
    }
    convert(t, flat, bytes + (size_t)(keep - first) * t->cols * width, n, width);
    move_rows(r, t, keep, end, flat, move_in);
    mem_free(flat);
}

static enum bz_status get_layer(struct run *r, struct kv_cache *kv, uint32_t il, struct str snap,
                                uint32_t n_past, size_t *at, struct bz_err *err)
{
    struct kv *l = &kv->layers[il];
    size_t left = snap.n - 32 - *at;
    uint32_t width = load_u32(snap.p + WIDTH_AT);
    if (left < 8) return fail(err, BZ_ERR_FORMAT, "the session snapshot is cut short");
    uint32_t first = load_u32(snap.p + *at), cols = load_u32(snap.p + *at + 4);
    left -= 8;
    *at += 8;
    bool swa = kv->config->layers[il].swa;
    if (cols != l->k.cols || first > (swa ? window_start(kv->config, n_past) : 0))
        return fail(err, BZ_ERR_FORMAT, "the session snapshot's layer %u does not fit this model",
                    il);
    uint64_t n_bytes = (uint64_t)(n_past - first) * cols * width;
    if (n_bytes * 2 > left) return fail(err, BZ_ERR_FORMAT, "the session snapshot is cut short");
    uint32_t keep = n_past - first > l->k.rows ? n_past - l->k.rows : first;
    get_rows(r, &l->k, snap.p + *at, width, first, keep, n_past);
    get_rows(r, &l->v, snap.p + *at + n_bytes, width, first, keep, n_past);
    if (swa && keep > kv->oldest) kv->oldest = keep;
    *at += (size_t)n_bytes * 2;
    return r->status ? fail(err, r->status, "%s", r->err.text) : BZ_OK;
}

enum bz_status kv_restore(struct run *r, struct kv_cache *kv, const char *fingerprint,
                          struct str snap, int32_t *tokens, struct bz_err *err)
{
    uint32_t n_past = 0;
    size_t at = 0;
    kv_truncate(kv, 0);
    enum bz_status st = check_head(kv, fingerprint, snap, &n_past, &at, err);
    for (uint32_t il = 0; st == BZ_OK && il < kv->config->n_own; il++)
        st = get_layer(r, kv, il, snap, n_past, &at, err);
    if (st == BZ_OK && at != snap.n - 32)
        st = fail(err, BZ_ERR_FORMAT, "the session snapshot has bytes to spare");
    if (st) {
        kv->oldest = 0;
        return st;
    }
    memcpy(tokens, snap.p + HEAD_BYTES, (size_t)n_past * sizeof *tokens);
    kv->n_past = n_past;
    return BZ_OK;
}
