/* Tests of io/source.h: memory, files, and what the system may do to a read. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "check.h"
#include "io/source.h"

static struct bz_err err;

/* The system's pread, made unkind on demand: at most `most` bytes a call, every other call
 * interrupted, or a failure from a certain byte on. */
static struct {
    size_t most;
    int interrupts, calls;
    int64_t fail_from; /* -1: never */
} unkind = { .fail_from = -1 };

#ifdef SYS_pread64
ssize_t pread(int fd, void *dst, size_t n, off_t offset)
{
    unkind.calls++;
    if (unkind.interrupts && unkind.calls % 2) {
        errno = EINTR;
        return -1;
    }
    if (unkind.fail_from >= 0 && offset >= unkind.fail_from) {
        errno = EIO;
        return -1;
    }
    if (unkind.most && n > unkind.most) n = unkind.most;
    return (ssize_t)syscall(SYS_pread64, fd, dst, n, offset);
}
#endif

#define PATH "build/tmp/test_source.bin"

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL);
    if (!f) return;
    CHECK(fwrite(p, 1, n, f) == n);
    fclose(f);
}

static void test_memory(void)
{
    TEST("memory reads and maps inside its bounds and nowhere else")
    {
        static const char text[] = "0123456789";
        char got[16];
        struct source s = { 0 };
        int64_t live = mem_live();
        CHECK(source_open_memory(&s, "ten", text, 10, &err) == BZ_OK);
        CHECK(s.size == 10);
        CHECK_STR(s.name, "ten");
        for (size_t at = 0; at <= 12; at++) {
            for (size_t n = 0; n <= 12; n++) {
                int inside = at + n <= 10;
                memset(got, '-', sizeof got);
                CHECK(source_read(&s, at, got, n, &err) == (inside ? BZ_OK : BZ_ERR_FORMAT));
                CHECK(memcmp(got, inside ? text + at : "----------------", n) == 0);
                CHECK(got[n] == '-');
                CHECK(source_map(&s, at, n) == (inside && n ? text + at : NULL));
            }
        }
        CHECK(source_read(&s, UINT64_MAX, got, 2, &err) == BZ_ERR_FORMAT);
        CHECK(source_read(&s, 2, got, SIZE_MAX, &err) == BZ_ERR_FORMAT);
        CHECK(source_read(&s, 9, got, 2, &err) == BZ_ERR_FORMAT);
        CHECK_STR(err.text, "ten: 2 bytes are wanted at byte 9, but it ends at byte 10");
        CHECK(source_map(&s, UINT64_MAX, 2) == NULL && source_map(&s, 2, UINT64_MAX) == NULL);
        source_close(&s);
        source_close(&s);
        CHECK(mem_live() == live);
    }

    TEST("an empty source is legal")
    {
        struct source s = { 0 };
        struct buf b = { 0 };
        CHECK(source_open_memory(&s, "none", NULL, 0, &err) == BZ_OK);
        CHECK(source_read(&s, 0, NULL, 0, &err) == BZ_OK);
        CHECK(source_read_all(&s, 0, &b, &err) == BZ_OK);
        CHECK(b.n == 0);
        CHECK_STR(b.data, "");
        buf_free(&b);
        source_close(&s);
    }

    TEST("a source without map has none")
    {
        struct source s = { 0 };
        CHECK(source_open_memory(&s, "x", "abc", 3, &err) == BZ_OK);
        s.map = NULL;
        CHECK(source_map(&s, 0, 3) == NULL);
        source_close(&s);
    }

    TEST("a whole text is read with a NUL after it, up to the limit and not past it")
    {
        struct source s = { 0 };
        struct buf b = { 0 };
        CHECK(source_open_memory(&s, "five", "hello", 5, &err) == BZ_OK);
        CHECK(source_read_all(&s, 5, &b, &err) == BZ_OK);
        CHECK(b.n == 5);
        CHECK_STR(b.data, "hello");
        buf_puts(&b, " there"); /* it is an ordinary buffer */
        CHECK_STR(b.data, "hello there");
        buf_free(&b);
        CHECK(source_read_all(&s, 4, &b, &err) == BZ_ERR_LIMIT);
        CHECK_STR(err.text, "five: 5 bytes are more than the 4 allowed");
        CHECK(b.data == NULL);
        source_close(&s);
    }
}

static void test_files(const uint8_t *want, size_t n)
{
    TEST("a file reads and maps as the bytes that were written")
    {
        struct source s = { 0 };
        int64_t live = mem_live();
        uint8_t *got = malloc(n);
        write_file(PATH, want, n);
        CHECK(source_open_file(&s, PATH, &err) == BZ_OK);
        CHECK(s.size == n);
        CHECK(source_read(&s, 0, got, n, &err) == BZ_OK && memcmp(got, want, n) == 0);
        struct rng r = { 3 };
        for (int i = 0; i < 200; i++) {
            size_t at = rng_below(&r, (uint32_t)n), len = rng_below(&r, (uint32_t)(n - at)) + 1;
            CHECK(source_read(&s, at, got, len, &err) == BZ_OK);
            CHECK(memcmp(got, want + at, len) == 0);
            const void *p = source_map(&s, at, len);
            CHECK(p && memcmp(p, want + at, len) == 0);
        }
        CHECK(source_read(&s, n - 1, got, 2, &err) == BZ_ERR_FORMAT);
        CHECK(source_map(&s, n - 1, 2) == NULL);
        source_close(&s);
        CHECK(mem_live() == live);
        free(got);
    }

    TEST("an empty file opens and has no bytes")
    {
        struct source s = { 0 };
        write_file(PATH, "", 0);
        CHECK(source_open_file(&s, PATH, &err) == BZ_OK);
        CHECK(s.size == 0 && source_map(&s, 0, 0) == NULL);
        CHECK(source_read(&s, 0, NULL, 0, &err) == BZ_OK);
        source_close(&s);
    }

    TEST("what cannot be opened is one sentence that names it")
    {
        struct source s = { 0 };
        int64_t live = mem_live();
        CHECK(source_open_file(&s, "build/tmp/no-such", &err) == BZ_ERR_NOT_FOUND);
        CHECK_STR(err.text, "build/tmp/no-such: no such file");
        CHECK(source_open_file(&s, "", &err) == BZ_ERR_NOT_FOUND);
        write_file(PATH, "x", 1);
        CHECK(source_open_file(&s, PATH "/x", &err) == BZ_ERR_NOT_FOUND);
        CHECK(source_open_file(&s, "build/tmp", &err) == BZ_ERR_IO);
        CHECK_STR(err.text, "build/tmp: is a directory, not a file");
        CHECK(source_open_file(&s, "/dev/null", &err) == BZ_ERR_IO);
        CHECK_STR(err.text, "/dev/null: is not a regular file");
        CHECK(chmod(PATH, 0) == 0);
        if (geteuid() != 0) { /* root may read anything */
            CHECK(source_open_file(&s, PATH, &err) == BZ_ERR_IO);
            CHECK_STR(err.text, PATH ": no permission to read this file");
        }
        unlink(PATH);
        CHECK(mkfifo(PATH, 0600) == 0);
        CHECK(source_open_file(&s, PATH, &err) == BZ_ERR_IO); /* and does not wait for a writer */
        CHECK_STR(err.text, PATH ": is not a regular file");
        unlink(PATH);
        CHECK(s.name == NULL);
        CHECK(mem_live() == live);
    }

    TEST("a failed allocation while opening leaks neither memory nor a descriptor")
    {
        struct source s = { 0 };
        int64_t live = mem_live();
        write_file(PATH, "x", 1);
        int before = open("/dev/null", O_RDONLY);
        close(before);
        bool opened = false;
        for (uint64_t k = 1; !opened && k < 10; k++) {
            mem_fail_at(k);
            enum bz_status st = source_open_file(&s, PATH, &err);
            mem_fail_at(0);
            opened = st == BZ_OK;
            CHECK(opened || (st == BZ_ERR_MEMORY && s.name == NULL));
        }
        CHECK(opened);
        source_close(&s);
        int after = open("/dev/null", O_RDONLY);
        close(after);
        CHECK(after == before);
        CHECK(mem_live() == live);
        unlink(PATH);
    }
}

static void test_unkind_reads(const uint8_t *want, size_t n)
{
#ifdef SYS_pread64
    uint8_t *got = malloc(n);
    struct source s = { 0 };
    write_file(PATH, want, n);
    TEST("short and interrupted reads are continued")
    {
        CHECK(source_open_file(&s, PATH, &err) == BZ_OK);
        unkind.most = 777;
        unkind.interrupts = 1;
        unkind.calls = 0;
        memset(got, 0, n);
        CHECK(source_read(&s, 0, got, n, &err) == BZ_OK);
        CHECK(memcmp(got, want, n) == 0);
        CHECK(unkind.calls >= (int)(2 * n / 777));
        unkind.most = 0;
        unkind.interrupts = 0;
    }

    TEST("a read that the system refuses names the file and the byte")
    {
        unkind.fail_from = 4096;
        unkind.most = 4096;
        CHECK(source_read(&s, 0, got, n, &err) == BZ_ERR_IO);
        CHECK(strstr(err.text, PATH ": cannot read at byte 4096: ") == err.text);
        struct buf b = { 0 };
        int64_t live = mem_live();
        CHECK(source_read_all(&s, n, &b, &err) == BZ_ERR_IO);
        CHECK(b.data == NULL && mem_live() == live);
        unkind.fail_from = -1;
        unkind.most = 0;
    }

    TEST("a file that becomes shorter while open is an error and not a crash")
    {
        CHECK(truncate(PATH, 100) == 0);
        CHECK(source_read(&s, 0, got, n, &err) == BZ_ERR_IO);
        CHECK_STR(err.text, PATH ": became shorter while it was being read: nothing at byte 100");
    }
    source_close(&s);
    unlink(PATH);
    free(got);
#else
    (void)want;
    (void)n;
    TEST("short and interrupted reads are continued") SKIP("pread cannot be replaced here");
#endif
}

int main(void)
{
    static uint8_t want[100003];
    struct rng r = { 1 };
    for (size_t i = 0; i < sizeof want; i++) want[i] = (uint8_t)rng_next(&r);
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    unlink(PATH);
    test_memory();
    test_files(want, sizeof want);
    test_unkind_reads(want, sizeof want);
    return check_done();
}
