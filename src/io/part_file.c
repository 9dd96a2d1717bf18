#define _FILE_OFFSET_BITS 64
#include "io/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define MAX_PIECE ((size_t)1 << 30) /* some systems refuse more in one write */
enum {
    MAX_OPEN = 16,
    MAX_TRIES = 99,
    PART_MAX = sizeof ".99.part",
};

struct part_file {
    char *path, *part; /* the final name and the name while writing */
    int fd;            /* -1 when there is no partial file */
    uint64_t n_written;
    _Atomic(char *) *listed; /* where `part` stands in the list below; NULL: nowhere */
    bool taken;              /* a handler on another thread has `part`, and ends us */
};

/* The names of those that are open, for part_file_remove_all. Whoever takes a name out owns it. */
static _Atomic(char *) names[MAX_OPEN];

static bool list_name(struct part_file *f)
{
    for (int i = 0; i < MAX_OPEN; i++) {
        char *none = NULL;
        if (!atomic_compare_exchange_strong(&names[i], &none, f->part)) continue;
        f->listed = &names[i];
        return true;
    }
    return false;
}

static void unlist_name(struct part_file *f)
{
    if (f->listed && atomic_exchange(f->listed, NULL) != f->part) f->taken = true;
    f->listed = NULL;
}

void part_file_remove_all(void)
{
    for (int i = 0; i < MAX_OPEN; i++) {
        char *name = atomic_exchange(&names[i], NULL);
        if (name) unlink(name);
    }
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

enum bz_status part_file_put(struct part_file *f, const void *p, size_t n, struct bz_err *err)
{
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

enum bz_status part_file_skip(struct part_file *f, uint64_t n, struct bz_err *err)
{
    uint64_t end;
    if (!size_add(f->n_written, n, &end) || end > INT64_MAX)
        return fail_write(err, f->path, f->n_written, EFBIG);
    if (ftruncate(f->fd, (off_t)end) != 0 || lseek(f->fd, (off_t)end, SEEK_SET) < 0)
        return fail_write(err, f->path, f->n_written, errno);
    f->n_written = end;
    return BZ_OK;
}

/* A crash must not leave a torn file under the final name. */
enum bz_status part_file_finish(struct part_file *f, struct bz_err *err)
{
    if (fsync(f->fd) != 0 && errno != EINVAL && errno != ENOSYS)
        return fail_write(err, f->path, f->n_written, errno);
    int fd = f->fd, why = 0;
    sigset_t all, before;
    f->fd = -1;
    if (close(fd) != 0) why = errno;
    /* Once the file has its final name, a file of the old one may be another run's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!why && rename(f->part, f->path) != 0) why = errno;
    if (why) unlink(f->part);
    unlist_name(f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why ? fail_write(err, f->path, f->n_written, why) : BZ_OK;
}

void part_file_close(struct part_file *f)
{
    if (!f) return;
    if (f->fd >= 0) {
        close(f->fd);
        unlink(f->part);
    }
    unlist_name(f);
    if (!f->taken) mem_free(f->part);
    mem_free(f->path);
    mem_free(f);
}

/* Create a file beside `path`. O_EXCL follows no link and opens no file that is there already: a
 * NAME.part may belong to another run, or may be a link that somebody placed so that we overwrite
 * its target. Such a file is left alone, and the next name is tried. */
static enum bz_status create(struct part_file *f, struct bz_err *err)
{
    struct stat info;
    sigset_t all, before;
    size_t n_part = strlen(f->path) + PART_MAX;
    if (stat(f->path, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(err, BZ_ERR_IO, "%s: exists and is not a file", f->path);
    bool listed = false;
    sigfillset(&all);
    for (int i = 1; i <= MAX_TRIES;) {
        if (i == 1) snprintf(f->part, n_part, "%s.part", f->path);
        else snprintf(f->part, n_part, "%s.%d.part", f->path, i);
        /* A signal that ends us between the two would leave a file that nobody removes. */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        f->fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        int why = errno;
        listed = f->fd >= 0 && list_name(f);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = why;
        if (f->fd >= 0 || (errno != EINTR && errno != EEXIST)) break;
        if (errno == EEXIST) i++;
    }
    if (f->fd >= 0 && !listed)
        return fail(err, BZ_ERR_IO, "%s: %d files are being written already", f->path, MAX_OPEN);
    if (f->fd >= 0) return BZ_OK;
    if (errno == EEXIST)
        return fail(err, BZ_ERR_IO,
                    "%s: %d unfinished files are beside it; delete %s.part and %s.*.part", f->path,
                    MAX_TRIES, f->path, f->path);
    if (errno == ENOENT || errno == ENOTDIR)
        return fail(err, BZ_ERR_NOT_FOUND, "%s: its directory does not exist", f->path);
    if (errno == EACCES || errno == EPERM || errno == EROFS)
        return fail(err, BZ_ERR_IO, "%s: no permission to write here", f->path);
    return fail_write(err, f->path, 0, errno);
}

enum bz_status part_file_open(struct part_file **out, const char *path, struct bz_err *err)
{
    size_t n_path = strlen(path);
    struct part_file *f = mem_alloc(1, sizeof *f);
    if (!f) return fail_memory(err, sizeof *f);
    f->fd = -1;
    f->path = mem_copy_str(path, n_path);
    f->part = mem_alloc(n_path + PART_MAX, 1);
    enum bz_status st = f->path && f->part ? create(f, err) : fail_memory(err, 2 * n_path);
    if (st) {
        part_file_close(f);
        return st;
    }
    *out = f;
    return BZ_OK;
}

enum bz_status part_file_write(const char *path, const void *p, size_t n, struct bz_err *err)
{
    struct part_file *f;
    enum bz_status st = part_file_open(&f, path, err);
    if (st) return st;
    st = part_file_put(f, p, n, err);
    if (st == BZ_OK) st = part_file_finish(f, err);
    part_file_close(f);
    return st;
}
