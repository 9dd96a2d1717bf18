/* gguf_write.c - the writer of GGUF files.
 *
 * Metadata and tensor descriptions collect in memory until the first tensor data arrives; then the
 * header goes out and data follows it straight to the file. Small pieces pass through a buffer,
 * large ones do not. Every tensor, also the last, is padded to the alignment, as other readers of
 * the format expect.
 *
 * The first thing that goes wrong is kept, the partial file is removed at once (a full disk should
 * not stay full), and everything after it does nothing.
 */
#define _FILE_OFFSET_BITS 64
#include "io/gguf_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/le.h"
#include "base/mem.h"
#include "quant/quant.h"

#define ALIGN     32u
#define N_BUFFER  ((size_t)1 << 20)
#define MAX_PIECE ((size_t)1 << 30) /* some systems refuse more in one write */

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
    char *path, *part; /* the final name and the name while writing */
    int fd;            /* -1 when there is no partial file */
    enum bz_status st; /* the first failure */
    struct bz_err err;
    struct table kvs, tensors;
    uint64_t n_data;  /* of the data section, as promised so far */
    bool in_data;     /* the header is out */
    size_t current;   /* tensor that takes the next data */
    uint64_t n_given; /* of its bytes */
    uint64_t n_written;
    uint8_t *buffer;
    size_t n_buffer;
};

static uint64_t n_padding(uint64_t n)
{
    return -n & (ALIGN - 1);
}

static void drop_file(struct gguf_writer *w)
{
    if (w->fd < 0) return;
    close(w->fd);
    unlink(w->part);
    w->fd = -1;
}

/* Remember the first failure, whose sentence is in w->err already. */
static void give_up(struct gguf_writer *w, enum bz_status st)
{
    w->st = st;
    drop_file(w);
}

static enum bz_status fail_write(struct bz_err *err, const char *path, uint64_t n, int why)
{
    if (why == ENOSPC || why == EDQUOT)
        return fail(err, BZ_ERR_IO, "%s: the disk is full after %" PRIu64 " bytes", path, n);
    if (why == EFBIG)
        return fail(err, BZ_ERR_IO, "%s: a file of more than %" PRIu64 " bytes is not allowed here",
                    path, n);
    return fail(err, BZ_ERR_IO, "%s: cannot write: %s", path, strerror(why));
}

/* Bytes to the file. */

static void write_out(struct gguf_writer *w, const void *p, size_t n)
{
    const uint8_t *from = p;
    while (n && !w->st) {
        ssize_t done = write(w->fd, from, n < MAX_PIECE ? n : MAX_PIECE);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            give_up(w, fail_write(&w->err, w->path, w->n_written, done < 0 ? errno : ENOSPC));
            return;
        }
        from += done;
        n -= (size_t)done;
        w->n_written += (uint64_t)done;
    }
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

static void emit_padding(struct gguf_writer *w, uint64_t n)
{
    static const uint8_t zeros[ALIGN];
    emit(w, zeros, (size_t)n_padding(n));
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
                        w->path, STR_ARG(name)));
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
                fail(&w->err, BZ_ERR_ARGUMENT, "%s: the alignment is always %u", w->path, ALIGN));
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
                        w->path, key, n, gguf_type_name(type)));
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
                        w->path, name, quant_type_name(type)));
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
            give_up(w, fail(&w->err, BZ_ERR_ARGUMENT, "%s: %s '%.*s' was given twice", w->path,
                            kind, STR_ARG(name)));
    }
    strmap_free(&seen);
}

static void emit_header(struct gguf_writer *w)
{
    uint8_t start[24] = "GGUF";
    check_unique(w, &w->kvs, "key");
    check_unique(w, &w->tensors, "tensor");
    if (w->st) return;
    le_put32(start + 4, 3);
    le_put64(start + 8, w->tensors.n);
    le_put64(start + 16, w->kvs.n);
    emit(w, start, sizeof start);
    emit(w, w->kvs.bytes.data, w->kvs.bytes.n);
    emit(w, w->tensors.bytes.data, w->tensors.bytes.n);
    emit_padding(w, sizeof start + w->kvs.bytes.n + w->tensors.bytes.n);
    w->in_data = true;
}

void gguf_put_data(struct gguf_writer *w, const void *p, size_t n)
{
    if (!w->in_data) emit_header(w);
    if (w->st || n == 0) return;
    uint64_t owed = w->current < w->tensors.n ? w->tensors.entries[w->current].n_bytes : 0;
    if (n > owed - w->n_given) {
        struct str name = owed ? entry_name(&w->tensors, w->current) : str_of("");
        give_up(w, fail(&w->err, BZ_ERR_ARGUMENT, "%s: more data than tensor '%.*s' has room for",
                        w->path, STR_ARG(name)));
        return;
    }
    emit(w, p, n);
    w->n_given += n;
    if (w->n_given < owed) return;
    emit_padding(w, owed);
    w->current++;
    w->n_given = 0;
}

/* Open, finish, abort. */

static enum bz_status create_part(struct gguf_writer *w, struct bz_err *err)
{
    struct stat info;
    if (stat(w->path, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(err, BZ_ERR_IO, "%s: exists and is not a file", w->path);
    do w->fd = open(w->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    while (w->fd < 0 && errno == EINTR);
    if (w->fd >= 0) return BZ_OK;
    if (errno == ENOENT || errno == ENOTDIR)
        return fail(err, BZ_ERR_NOT_FOUND, "%s: its directory does not exist", w->path);
    if (errno == EACCES || errno == EPERM || errno == EROFS)
        return fail(err, BZ_ERR_IO, "%s: no permission to write here", w->path);
    return fail_write(err, w->path, 0, errno);
}

static void free_writer(struct gguf_writer *w)
{
    drop_file(w);
    buf_free(&w->kvs.bytes);
    buf_free(&w->tensors.bytes);
    mem_free(w->kvs.entries);
    mem_free(w->tensors.entries);
    mem_free(w->buffer);
    mem_free(w->path);
    mem_free(w->part);
    mem_free(w);
}

enum bz_status gguf_writer_open(struct gguf_writer **out, const char *path, struct bz_err *err)
{
    size_t n_path = strlen(path);
    struct gguf_writer *w = mem_alloc(1, sizeof *w);
    if (!w) return fail_memory(err, sizeof *w);
    w->fd = -1;
    w->path = mem_copy_str(path, n_path);
    w->part = mem_alloc(n_path + sizeof ".part", 1);
    w->buffer = mem_alloc(N_BUFFER, 1);
    enum bz_status st = BZ_OK;
    if (!w->path || !w->part || !w->buffer) {
        st = fail_memory(err, N_BUFFER + 2 * n_path);
    } else {
        memcpy(w->part, path, n_path);
        memcpy(w->part + n_path, ".part", sizeof ".part");
        st = create_part(w, err);
    }
    if (st) {
        free_writer(w);
        return st;
    }
    *out = w;
    return BZ_OK;
}

/* Whole on the disk before it takes its name: a crash must not leave a torn file under it. */
static void settle(struct gguf_writer *w)
{
    if (fsync(w->fd) != 0 && errno != EINVAL && errno != ENOSYS) {
        give_up(w, fail_write(&w->err, w->path, w->n_written, errno));
        return;
    }
    int fd = w->fd, why = 0;
    w->fd = -1;
    if (close(fd) != 0 || rename(w->part, w->path) != 0) why = errno;
    if (why == 0) return;
    unlink(w->part);
    give_up(w, fail_write(&w->err, w->path, w->n_written, why));
}

enum bz_status gguf_writer_finish(struct gguf_writer *w, struct bz_err *err)
{
    if (!w->in_data) emit_header(w);
    if (!w->st && w->current < w->tensors.n)
        give_up(w, fail(&w->err, BZ_ERR_ARGUMENT,
                        "%s: tensor '%.*s' got %" PRIu64 " of its %" PRIu64 " bytes", w->path,
                        STR_ARG(entry_name(&w->tensors, w->current)), w->n_given,
                        w->tensors.entries[w->current].n_bytes));
    if (!w->st) flush(w);
    if (!w->st) settle(w);
    enum bz_status st = w->st;
    if (st && err) *err = w->err;
    free_writer(w);
    return st;
}

void gguf_writer_abort(struct gguf_writer *w)
{
    if (w) free_writer(w);
}
