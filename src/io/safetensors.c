/* safetensors.c - owns the checks of a safetensors header: JSON of the right shape, every size the
 * product of its dimensions, every range inside the file. Refuses to know what the tensors are for.
 */
#include "io/safetensors.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/le.h"
#include "io/quote.h"

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[ST_OTHER] = {
    [ST_F64] = { "F64", 8 },   [ST_F32] = { "F32", 4 }, [ST_F16] = { "F16", 2 },
    [ST_BF16] = { "BF16", 2 }, [ST_I64] = { "I64", 8 }, [ST_I32] = { "I32", 4 },
    [ST_I16] = { "I16", 2 },   [ST_I8] = { "I8", 1 },   [ST_U8] = { "U8", 1 },
    [ST_BOOL] = { "BOOL", 1 },
};

static enum st_dtype find_dtype(struct str name)
{
    for (uint32_t i = 0; i < ST_OTHER; i++)
        if (str_is(name, dtypes[i].name)) return (enum st_dtype)i;
    return ST_OTHER;
}

/* A JSON integer that is not negative. */
static bool get_size(const struct json *j, uint64_t *out)
{
    if (!j || j->type != JSON_INT || j->integer < 0) return false;
    *out = (uint64_t)j->integer;
    return true;
}

static enum bz_status read_shape(struct st_tensor *t, const struct json *shape, const char *file,
                                 struct bz_err *err)
{
    if (!shape || shape->type != JSON_ARRAY || shape->n > SAFETENSORS_MAX_DIMS)
        return fail(err, BZ_ERR_FORMAT, "%s: tensor %s has no shape of at most %d dimensions", file,
                    quote(t->name).z, SAFETENSORS_MAX_DIMS);
    for (uint32_t i = 0; i < SAFETENSORS_MAX_DIMS; i++) t->shape[i] = 1;
    for (const struct json *d = shape->child; d; d = d->next)
        if (!get_size(d, &t->shape[t->n_dims++]))
            return fail(err, BZ_ERR_FORMAT, "%s: tensor %s has a dimension that is not a size",
                        file, quote(t->name).z);
    return BZ_OK;
}

/* data_offsets count from the end of the header, `base`. */
static enum bz_status read_range(struct st_tensor *t, const struct json *range, uint64_t base,
                                 const struct source *src, struct bz_err *err)
{
    uint64_t begin = 0, end = 0;
    if (!range || range->type != JSON_ARRAY || range->n != 2 ||
        !get_size(json_at(range, 0), &begin) || !get_size(json_at(range, 1), &end))
        return fail(err, BZ_ERR_FORMAT, "%s: tensor %s has no pair of data offsets", src->name,
                    quote(t->name).z);
    if (begin > end || end > src->size - base)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: tensor %s lies at bytes %" PRIu64 "..%" PRIu64
                    " of a data section of %" PRIu64,
                    src->name, quote(t->name).z, begin, end, src->size - base);
    t->offset = base + begin;
    t->n_bytes = end - begin;
    if (t->dtype == ST_OTHER) return BZ_OK;
    uint64_t want = dtypes[t->dtype].bytes;
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (!size_mul(want, t->shape[i], &want))
            return fail(err, BZ_ERR_FORMAT, "%s: tensor %s has an impossible shape", src->name,
                        quote(t->name).z);
    if (want != t->n_bytes)
        return fail(err, BZ_ERR_FORMAT, "%s: tensor %s needs %" PRIu64 " bytes and has %" PRIu64,
                    src->name, quote(t->name).z, want, t->n_bytes);
    return BZ_OK;
}

static bool copy_str(struct str *out, struct str s, struct arena *a)
{
    const char *p = arena_copy_str(a, s.p, s.n);
    *out = (struct str) { p, s.n };
    return p != NULL;
}

static enum bz_status read_tensor(struct safetensors *s, const struct json *j, uint64_t base,
                                  struct bz_err *err)
{
    struct st_tensor *t = &s->tensors[s->n_tensors];
    const char *file = s->source.name;
    struct str dtype = json_get_str(j, "dtype");
    if (j->type != JSON_OBJECT || !dtype.p)
        return fail(err, BZ_ERR_FORMAT, "%s: tensor %s has no dtype", file, quote(j->key).z);
    if (!copy_str(&t->name, j->key, &s->arena) || !copy_str(&t->dtype_name, dtype, &s->arena))
        return fail_memory(err, j->key.n + dtype.n);
    t->dtype = find_dtype(dtype);
    enum bz_status st = read_shape(t, json_get(j, "shape"), file, err);
    if (!st) st = read_range(t, json_get(j, "data_offsets"), base, &s->source, err);
    if (st) return st;
    if (!strmap_add(&s->by_name, t->name, (uint32_t)s->n_tensors))
        return fail(err, BZ_ERR_FORMAT, "%s: tensor %s is listed twice", file, quote(t->name).z);
    s->n_tensors++;
    return BZ_OK;
}

static enum bz_status read_tensors(struct safetensors *s, const struct json *root, uint64_t base,
                                   struct bz_err *err)
{
    if (root->type != JSON_OBJECT)
        return fail(err, BZ_ERR_FORMAT, "%s: the header is not a JSON object", s->source.name);
    s->tensors = mem_alloc(root->n, sizeof *s->tensors);
    if (!s->tensors || !strmap_init(&s->by_name, root->n))
        return fail_memory(err, root->n * sizeof *s->tensors);
    for (const struct json *j = root->child; j; j = j->next) {
        if (str_is(j->key, "__metadata__")) continue;
        enum bz_status st = read_tensor(s, j, base, err);
        if (st) return st;
    }
    return BZ_OK;
}

static enum bz_status read_header(struct safetensors *s, char **text, uint64_t *n,
                                  struct bz_err *err)
{
    uint8_t prefix[8];
    enum bz_status st = source_read(&s->source, 0, prefix, sizeof prefix, err);
    if (st) return st;
    *n = le_get64(prefix);
    if (*n > SAFETENSORS_MAX_HEADER || *n > s->source.size - sizeof prefix)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: not a safetensors file: its header would be %" PRIu64 " bytes",
                    s->source.name, *n);
    *text = mem_alloc((size_t)*n, 1);
    if (!*text) return fail_memory(err, *n);
    return source_read(&s->source, sizeof prefix, *text, (size_t)*n, err);
}

enum bz_status safetensors_open(struct safetensors *out, const struct source *src,
                                struct bz_err *err)
{
    struct safetensors s = { .source = *src };
    struct arena tree = { 0 };
    struct json *root = NULL;
    char *text = NULL;
    uint64_t n = 0;
    enum bz_status st = read_header(&s, &text, &n, err);
    if (st) goto done;
    st = json_parse(&root, (struct str) { text, (size_t)n }, &tree, err);
    if (st) {
        fail_prefix(err, st, "%s: safetensors header", s.source.name);
        goto done;
    }
    st = read_tensors(&s, root, 8 + n, err);
done:
    mem_free(text);
    arena_free(&tree);
    if (st) safetensors_close(&s);
    else *out = s;
    return st;
}

void safetensors_close(struct safetensors *s)
{
    source_close(&s->source);
    strmap_free(&s->by_name);
    mem_free(s->tensors);
    arena_free(&s->arena);
    *s = (struct safetensors) { 0 };
}

const struct st_tensor *safetensors_find(const struct safetensors *s, struct str name)
{
    uint32_t i;
    return strmap_find(&s->by_name, name, &i) ? &s->tensors[i] : NULL;
}
