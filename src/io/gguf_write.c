/* gguf_write.c - the writer of GGUF files.
 *
 * Metadata and tensor descriptions collect in memory until the first tensor data arrives; then the
 * header goes out and data follows it straight to the sink. Small pieces pass through a buffer,
 * large ones do not. Every tensor, also the last, is padded to the alignment, as other readers of
 * the format expect.
 *
 * The first thing that goes wrong is kept, the sink is closed at once (a full disk should not stay
 * full), and everything after it does nothing.
 */
#include "io/gguf_write.h"

#include <inttypes.h>

#include "base/le.h"
#include "base/mem.h"
#include "quant/quant.h"

#define ALIGN    32u
#define N_BUFFER ((size_t)1 << 20)
#define N_START  24u /* magic, version, two counts */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "arrays are written as they lie in memory");

/* A name inside one of the header's buffers, and for tensors what is owed. */
struct entry {
    size_t name_at, n_name;
    uint64_t n_bytes;
};

struct table {
    struct buf bytes; /* as they will be in the file */
    struct entry *entries;
    size_t n, cap;
};

struct gguf_writer {
    char *name; /* for sentences */
    struct gguf_sink sink;
    bool open;         /* is the sink? */
    enum bz_status st; /* the first failure */
    struct bz_err err;
    struct table kvs, tensors;
    uint64_t n_head;  /* of the header, once it is out */
    uint64_t n_data;  /* of the data section, as promised so far */
    bool in_data;     /* the header is out */
    size_t current;   /* tensor that takes the next data */
    uint64_t n_given; /* of its bytes */
    uint8_t *buffer;
    size_t n_buffer;
};

static uint64_t n_padding(uint64_t n)
{
    return -n & (ALIGN - 1);
}

static void close_sink(struct gguf_writer *w)
{
    if (w->open && w->sink.close) w->sink.close(w->sink.ctx);
    w->open = false;
}

/* Remember the first failure, whose sentence is in w->err already. */
static void give_up(struct gguf_writer *w, enum bz_status st)
{
    w->st = st;
    close_sink(w);
}

/* Bytes to the sink. */

static void write_out(struct gguf_writer *w, const void *p, size_t n)
{
    if (!n || w->st) return;
    enum bz_status st = w->sink.put(w->sink.ctx, p, n, &w->err);
    if (st) give_up(w, st);
}

static void flush(struct gguf_writer *w)
{
    write_out(w, w->buffer, w->n_buffer);
    w->n_buffer = 0;
}

static void emit(struct gguf_writer *w, const void *p, size_t n)
{
    if (n > N_BUFFER - w->n_buffer) flush(w);
    if (w->st) return;
    if (n >= N_BUFFER) {
        write_out(w, p, n);
        return;
    }
    if (n) memcpy(w->buffer + w->n_buffer, p, n);
    w->n_buffer += n;
}

static const uint8_t zeros[4096];

static void emit_padding(struct gguf_writer *w, uint64_t n)
{
    emit(w, zeros, (size_t)n_padding(n));
}

static void emit_zeros(struct gguf_writer *w, uint64_t n)
{
    if (w->sink.skip) {
        flush(w);
        enum bz_status st = w->st ? w->st : w->sink.skip(w->sink.ctx, n, &w->err);
        if (st && !w->st) give_up(w, st);
        return;
    }
    for (; n && !w->st; n -= n < sizeof zeros ? n : sizeof zeros)
        emit(w, zeros, n < sizeof zeros ? (size_t)n : sizeof zeros);
}

/* The header's two tables. */

static void put_u32(struct buf *b, uint32_t v)
{
    uint8_t p[4];
    le_put32(p, v);
    buf_put(b, p, sizeof p);
}

static void put_u64(struct buf *b, uint64_t v)
{
    uint8_t p[8];
    le_put64(p, v);
    buf_put(b, p, sizeof p);
}

static void put_string(struct buf *b, struct str s)
{
    put_u64(b, s.n);
    buf_put(b, s.p, s.n);
}

/* Start an entry with its name. NULL when the writer has failed or the time for it is over. */
static struct entry *add_entry(struct gguf_writer *w, struct table *t, struct str name)
{
    if (w->st) return NULL;
    if (w->in_data) {
        give_up(w, fail(&w->err, BZ_ERR_ARGUMENT, "%s: '%.*s' comes after the first tensor data",
                        w->name, STR_ARG(name)));
        return NULL;
    }
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 64;
        struct entry *grown = mem_grow(t->entries, cap, sizeof *grown);
        if (!grown) {
            give_up(w, fail_memory(&w->err, cap * sizeof *grown));
            return NULL;
        }
        t->entries = grown;
        t->cap = cap;
    }
    t->entries[t->n] = (struct entry) { .name_at = t->bytes.n + 8, .n_name = name.n };
    put_string(&t->bytes, name);
    return &t->entries[t->n++];
}

static struct str entry_name(const struct table *t, size_t i)
{
    return (struct str) { t->bytes.data + t->entries[i].name_at, t->entries[i].n_name };
}

/* False when the writer has failed; else the value's bytes may follow in w->kvs.bytes. */
static bool start_kv(struct gguf_writer *w, struct str key, enum gguf_type type)
{
    if (!w->st && str_is(key, "general.alignment"))
        give_up(w,
                fail(&w->err, BZ_ERR_ARGUMENT, "%s: the alignment is always %u", w->name, ALIGN));
    if (!add_entry(w, &w->kvs, key)) return false;
    put_u32(&w->kvs.bytes, type);
    return true;
}

static bool start_array(struct gguf_writer *w, const char *key, enum gguf_type elem, uint64_t n)
{
    if (!start_kv(w, str_of(key), GGUF_ARRAY)) return false;
    put_u32(&w->kvs.bytes, elem);
    put_u64(&w->kvs.bytes, n);
    return true;
}

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v)
{
    if (start_kv(w, str_of(key), GGUF_U32)) put_u32(&w->kvs.bytes, v);
}

void gguf_put_u64(struct gguf_writer *w, const char *key, uint64_t v)
{
    if (start_kv(w, str_of(key), GGUF_U64)) put_u64(&w->kvs.bytes, v);
}

void gguf_put_f32(struct gguf_writer *w, const char *key, float v)
{
    if (start_kv(w, str_of(key), GGUF_F32)) buf_put(&w->kvs.bytes, &v, sizeof v);
}

void gguf_put_bool(struct gguf_writer *w, const char *key, bool v)
{
    if (start_kv(w, str_of(key), GGUF_BOOL)) buf_putc(&w->kvs.bytes, v);
}

void gguf_put_str(struct gguf_writer *w, const char *key, struct str v)
{
    if (start_kv(w, str_of(key), GGUF_STRING)) put_string(&w->kvs.bytes, v);
}

void gguf_put_array(struct gguf_writer *w, const char *key, enum gguf_type type, const void *v,
                    uint64_t n)
{
    uint32_t size = gguf_type_size(type);
    uint64_t n_bytes;
    if (w->st) return;
    if (size == 0 || !size_mul(n, size, &n_bytes) || n_bytes > SIZE_MAX) {
        give_up(w, fail(&w->err, BZ_ERR_ARGUMENT, "%s: '%s' cannot be an array of %" PRIu64 " %s",
                        w->name, key, n, gguf_type_name(type)));
        return;
    }
    if (start_array(w, key, type, n)) buf_put(&w->kvs.bytes, v, (size_t)n_bytes);
}

void gguf_put_strs(struct gguf_writer *w, const char *key, const struct str *v, uint64_t n)
{
    if (!start_array(w, key, GGUF_STRING, n)) return;
    for (uint64_t i = 0; i < n; i++) put_string(&w->kvs.bytes, v[i]);
}

void gguf_put_kv(struct gguf_writer *w, const struct gguf_kv *kv)
{
    if (str_is(kv->key, "general.alignment") || str_starts(kv->key, "split.")) return;
    if (!start_kv(w, kv->key, kv->type)) return;
    if (kv->type == GGUF_ARRAY) {
        put_u32(&w->kvs.bytes, kv->elem);
        put_u64(&w->kvs.bytes, kv->n);
    }
    buf_put(&w->kvs.bytes, kv->value, (size_t)kv->n_bytes);
}

/* Bytes of a tensor; 0 when there is no such tensor. */
static uint64_t tensor_bytes(uint32_t type, uint32_t n_dims, const uint64_t *ne)
{
    uint64_t n = 1;
    uint32_t block, bytes;
    if (n_dims < 1 || n_dims > 4 || !quant_type_size(type, &block, &bytes) || ne[0] % block)
        return 0;
    for (uint32_t i = 0; i < n_dims; i++)
        if (!size_mul(n, ne[i], &n)) return 0;
    return size_mul(n / block, bytes, &n) && n <= INT64_MAX ? n : 0;
}

void gguf_put_tensor(struct gguf_writer *w, const char *name, uint32_t type, uint32_t n_dims,
                     const uint64_t *ne)
{
    uint64_t n = tensor_bytes(type, n_dims, ne), total = 0;
    if (w->st) return;
    if (n == 0 || !size_add(w->n_data, n + ALIGN, &total)) {
        give_up(w, fail(&w->err, BZ_ERR_ARGUMENT, "%s: tensor '%s' cannot have this shape as %s",
                        w->name, name, quant_type_name(type)));
        return;
    }
    struct entry *e = add_entry(w, &w->tensors, str_of(name));
    if (!e) return;
    e->n_bytes = n;
    struct buf *b = &w->tensors.bytes;
    put_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) put_u64(b, ne[i]);
    put_u32(b, type);
    put_u64(b, w->n_data);
    w->n_data += n + n_padding(n);
}

/* A name twice would be a file that no reader opens. */
static void check_unique(struct gguf_writer *w, const struct table *t, const char *kind)
{
    struct strmap seen = { 0 };
    if (w->st) return;
    if (t->bytes.failed || !strmap_init(&seen, t->n)) {
        give_up(w, fail_memory(&w->err, t->bytes.n + t->n * sizeof(struct strmap_slot)));
        return;
    }
    for (size_t i = 0; i < t->n && !w->st; i++) {
        struct str name = entry_name(t, i);
        if (!strmap_add(&seen, name, 0))
            give_up(w, fail(&w->err, BZ_ERR_ARGUMENT, "%s: %s '%.*s' was given twice", w->name,
                            kind, STR_ARG(name)));
    }
    strmap_free(&seen);
}

static uint64_t n_header(const struct gguf_writer *w)
{
    return N_START + w->kvs.bytes.n + w->tensors.bytes.n;
}

static void emit_header(struct gguf_writer *w)
{
    uint8_t start[N_START] = "GGUF";
    check_unique(w, &w->kvs, "key");
    check_unique(w, &w->tensors, "tensor");
    if (w->st) return;
    le_put32(start + 4, 3);
    le_put64(start + 8, w->tensors.n);
    le_put64(start + 16, w->kvs.n);
    emit(w, start, sizeof start);
    emit(w, w->kvs.bytes.data, w->kvs.bytes.n);
    emit(w, w->tensors.bytes.data, w->tensors.bytes.n);
    w->n_head = n_header(w);
    emit_padding(w, w->n_head);
    buf_free(&w->kvs.bytes); /* a vocabulary: most of what is in memory */
    w->in_data = true;
}

/* n bytes of the current tensor: those at p, or NULL for zeros. */
static void put_bytes(struct gguf_writer *w, const void *p, uint64_t n)
{
    if (!w->in_data) emit_header(w);
    if (w->st || n == 0) return;
    uint64_t owed = w->current < w->tensors.n ? w->tensors.entries[w->current].n_bytes : 0;
    if (n > owed - w->n_given) {
        struct str name = owed ? entry_name(&w->tensors, w->current) : str_of("");
        give_up(w, fail(&w->err, BZ_ERR_ARGUMENT, "%s: more data than tensor '%.*s' has room for",
                        w->name, STR_ARG(name)));
        return;
    }
    if (p) emit(w, p, (size_t)n);
    else emit_zeros(w, n);
    w->n_given += n;
    if (w->n_given < owed) return;
    emit_padding(w, owed);
    w->current++;
    w->n_given = 0;
}

void gguf_put_data(struct gguf_writer *w, const void *p, size_t n)
{
    put_bytes(w, p, n);
}

void gguf_put_zeros(struct gguf_writer *w, uint64_t n)
{
    put_bytes(w, NULL, n);
}

/* Open, finish, abort. */

static void free_writer(struct gguf_writer *w)
{
    close_sink(w);
    buf_free(&w->kvs.bytes);
    buf_free(&w->tensors.bytes);
    mem_free(w->kvs.entries);
    mem_free(w->tensors.entries);
    mem_free(w->buffer);
    mem_free(w->name);
    mem_free(w);
}

enum bz_status gguf_writer_open_sink(struct gguf_writer **out, const char *name,
                                     const struct gguf_sink *sink, struct bz_err *err)
{
    size_t n_name = strlen(name);
    struct gguf_writer *w = mem_alloc(1, sizeof *w);
    if (w) {
        w->sink = *sink;
        w->open = true;
        w->name = mem_copy_str(name, n_name);
        w->buffer = mem_alloc(N_BUFFER, 1);
        if (w->name && w->buffer) {
            *out = w;
            return BZ_OK;
        }
        free_writer(w);
    } else if (sink->close) {
        sink->close(sink->ctx);
    }
    return fail_memory(err, N_BUFFER + n_name + sizeof *w);
}

bool gguf_writer_failed(const struct gguf_writer *w)
{
    return w->st != BZ_OK;
}

uint64_t gguf_writer_size(const struct gguf_writer *w)
{
    uint64_t n = w->in_data ? w->n_head : n_header(w);
    return n + n_padding(n) + w->n_data;
}

enum bz_status gguf_writer_finish(struct gguf_writer *w, struct bz_err *err)
{
    if (!w->in_data) emit_header(w);
    if (!w->st && w->current < w->tensors.n)
        give_up(w, fail(&w->err, BZ_ERR_ARGUMENT,
                        "%s: tensor '%.*s' got %" PRIu64 " of its %" PRIu64 " bytes", w->name,
                        STR_ARG(entry_name(&w->tensors, w->current)), w->n_given,
                        w->tensors.entries[w->current].n_bytes));
    if (!w->st) flush(w);
    if (!w->st && w->sink.finish) {
        enum bz_status st = w->sink.finish(w->sink.ctx, &w->err);
        if (st) give_up(w, st);
    }
    enum bz_status st = w->st;
    if (st && err) *err = w->err;
    free_writer(w);
    return st;
}

void gguf_writer_abort(struct gguf_writer *w)
{
    if (w) free_writer(w);
}
