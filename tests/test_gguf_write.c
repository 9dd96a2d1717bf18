/* Tests of io/gguf_write.h: what is written reads back, and what fails leaves nothing behind. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "io/gguf_write.h"
#include "io/part_file.h"
#include "quant/quant.h"

#define PATH "build/tmp/test_gguf_write.gguf"

static struct bz_err err;

/* The system's write, made unkind on demand: at most `most` bytes a call, every other call
 * interrupted, and a disk of `room` bytes. */
static struct {
    size_t most;
    int interrupts, calls;
    int64_t room; /* -1: no limit */
} unkind = { .room = -1 };

ssize_t write(int fd, const void *p, size_t n)
{
    unkind.calls++;
    if (unkind.interrupts && unkind.calls % 2) {
        errno = EINTR;
        return -1;
    }
    if (unkind.room == 0) {
        errno = ENOSPC;
        return -1;
    }
    if (unkind.most && n > unkind.most) n = unkind.most;
    if (unkind.room > 0 && n > (size_t)unkind.room) n = (size_t)unkind.room;
    ssize_t done = (ssize_t)syscall(SYS_write, fd, p, n);
    if (unkind.room > 0 && done > 0) unkind.room -= done;
    return done;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool nothing_left(void)
{
    return !exists(PATH) && !exists(PATH ".part");
}

static void put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static const struct {
    const char *name;
    uint32_t type, n_dims;
    uint64_t ne[4], n_bytes;
} tensors[] = {
    { "norm", QUANT_F32, 1, { 7 }, 28 },
    { "half", QUANT_F16, 2, { 3, 5 }, 30 },
    { "q8", QUANT_Q8_0, 2, { 64, 3 }, 204 },
    { "q4k", QUANT_Q4_K, 3, { 256, 3, 5 }, 2160 },
    { "large", QUANT_F32, 4, { 512, 3, 7, 100 }, 4300800 },
    { "one", QUANT_BF16, 1, { 1 }, 2 },
};
enum { N_TENSORS = sizeof tensors / sizeof *tensors };

static uint8_t byte_of(uint64_t tensor, uint64_t i)
{
    return (uint8_t)(rng_at(tensor, i / 8) >> (8 * (i % 8)));
}

/* Everything that the writer can say, its data in pieces of at most `piece` bytes. */
static enum bz_status write_model(size_t piece)
{
    struct gguf_writer *w = NULL;
    enum bz_status st = gguf_writer_open(&w, PATH, &err);
    if (st) return st;
    gguf_put_u32(w, "a.u32", 7);
    gguf_put_u64(w, "a.u64", UINT64_MAX);
    gguf_put_f32(w, "a.f32", -1.5f);
    gguf_put_bool(w, "a.bool", true);
    gguf_put_str(w, "a.str", str_of("text"));
    gguf_put_array(w, "a.i32s", GGUF_I32, (int32_t[]) { -1, 2, -3 }, 3);
    gguf_put_array(w, "a.bools", GGUF_BOOL, (bool[]) { true, false }, 2);
    gguf_put_array(w, "a.empty", GGUF_F64, NULL, 0);
    gguf_put_strs(w, "a.strs", (struct str[]) { { "x", 1 }, { "", 0 }, { "yz", 2 } }, 3);
    for (uint64_t t = 0; t < N_TENSORS; t++)
        gguf_put_tensor(w, tensors[t].name, tensors[t].type, tensors[t].n_dims, tensors[t].ne);
    for (uint64_t t = 0; t < N_TENSORS; t++) {
        uint8_t *data = malloc(tensors[t].n_bytes);
        for (uint64_t i = 0; i < tensors[t].n_bytes; i++) data[i] = byte_of(t, i);
        for (uint64_t at = 0; at < tensors[t].n_bytes; at += piece) {
            uint64_t left = tensors[t].n_bytes - at;
            gguf_put_data(w, data + at, left < piece ? (size_t)left : piece);
        }
        free(data);
    }
    return gguf_writer_finish(w, &err);
}

static void check_model(void)
{
    struct gguf g = { 0 };
    uint64_t u = 0, cursor = 0;
    double d = 0;
    bool t = false;
    int64_t v = 0;
    struct str s = { 0 };
    CHECK(gguf_open_file(&g, PATH, &err) == BZ_OK);
    CHECK(g.n_kv == 9 && g.n_tensors == N_TENSORS);
    CHECK(gguf_get_u64(&g, "a.u32", &u) && u == 7);
    CHECK(gguf_get_u64(&g, "a.u64", &u) && u == UINT64_MAX);
    CHECK(gguf_get_f64(&g, "a.f32", &d) && d == -1.5);
    CHECK(gguf_get_bool(&g, "a.bool", &t) && t);
    CHECK(gguf_get_str(&g, "a.str", &s) && str_is(s, "text"));
    const struct gguf_kv *kv = gguf_find(&g, "a.i32s");
    CHECK(kv && kv->n == 3 && gguf_at_i64(kv, 2, &v) && v == -3);
    kv = gguf_find(&g, "a.bools");
    CHECK(kv && kv->elem == GGUF_BOOL && gguf_at_i64(kv, 1, &v) && v == 0);
    kv = gguf_find(&g, "a.strs");
    CHECK(kv && gguf_next_str(kv, &cursor, &s) && gguf_next_str(kv, &cursor, &s) && s.n == 0);
    CHECK(gguf_next_str(kv, &cursor, &s) && str_is(s, "yz"));
    for (uint64_t i = 0; i < N_TENSORS && i < g.n_tensors; i++) {
        const struct gguf_tensor *x = &g.tensors[i];
        CHECK(str_is(x->name, tensors[i].name) && x->type == tensors[i].type);
        CHECK(x->n_bytes == tensors[i].n_bytes && x->offset % 32 == 0);
        CHECK(memcmp(x->ne, tensors[i].ne, tensors[i].n_dims * 8) == 0);
        const uint8_t *data = source_map(&g.sources[0], x->offset, x->n_bytes);
        uint64_t wrong = 0;
        for (uint64_t k = 0; k < x->n_bytes; k++) wrong += data[k] != byte_of(i, k);
        CHECK(wrong == 0);
    }
    CHECK(g.sources[0].size % 32 == 0); /* the last tensor is padded too */
    gguf_close(&g);
    CHECK(!exists(PATH ".part"));
}

static void test_round_trip(void)
{
    TEST("what is written reads back, in pieces of any size")
    {
        static const size_t pieces[] = { 61, 4096, (1 << 20) - 1, 1 << 20, 5 << 20 };
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            int64_t live = mem_live();
            CHECK(write_model(pieces[i]) == BZ_OK);
            check_model();
            CHECK(mem_live() == live);
        }
    }

    TEST("large tensors go to the file in one piece, small ones gather")
    {
        unkind.calls = 0;
        CHECK(write_model(5 << 20) == BZ_OK);
        CHECK_MSG(unkind.calls == 3, "%d", unkind.calls);
        unkind.calls = 0;
        CHECK(write_model(1000) == BZ_OK);
        CHECK_MSG(unkind.calls <= 6, "%d", unkind.calls);
    }

    TEST("short and interrupted writes are continued")
    {
        unkind.most = 77777;
        unkind.interrupts = 1;
        CHECK(write_model(100000) == BZ_OK);
        unkind.most = 0;
        unkind.interrupts = 0;
        check_model();
    }

    TEST("a file of metadata alone, or of nothing, is a file")
    {
        struct gguf_writer *w = NULL;
        struct gguf g = { 0 };
        for (int n = 0; n < 2; n++) {
            CHECK(gguf_writer_open(&w, PATH, &err) == BZ_OK);
            if (n) gguf_put_u32(w, "x", 1);
            gguf_put_data(w, NULL, 0);
            CHECK(gguf_writer_finish(w, &err) == BZ_OK);
            CHECK(gguf_open_file(&g, PATH, &err) == BZ_OK);
            CHECK(g.n_kv == (uint64_t)n && g.n_tensors == 0);
            gguf_close(&g);
        }
        unlink(PATH);
    }

    TEST("keys that describe another file's layout are not carried over")
    {
        struct gguf_writer *w = NULL;
        struct gguf g = { 0 };
        uint8_t v[4] = { 64 };
        struct gguf_kv kv = {
            .type = GGUF_U32, .elem = GGUF_U32, .n = 1, .value = v, .n_bytes = 4
        };
        static const char *const keys[] = { "general.alignment", "split.no", "split.count",
                                            "kept" };
        CHECK(gguf_writer_open(&w, PATH, &err) == BZ_OK);
        for (int i = 0; i < 4; i++) {
            kv.key = str_of(keys[i]);
            gguf_put_kv(w, &kv);
        }
        CHECK(gguf_writer_finish(w, &err) == BZ_OK);
        CHECK(gguf_open_file(&g, PATH, &err) == BZ_OK);
        CHECK(g.n_kv == 1 && gguf_find(&g, "kept"));
        gguf_close(&g);
        unlink(PATH);
    }
}

/* A writer that is given something wrong by `act` and then closed. */
static const char *verdict(void (*act)(struct gguf_writer *w))
{
    struct gguf_writer *w = NULL;
    int64_t live = mem_live();
    err.text[0] = 0;
    CHECK(gguf_writer_open(&w, PATH, &err) == BZ_OK);
    gguf_put_u32(w, "k", 1);
    act(w);
    gguf_put_u32(w, "after", 1); /* does nothing any more */
    gguf_put_data(w, "abcd", 4);
    CHECK(gguf_writer_finish(w, &err) == BZ_ERR_ARGUMENT);
    CHECK(mem_live() == live);
    CHECK(nothing_left());
    return err.text;
}

#define NE(...)                                                                                    \
    (const uint64_t[])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void same_key(struct gguf_writer *w)
{
    gguf_put_u32(w, "k", 2);
    gguf_put_data(w, NULL, 0);
}

static void same_tensor(struct gguf_writer *w)
{
    gguf_put_tensor(w, "t", QUANT_F32, 1, NE(1));
    gguf_put_tensor(w, "t", QUANT_F32, 1, NE(1));
    gguf_put_data(w, NULL, 0);
}

static void too_much(struct gguf_writer *w)
{
    gguf_put_tensor(w, "t", QUANT_F32, 1, NE(1));
    gguf_put_data(w, "abc", 3);
    gguf_put_data(w, "de", 2);
}

static void no_tensor(struct gguf_writer *w)
{
    gguf_put_data(w, "a", 1);
}

static void late_key(struct gguf_writer *w)
{
    gguf_put_tensor(w, "t", QUANT_F32, 1, NE(1));
    gguf_put_data(w, "abcd", 4);
    gguf_put_u32(w, "late", 1);
}

static void late_tensor(struct gguf_writer *w)
{
    gguf_put_data(w, NULL, 0);
    gguf_put_tensor(w, "late", QUANT_F32, 1, NE(1));
}

static void odd_row(struct gguf_writer *w)
{
    gguf_put_tensor(w, "t", QUANT_Q4_K, 2, NE(128, 4));
}

static void no_weights(struct gguf_writer *w)
{
    gguf_put_tensor(w, "t", QUANT_F32, 2, NE(4, 0));
}

static void vast(struct gguf_writer *w)
{
    gguf_put_tensor(w, "t", QUANT_F32, 4, NE(1u << 30, 1u << 30, 1u << 30, 4));
}

static void unknown_type(struct gguf_writer *w)
{
    gguf_put_tensor(w, "t", 999, 1, NE(4));
}

static void own_alignment(struct gguf_writer *w)
{
    gguf_put_u32(w, "general.alignment", 64);
}

static void array_of_strings(struct gguf_writer *w)
{
    gguf_put_array(w, "a", GGUF_STRING, "x", 1);
}

static void too_little(struct gguf_writer *w)
{
    gguf_put_tensor(w, "s", QUANT_F32, 1, NE(1));
    gguf_put_tensor(w, "t", QUANT_F32, 1, NE(5));
    gguf_put_data(w, "abcd", 4);
    gguf_put_data(w, "abcd", 4);
}

static void test_misuse(void)
{
    TEST("misuse is one sentence, and no file appears")
    {
        unlink(PATH);
        CHECK_STR(verdict(same_key), PATH ": key 'k' was given twice");
        CHECK_STR(verdict(same_tensor), PATH ": tensor 't' was given twice");
        CHECK_STR(verdict(too_much), PATH ": more data than tensor 't' has room for");
        CHECK_STR(verdict(no_tensor), PATH ": more data than tensor '' has room for");
        CHECK_STR(verdict(late_key), PATH ": 'late' comes after the first tensor data");
        CHECK_STR(verdict(late_tensor), PATH ": 'late' comes after the first tensor data");
        CHECK_STR(verdict(odd_row), PATH ": tensor 't' cannot have this shape as Q4_K");
        CHECK_STR(verdict(no_weights), PATH ": tensor 't' cannot have this shape as F32");
        CHECK_STR(verdict(vast), PATH ": tensor 't' cannot have this shape as F32");
        CHECK(strstr(verdict(unknown_type), ": tensor 't' cannot have this shape as ") != NULL);
        CHECK_STR(verdict(own_alignment), PATH ": the alignment is always 32");
        CHECK_STR(verdict(array_of_strings), PATH ": 'a' cannot be an array of 1 string");
        struct gguf_writer *w = NULL;
        CHECK(gguf_writer_open(&w, PATH, &err) == BZ_OK);
        too_little(w);
        CHECK(gguf_writer_finish(w, &err) == BZ_ERR_ARGUMENT);
        CHECK_STR(err.text, PATH ": tensor 't' got 4 of its 20 bytes");
        CHECK(nothing_left());
    }

    TEST("a partial file that is there already is left alone, and what it leads to")
    {
        struct gguf_writer *w = NULL;
        struct stat info;
        put_text(PATH ".victim", "theirs");
        CHECK(symlink("test_gguf_write.gguf.victim", PATH ".part") == 0);
        put_text(PATH ".2.part", "an earlier run's");
        CHECK(gguf_writer_open(&w, PATH, &err) == BZ_OK);
        CHECK(exists(PATH ".3.part"));
        gguf_writer_abort(w);
        CHECK(write_model(8) == BZ_OK && exists(PATH) && !exists(PATH ".3.part"));
        CHECK(stat(PATH ".victim", &info) == 0 && info.st_size == 6);
        CHECK(lstat(PATH ".part", &info) == 0 && S_ISLNK(info.st_mode));
        CHECK(stat(PATH ".2.part", &info) == 0 && info.st_size == 16);
        unlink(PATH);
        unlink(PATH ".victim");
        unlink(PATH ".part");
        unlink(PATH ".2.part");
    }

    TEST("99 partial files are the most, and the sentence names them")
    {
        struct gguf_writer *w = NULL;
        char path[64];
        for (int i = 1; i <= 98; i++) {
            snprintf(path, sizeof path, i == 1 ? PATH ".part" : PATH ".%d.part", i);
            put_text(path, "x");
        }
        CHECK(gguf_writer_open(&w, PATH, &err) == BZ_OK && exists(PATH ".99.part"));
        gguf_writer_abort(w);
        put_text(PATH ".99.part", "x");
        CHECK(gguf_writer_open(&w, PATH, &err) == BZ_ERR_IO);
        CHECK_STR(err.text, PATH ": 99 unfinished files are beside it; delete " PATH
                                 ".part and " PATH ".*.part");
        for (int i = 1; i <= 99; i++) {
            snprintf(path, sizeof path, i == 1 ? PATH ".part" : PATH ".%d.part", i);
            unlink(path);
        }
    }

    TEST("who is told to stop after a file is whole removes no partial file of another run")
    {
        struct part_file *f;
        struct stat info;
        CHECK(part_file_open(&f, PATH, &err) == BZ_OK && part_file_put(f, "1", 1, &err) == BZ_OK);
        CHECK(part_file_finish(f, &err) == BZ_OK && exists(PATH));
        put_text(PATH ".part", "another run's");
        part_file_remove_all();
        CHECK(stat(PATH ".part", &info) == 0);
        part_file_close(f);
        CHECK(stat(PATH ".part", &info) == 0);
        unlink(PATH ".part");
        unlink(PATH);
    }
    TEST("giving up removes the partial file")
    {
        struct gguf_writer *w = NULL;
        int64_t live = mem_live();
        CHECK(gguf_writer_open(&w, PATH, &err) == BZ_OK);
        CHECK(exists(PATH ".part") && !exists(PATH));
        gguf_writer_abort(w);
        CHECK(nothing_left() && mem_live() == live);
        gguf_writer_abort(NULL);
    }
}

static void test_failures(void)
{
    TEST("a full disk at any point is one sentence, leaves nothing and keeps the old file")
    {
        static const int64_t rooms[] = { 0, 1, 100, 1 << 20, 4000000, 4303000 };
        for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
            int64_t live = mem_live();
            put_text(PATH, "old");
            unkind.room = rooms[i];
            enum bz_status st = write_model(4096);
            unkind.room = -1;
            char want[128];
            snprintf(want, sizeof want, PATH ": the disk is full after %lld bytes",
                     (long long)rooms[i]);
            CHECK(st == BZ_ERR_IO);
            CHECK_STR(err.text, want);
            struct stat info;
            CHECK(stat(PATH, &info) == 0 && info.st_size == 3);
            CHECK(!exists(PATH ".part"));
            CHECK(mem_live() == live);
            unlink(PATH);
        }
    }

    TEST("a limit on file sizes is told apart from a full disk")
    {
        struct rlimit was, small = { 100000, RLIM_INFINITY };
        CHECK(getrlimit(RLIMIT_FSIZE, &was) == 0);
        small.rlim_max = was.rlim_max;
        signal(SIGXFSZ, SIG_IGN);
        CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
        CHECK(write_model(1 << 20) == BZ_ERR_IO);
        CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
        CHECK_STR(err.text, PATH ": a file of more than 100000 bytes is not allowed here");
        CHECK(nothing_left());
    }

    TEST("a place that cannot be written is refused at once")
    {
        struct gguf_writer *w = NULL;
        CHECK(gguf_writer_open(&w, "build/tmp/no-such-dir/x.gguf", &err) == BZ_ERR_NOT_FOUND);
        CHECK_STR(err.text, "build/tmp/no-such-dir/x.gguf: its directory does not exist");
        CHECK(gguf_writer_open(&w, "build/tmp", &err) == BZ_ERR_IO);
        CHECK_STR(err.text, "build/tmp: exists and is not a file");
        CHECK(w == NULL);
    }

    TEST("any failed allocation is BZ_ERR_MEMORY, leaks nothing and leaves nothing")
    {
        int64_t live = mem_live();
        bool written = false;
        uint64_t k = 1;
        for (; !written && k < 100; k++) {
            mem_fail_at(k);
            enum bz_status st = write_model(5 << 20);
            mem_fail_at(0);
            written = st == BZ_OK;
            CHECK(written || (st == BZ_ERR_MEMORY && nothing_left()));
            CHECK(mem_live() == live);
        }
        CHECK(written && k > 8);
        unlink(PATH);
    }
}

int main(void)
{
    unlink(PATH ".part"); /* of a run that was killed */
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    test_round_trip();
    test_misuse();
    test_failures();
    return check_done();
}
