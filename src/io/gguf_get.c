/* gguf_get.c - reading a parsed GGUF header: keys, tensors by name, lenient numbers.
 *
 * Converters disagree about types (a count arrives as u32, i32, u64 or as an array with one entry a
 * layer), so numbers are asked for by what they mean. Every range was checked by gguf.c.
 */
#include "io/gguf.h"

#include "base/half.h"
#include "base/le.h"

/* A number of any type, held exactly. */
struct number {
    enum { NONE, UNSIGNED, SIGNED, REAL } kind;
    union {
        uint64_t u;
        int64_t i; /* only negative ones */
        double f;
    };
};

static struct number from_signed(int64_t i)
{
    if (i < 0) return (struct number) { SIGNED, { .i = i } };
    return (struct number) { UNSIGNED, { .u = (uint64_t)i } };
}

static double f64_from_bits(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

static struct number number_at(const struct gguf_kv *kv, uint64_t i)
{
    if (kv->type != GGUF_ARRAY) i = 0;
    if (i >= kv->n) return (struct number) { 0 };
    const uint8_t *v = kv->value;
    switch (kv->elem) {
    case GGUF_U8: return (struct number) { UNSIGNED, { .u = v[i] } };
    case GGUF_I8: return from_signed((int8_t)v[i]);
    case GGUF_U16: return (struct number) { UNSIGNED, { .u = le_get16(v + 2 * i) } };
    case GGUF_I16: return from_signed((int16_t)le_get16(v + 2 * i));
    case GGUF_U32: return (struct number) { UNSIGNED, { .u = le_get32(v + 4 * i) } };
    case GGUF_I32: return from_signed((int32_t)le_get32(v + 4 * i));
    case GGUF_F32: return (struct number) { REAL, { .f = f32_from_bits(le_get32(v + 4 * i)) } };
    case GGUF_BOOL: return (struct number) { UNSIGNED, { .u = v[i] != 0 } };
    case GGUF_U64: return (struct number) { UNSIGNED, { .u = le_get64(v + 8 * i) } };
    case GGUF_I64: return from_signed((int64_t)le_get64(v + 8 * i));
    case GGUF_F64: return (struct number) { REAL, { .f = f64_from_bits(le_get64(v + 8 * i)) } };
    case GGUF_STRING:
    case GGUF_ARRAY: break;
    }
    return (struct number) { 0 };
}

/* An integral float becomes the integer it is; what is outside 64 bits stays a float. */
static struct number integral(struct number x)
{
    if (x.kind != REAL) return x;
    if (x.f >= 0 && x.f < 0x1p64 && (double)(uint64_t)x.f == x.f)
        return (struct number) { UNSIGNED, { .u = (uint64_t)x.f } };
    if (x.f < 0 && x.f >= -0x1p63 && (double)(int64_t)x.f == x.f)
        return (struct number) { SIGNED, { .i = (int64_t)x.f } };
    return x;
}

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key)
{
    uint32_t i;
    if (g->n_kv == 0 || !strmap_find(&g->by_key, str_of(key), &i)) return NULL;
    return &g->kvs[i];
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name)
{
    uint32_t i;
    if (g->n_tensors == 0 || !strmap_find(&g->by_name, str_of(name), &i)) return NULL;
    return &g->tensors[i];
}

bool gguf_at_i64(const struct gguf_kv *kv, uint64_t i, int64_t *out)
{
    struct number x = integral(number_at(kv, i));
    if (x.kind == UNSIGNED && x.u <= INT64_MAX) *out = (int64_t)x.u;
    else if (x.kind == SIGNED) *out = x.i;
    else return false;
    return true;
}

bool gguf_at_f64(const struct gguf_kv *kv, uint64_t i, double *out)
{
    struct number x = number_at(kv, i);
    if (x.kind == NONE) return false;
    *out = x.kind == UNSIGNED ? (double)x.u : x.kind == SIGNED ? (double)x.i : x.f;
    return true;
}

bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *out)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    if (!kv) return false;
    struct number x = integral(number_at(kv, 0));
    if (x.kind != UNSIGNED) return false;
    *out = x.u;
    return true;
}

bool gguf_get_f64(const struct gguf *g, const char *key, double *out)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    return kv && gguf_at_f64(kv, 0, out);
}

bool gguf_get_bool(const struct gguf *g, const char *key, bool *out)
{
    double v;
    if (!gguf_get_f64(g, key, &v)) return false;
    *out = v != 0;
    return true;
}

bool gguf_get_str(const struct gguf *g, const char *key, struct str *out)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    uint64_t cursor = 0;
    return kv && gguf_next_str(kv, &cursor, out);
}

bool gguf_next_str(const struct gguf_kv *kv, uint64_t *cursor, struct str *out)
{
    if (kv->elem != GGUF_STRING || *cursor >= kv->n_bytes) return false;
    const uint8_t *p = kv->value + *cursor;
    size_t n = (size_t)le_get64(p);
    *out = (struct str) { (const char *)p + 8, n };
    *cursor += 8 + (uint64_t)n;
    return true;
}

const char *gguf_type_name(enum gguf_type t)
{
    static const char *const name[] = { "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64" };
    return (unsigned)t < sizeof name / sizeof *name ? name[t] : "unknown";
}

uint32_t gguf_type_size(enum gguf_type t)
{
    static const uint8_t size[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return (unsigned)t < sizeof size ? size[t] : 0;
}
