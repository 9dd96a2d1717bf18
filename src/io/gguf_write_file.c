/* gguf_write_file.c - a GGUF file on its way to the disk: NAME.part until it is whole. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/gguf_write.h"

#define MAX_PIECE ((size_t)1 << 30) /* some systems refuse more in one write */

struct part {
    char *path, *part; /* the final name and the name while writing */
    int fd;            /* -1 when there is no partial file */
    uint64_t n_written;
};

static enum bz_status fail_write(struct bz_err *err, const char *path, uint64_t n, int why)
{
    if (why == ENOSPC || why == EDQUOT)
        return fail(err, BZ_ERR_IO, "%s: the disk is full after %" PRIu64 " bytes", path, n);
    if (why == EFBIG)
        return fail(err, BZ_ERR_IO, "%s: a file of more than %" PRIu64 " bytes is not allowed here",
                    path, n);
    return fail(err, BZ_ERR_IO, "%s: cannot write: %s", path, strerror(why));
}

static enum bz_status put(void *ctx, const void *p, size_t n, struct bz_err *err)
{
    struct part *f = ctx;
    const uint8_t *from = p;
    while (n) {
        ssize_t done = write(f->fd, from, n < MAX_PIECE ? n : MAX_PIECE);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return fail_write(err, f->path, f->n_written, done < 0 ? errno : ENOSPC);
        from += done;
        n -= (size_t)done;
        f->n_written += (uint64_t)done;
    }
    return BZ_OK;
}

/* Whole on the disk before it takes its name: a crash must not leave a torn file under it. */
static enum bz_status finish(void *ctx, struct bz_err *err)
{
    struct part *f = ctx;
    if (fsync(f->fd) != 0 && errno != EINVAL && errno != ENOSYS)
        return fail_write(err, f->path, f->n_written, errno);
    int fd = f->fd, why = 0;
    f->fd = -1;
    if (close(fd) != 0 || rename(f->part, f->path) != 0) why = errno;
    if (why == 0) return BZ_OK;
    unlink(f->part);
    return fail_write(err, f->path, f->n_written, why);
}

static void close_part(void *ctx)
{
    struct part *f = ctx;
    if (f->fd >= 0) {
        close(f->fd);
        unlink(f->part);
    }
    mem_free(f->path);
    mem_free(f->part);
    mem_free(f);
}

static enum bz_status create(struct part *f, struct bz_err *err)
{
    struct stat info;
    if (stat(f->path, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(err, BZ_ERR_IO, "%s: exists and is not a file", f->path);
    do f->fd = open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    while (f->fd < 0 && errno == EINTR);
    if (f->fd >= 0) return BZ_OK;
    if (errno == ENOENT || errno == ENOTDIR)
        return fail(err, BZ_ERR_NOT_FOUND, "%s: its directory does not exist", f->path);
    if (errno == EACCES || errno == EPERM || errno == EROFS)
        return fail(err, BZ_ERR_IO, "%s: no permission to write here", f->path);
    return fail_write(err, f->path, 0, errno);
}

enum bz_status gguf_writer_open(struct gguf_writer **out, const char *path, struct bz_err *err)
{
    size_t n_path = strlen(path);
    struct part *f = mem_alloc(1, sizeof *f);
    if (!f) return fail_memory(err, sizeof *f);
    f->fd = -1;
    f->path = mem_copy_str(path, n_path);
    f->part = mem_alloc(n_path + sizeof ".part", 1);
    enum bz_status st = BZ_OK;
    if (!f->path || !f->part) {
        st = fail_memory(err, 2 * n_path);
    } else {
        memcpy(f->part, path, n_path);
        memcpy(f->part + n_path, ".part", sizeof ".part");
        st = create(f, err);
    }
    if (st) {
        close_part(f);
        return st;
    }
    return gguf_writer_open_sink(
        out, path,
        &(struct gguf_sink) { .ctx = f, .put = put, .finish = finish, .close = close_part }, err);
}
