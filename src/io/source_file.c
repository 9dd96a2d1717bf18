/* source_file.c - files as sources, on POSIX systems.
 *
 * `read` always asks the system (pread), even when the file is mapped: then a file that someone
 * cuts short while it is open is an error at once. `map` is for the bulk of the weights, which are
 * never copied; a lost page of it reads as zeros, and source_lost says so (file_guard.h). A cut
 * within the last page, or a rewrite in place, raises no signal: for these source_lost also asks
 * the system for the file's size and time.
 */
#define _FILE_OFFSET_BITS 64 /* files past 2 GiB on 32-bit systems too */
#include "io/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/file_guard.h"

/* Some systems refuse a read of more than INT_MAX bytes, others cut it short. */
#define MAX_PIECE ((size_t)1 << 30)

struct file {
    int fd;
    size_t n_mapped;
    const unsigned char *mapped; /* NULL: the system cannot (or the file is empty) */
    struct file_guard *guard;    /* of the mapping */
    struct stat opened;          /* what it was like */
    atomic_bool changed;         /* since */
    char path[];                 /* for error sentences */
};

static enum bz_status file_read(void *ctx, uint64_t offset, void *dst, size_t n, struct bz_err *err)
{
    const struct file *f = ctx;
    unsigned char *to = dst;
    while (n) {
        ssize_t got = pread(f->fd, to, n < MAX_PIECE ? n : MAX_PIECE, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return fail(err, BZ_ERR_IO, "%s: cannot read at byte %" PRIu64 ": %s", f->path, offset,
                        strerror(errno));
        if (got == 0)
            return fail(err, BZ_ERR_IO,
                        "%s: became shorter while it was being read: nothing at "
                        "byte %" PRIu64,
                        f->path, offset);
        to += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return BZ_OK;
}

static const void *file_map(void *ctx, uint64_t offset, size_t n)
{
    const struct file *f = ctx;
    (void)n;
    return f->mapped ? f->mapped + offset : NULL;
}

static struct timespec written_at(const struct stat *info)
{
#ifdef __APPLE__
    return info->st_mtimespec;
#else
    return info->st_mtim;
#endif
}

static bool file_lost(void *ctx)
{
    struct file *f = ctx;
    struct stat now;
    if (f->guard && file_guard_lost(f->guard)) return true;
    if (atomic_load(&f->changed)) return true;
    if (fstat(f->fd, &now) == 0) {
        struct timespec a = written_at(&f->opened), b = written_at(&now);
        if (now.st_size == f->opened.st_size && a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec)
            return false;
    }
    atomic_store(&f->changed, true);
    return true;
}

static void file_close(void *ctx)
{
    struct file *f = ctx;
    file_guard_remove(f->guard);
    if (f->mapped) munmap((void *)(uintptr_t)f->mapped, f->n_mapped);
    if (f->fd >= 0) close(f->fd);
    mem_free(f);
}

enum bz_status source_fail_open(const char *path, int why, struct bz_err *err)
{
    if (why == ENOENT || why == ENOTDIR)
        return fail(err, BZ_ERR_NOT_FOUND, "%s: no such file", path);
    if (why == EACCES || why == EPERM)
        return fail(err, BZ_ERR_IO, "%s: no permission to read this file", path);
    if (why == EISDIR) return fail(err, BZ_ERR_IO, "%s: is a directory, not a file", path);
    return fail(err, BZ_ERR_IO, "%s: cannot open: %s", path, strerror(why));
}

/* Opens f->path and learns its size. Without O_NONBLOCK a named pipe would wait for its writer. */
static enum bz_status open_regular(struct file *f, uint64_t *size, struct bz_err *err)
{
    do f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (f->fd < 0 && errno == EINTR);
    if (f->fd < 0) return source_fail_open(f->path, errno, err);
    if (fstat(f->fd, &f->opened) != 0) return source_fail_open(f->path, errno, err);
    if (S_ISDIR(f->opened.st_mode)) return source_fail_open(f->path, EISDIR, err);
    if (!S_ISREG(f->opened.st_mode))
        return fail(err, BZ_ERR_IO, "%s: is not a regular file", f->path);
    *size = (uint64_t)f->opened.st_size;
    return BZ_OK;
}

/* Mapped where the system can and a guard is free; else it is read. */
static void map_file(struct file *f, uint64_t size)
{
    if (size == 0 || size > SIZE_MAX) return;
    void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, f->fd, 0);
    if (p == MAP_FAILED) return;
    f->guard = file_guard_add(p, (size_t)size);
    if (!f->guard) {
        munmap(p, (size_t)size);
        return;
    }
    f->mapped = p;
    f->n_mapped = (size_t)size;
}

enum bz_status source_open_file(struct source *out, const char *path, struct bz_err *err)
{
    size_t n_path = strlen(path);
    char *name = mem_copy_str(path, n_path);
    struct file *f = mem_alloc(1, sizeof *f + n_path + 1);
    if (!name || !f) {
        mem_free(name);
        mem_free(f);
        return fail_memory(err, sizeof *f + n_path + 1);
    }
    f->fd = -1;
    memcpy(f->path, path, n_path);
    uint64_t size = 0;
    enum bz_status st = open_regular(f, &size, err);
    if (st) {
        file_close(f);
        mem_free(name);
        return st;
    }
    map_file(f, size);
    *out = (struct source) {
        .name = name,
        .size = size,
        .ctx = f,
        .read = file_read,
        .map = file_map,
        .lost = file_lost,
        .close = file_close,
    };
    return BZ_OK;
}
