/* adapter.c - owns the pairing of LoRA halves, their checks and their decoding to f32. Where the
 * tensors come from and how their names are spelt is known by adapter_gguf.c and adapter_peft.c.
 */
#include "io/adapter.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/rng.h"
#include "io/adapter_plan.h"
#include "io/quote.h"
#include "quant/quant.h"

#define MAX_DIM  (1u << 24) /* of any side of a matrix */
#define MAX_RANK (1u << 16)

enum bz_status adapter_plan_init(struct adapter_plan *p, const char *file, uint64_t n_tensors,
                                 struct bz_err *err)
{
    *p = (struct adapter_plan) { .file = file, .out = { .arch = "" } };
    if (n_tensors > UINT32_MAX)
        return fail(err, BZ_ERR_FORMAT, "%s: %" PRIu64 " tensors in an adapter", file, n_tensors);
    p->items = mem_alloc((size_t)n_tensors, sizeof *p->items);
    if (!p->items || !strmap_init(&p->by_name, (size_t)n_tensors))
        return fail_memory(err, n_tensors * sizeof *p->items);
    return BZ_OK;
}

void adapter_half_plain(struct adapter_half *h)
{
    h->by_expert = h->rows * h->cols;
    h->by_row = h->cols;
    h->by_col = 1;
}

/* The item of a tensor in a pass; a new one where there is none. */
static enum bz_status find_item(struct adapter_plan *p, struct str target, enum adapter_pass pass,
                                struct adapter_item **out, struct bz_err *err)
{
    struct buf key = { 0 };
    uint32_t i;
    buf_putc(&key, (char)('0' + pass));
    buf_put_str(&key, target);
    bool found = !key.failed && strmap_find(&p->by_name, buf_str(&key), &i);
    const char *kept = found || key.failed ? NULL : arena_copy_str(&p->out.arena, key.data, key.n);
    buf_free(&key);
    if (!found && !kept) return fail_memory(err, target.n);
    if (!found) {
        i = (uint32_t)p->n_items++;
        p->items[i] = (struct adapter_item) { .name = kept + 1, .pass = pass };
        strmap_add(&p->by_name, (struct str) { kept, target.n + 1 }, i);
    }
    *out = &p->items[i];
    return BZ_OK;
}

enum bz_status adapter_plan_half(struct adapter_plan *p, struct str target, enum adapter_pass pass,
                                 bool is_b, const struct adapter_half *h, float scale,
                                 struct bz_err *err)
{
    struct adapter_item *item = NULL;
    if (str_is(target, "token_embd.weight") || str_is(target, "output.weight"))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s adapts %s: the embedding and the output head are one table here, and Bezel "
                    "does not adapt it; train without embed_tokens and lm_head",
                    p->file, quote(target).z);
    if (target.n == 0 || memchr(target.p, 0, target.n))
        return fail(err, BZ_ERR_FORMAT, "%s: a tensor without a proper name", p->file);
    enum bz_status st = find_item(p, target, pass, &item, err);
    if (st) return st;
    struct adapter_half *to = is_b ? &item->b : &item->a;
    if (to->src)
        return fail(err, BZ_ERR_FORMAT, "%s: %s has two lora_%c tensors", p->file, quote(target).z,
                    is_b ? 'b' : 'a');
    *to = *h;
    item->scale = scale;
    return BZ_OK;
}

enum bz_status adapter_plan_warn(struct adapter_plan *p, struct bz_err *err, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct adapter *o = &p->out;
    /* Grown when the count reaches a power of two. */
    if ((o->n_warnings & (o->n_warnings - 1)) == 0) {
        size_t cap = o->n_warnings ? 2 * o->n_warnings : 1;
        const char **list = mem_grow(o->warnings, cap, sizeof *list);
        if (!list) return fail_memory(err, cap * sizeof *list);
        o->warnings = list;
    }
    const char *copy = arena_copy_str(&o->arena, text, strlen(text));
    if (!copy) return fail_memory(err, sizeof text);
    o->warnings[o->n_warnings++] = copy;
    return BZ_OK;
}

/* A format we decode, and bytes that are exactly the shape's. */
static enum bz_status check_half(const struct adapter_plan *p, const struct adapter_item *it,
                                 const struct adapter_half *h, uint64_t *n_total,
                                 struct bz_err *err)
{
    struct quoted name = quote(str_of(it->name));
    const struct quant_format *f = quant_find(h->format);
    bool known = h->format == QUANT_F32 || h->format == QUANT_F16 || h->format == QUANT_BF16 ||
                 h->format == QUANT_Q8_0;
    uint64_t n;
    if (!f || !known)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s: %s is stored as %s; adapters are read in F32, F16, BF16 and Q8_0", p->file,
                    name.z, quant_type_name(h->format));
    if (h->rows < 1 || h->rows > MAX_DIM || h->cols < 1 || h->cols > MAX_DIM || h->n_expert < 1 ||
        h->n_expert > MAX_DIM || h->cols % f->block ||
        !size_mul(h->rows * (h->cols / f->block), h->n_expert, &n) || !size_mul(n, f->bytes, &n) ||
        n != h->n_bytes)
        return fail(err, BZ_ERR_FORMAT, "%s: %s has a tensor of an impossible size", p->file,
                    name.z);
    if (!size_add(*n_total, n, n_total))
        return fail(err, BZ_ERR_FORMAT, "%s: impossible sizes", p->file);
    return BZ_OK;
}

static enum bz_status check_item(const struct adapter_plan *p, const struct adapter_item *it,
                                 uint64_t *n_total, struct bz_err *err)
{
    struct quoted name = quote(str_of(it->name));
    if (!it->a.src || !it->b.src)
        return fail(err, BZ_ERR_FORMAT, "%s: %s has no lora_%c", p->file, name.z,
                    it->a.src ? 'b' : 'a');
    enum bz_status st = check_half(p, it, &it->a, n_total, err);
    if (!st) st = check_half(p, it, &it->b, n_total, err);
    if (st) return st;
    if (it->a.rows != it->b.cols || it->a.rows > MAX_RANK)
        return fail(err, BZ_ERR_FORMAT, "%s: the halves of %s have ranks %" PRIu64 " and %" PRIu64,
                    p->file, name.z, it->a.rows, it->b.cols);
    if (it->a.n_expert != it->b.n_expert)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: the halves of %s have %" PRIu64 " and %" PRIu64 " experts", p->file,
                    name.z, it->a.n_expert, it->b.n_expert);
    if (it->a.n_expert > 1 && !str_ends(str_of(it->name), "_exps.weight"))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: %s has %" PRIu64 " matrices, but it is no expert stack", p->file, name.z,
                    it->a.n_expert);
    return BZ_OK;
}

enum bz_status adapter_plan_check(const struct adapter_plan *p, uint64_t n_available,
                                  struct bz_err *err)
{
    uint64_t n_total = 0;
    if (p->n_items == 0)
        return fail(err, BZ_ERR_FORMAT, "%s: an adapter that adapts nothing", p->file);
    for (size_t i = 0; i < p->n_items; i++) {
        enum bz_status st = check_item(p, &p->items[i], &n_total, err);
        if (st) return st;
    }
    /* Tensors that overlap could make a small file ask for any amount of memory. */
    if (n_total > n_available)
        return fail(err, BZ_ERR_FORMAT, "%s: its tensors claim more bytes than the file has",
                    p->file);
    return BZ_OK;
}

#define STAGE ((size_t)1 << 16) /* bytes read at a time */

/* n weights in file order; every one must be a number. */
static enum bz_status decode(float *dst, const struct adapter_half *h, uint64_t n, void *stage,
                             struct bz_err *err)
{
    const struct quant_format *f = quant_find(h->format);
    size_t n_blocks = STAGE / f->bytes;
    uint64_t at = h->offset;
    for (uint64_t left = n / f->block; left;) {
        size_t k = left < n_blocks ? (size_t)left : n_blocks;
        enum bz_status st = source_read(h->src, at, stage, k * f->bytes, err);
        if (st) return st;
        f->decode(stage, dst, k * f->block);
        for (size_t i = 0; i < k * f->block; i++)
            if (!isfinite(dst[i]))
                return fail(err, BZ_ERR_FORMAT, "%s: a weight is not a finite number",
                            h->src->name);
        dst += k * f->block;
        at += k * f->bytes;
        left -= k;
    }
    return BZ_OK;
}

static void reorder(float *dst, const float *src, const struct adapter_half *h)
{
    for (uint64_t e = 0; e < h->n_expert; e++)
        for (uint64_t r = 0; r < h->rows; r++)
            for (uint64_t c = 0; c < h->cols; c++)
                *dst++ = src[e * h->by_expert + r * h->by_row + c * h->by_col];
}

static enum bz_status load_half(float **out, const struct adapter_half *h, void *stage,
                                struct bz_err *err)
{
    uint64_t n = h->n_expert * h->rows * h->cols; /* fits: check_half multiplied it */
    bool plain = h->by_col == 1 && h->by_row == h->cols && h->by_expert == h->rows * h->cols;
    float *w = n > SIZE_MAX / sizeof *w ? NULL : mem_alloc((size_t)n, sizeof *w);
    if (!w) return fail_memory(err, n * sizeof *w);
    *out = w; /* owned by the target from here on */
    if (plain) return decode(w, h, n, stage, err);
    float *raw = mem_alloc((size_t)n, sizeof *raw);
    if (!raw) return fail_memory(err, n * sizeof *raw);
    enum bz_status st = decode(raw, h, n, stage, err);
    if (!st) reorder(w, raw, h);
    mem_free(raw);
    return st;
}

static bool is_same(const struct adapter_target *a, const struct adapter_target *b)
{
    size_t n = (size_t)a->rank * a->n_expert * sizeof *a->a;
    return a->rank == b->rank && a->n_in == b->n_in && a->n_out == b->n_out &&
           a->n_expert == b->n_expert && memcmp(&a->scale, &b->scale, sizeof a->scale) == 0 &&
           memcmp(a->a, b->a, n * a->n_in) == 0 && memcmp(a->b, b->b, n * a->n_out) == 0;
}

/* What both passes were given alike is one target, which can be merged too. items[i] is that of
 * targets[i]. */
static enum bz_status merge_passes(struct adapter_plan *p, struct bz_err *err)
{
    struct adapter *o = &p->out;
    struct buf key = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < o->n_targets && !key.failed; i++) {
        struct adapter_target *t = &o->targets[i], *other;
        uint32_t k;
        if (t->pass != ADAPTER_ENCODER) continue;
        key.n = 0;
        buf_putc(&key, '0' + ADAPTER_DECODER);
        buf_puts(&key, t->name);
        if (!strmap_find(&p->by_name, buf_str(&key), &k)) continue;
        other = &o->targets[k];
        if (!is_same(t, other)) continue;
        t->pass = ADAPTER_BOTH;
        mem_free(other->a);
        mem_free(other->b);
        *other = (struct adapter_target) { 0 };
    }
    bool failed = key.failed;
    buf_free(&key);
    if (failed) return fail_memory(err, 64);
    for (size_t i = 0; i < o->n_targets; i++)
        if (o->targets[i].name) o->targets[n++] = o->targets[i];
    o->n_targets = n;
    return BZ_OK;
}

enum bz_status adapter_plan_load(struct adapter_plan *p, struct adapter *out, struct bz_err *err)
{
    struct adapter *o = &p->out;
    void *stage = mem_alloc(STAGE, 1);
    o->targets = mem_alloc(p->n_items, sizeof *o->targets);
    enum bz_status st =
        stage && o->targets ? BZ_OK : fail_memory(err, STAGE + p->n_items * sizeof *o->targets);
    for (size_t i = 0; !st && i < p->n_items; i++) {
        const struct adapter_item *it = &p->items[i];
        struct adapter_target *t = &o->targets[o->n_targets++];
        *t = (struct adapter_target) {
            .name = it->name,
            .pass = it->pass,
            .rank = (uint32_t)it->a.rows,
            .n_in = (uint32_t)it->a.cols,
            .n_out = (uint32_t)it->b.rows,
            .n_expert = (uint32_t)it->a.n_expert,
            .scale = it->scale,
        };
        st = load_half(&t->a, &it->a, stage, err);
        if (!st) st = load_half(&t->b, &it->b, stage, err);
        if (st) fail_prefix(err, st, "%s", quote(str_of(it->name)).z);
    }
    mem_free(stage);
    if (!st) st = merge_passes(p, err);
    if (st) return st;
    *out = *o;
    *o = (struct adapter) { 0 };
    return BZ_OK;
}

void adapter_plan_free(struct adapter_plan *p)
{
    adapter_close(&p->out);
    mem_free(p->items);
    strmap_free(&p->by_name);
}

/* "64 -> 32", and of a stack "64 -> 32 in 4 experts" */
static void name_shape(char *out, size_t size, uint64_t n_in, uint64_t n_out, uint64_t n_expert)
{
    int n = snprintf(out, size, "%" PRIu64 " -> %" PRIu64, n_in, n_out);
    if (n_expert > 1) snprintf(out + n, size - (size_t)n, " in %" PRIu64 " experts", n_expert);
}

enum bz_status adapter_check_shape(const struct adapter_target *t, uint64_t n_in, uint64_t n_out,
                                   uint64_t n_expert, struct bz_err *err)
{
    char own[96], other[96];
    if (t->n_in == n_in && t->n_out == n_out && t->n_expert == n_expert) return BZ_OK;
    name_shape(own, sizeof own, t->n_in, t->n_out, t->n_expert);
    name_shape(other, sizeof other, n_in, n_out, n_expert);
    return fail(err, BZ_ERR_FORMAT,
                "the adapter is for another model: its %s is %s, this model's %s", t->name, own,
                other);
}

static uint64_t digest_bytes(uint64_t h, const void *p, size_t n)
{
    for (size_t at = 0; at < n; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, (const char *)p + at, n - at < sizeof word ? n - at : sizeof word);
        h = rng_mix(h + word) + 1;
    }
    return rng_mix(h ^ n);
}

uint64_t adapter_digest(const struct adapter *a)
{
    uint64_t h = a->n_targets;
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct adapter_target *t = &a->targets[i];
        size_t n = (size_t)t->rank * t->n_expert;
        h = digest_bytes(h, t->name, strlen(t->name));
        h = digest_bytes(h, &t->scale, sizeof t->scale) + t->pass;
        h = digest_bytes(h, t->a, n * t->n_in * sizeof *t->a);
        h = digest_bytes(h, t->b, n * t->n_out * sizeof *t->b);
    }
    return h;
}

void adapter_close(struct adapter *a)
{
    for (size_t i = 0; i < a->n_targets; i++) {
        mem_free(a->targets[i].a);
        mem_free(a->targets[i].b);
    }
    mem_free(a->targets);
    mem_free(a->warnings);
    arena_free(&a->arena);
    *a = (struct adapter) { 0 };
}
