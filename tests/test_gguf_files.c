/* Tests of io/gguf.h: split models, files on disk, sources that stream, and a full-size header. */
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "gguf_bytes.h"
#include "io/gguf.h"

static struct bz_err err;
static const char *const names[] = { "t0", "t1", "t2" };

/* Shard `no` of `count`, with one tensor whose four bytes are its number. */
static void build_shard(struct buf *b, uint32_t no, uint32_t count, uint32_t total,
                        const char *name)
{
    start(b, 1, no == 0 ? 4 : 3);
    key(b, "split.no", GGUF_U16), buf_put(b, &(uint16_t) { (uint16_t)no }, 2);
    key(b, "split.count", GGUF_U16), buf_put(b, &(uint16_t) { (uint16_t)count }, 2);
    key(b, "split.tensors.count", GGUF_I32), u32(b, total);
    if (no == 0) key_u32(b, "first.only", 11);
    tensor(b, name, QUANT_F32, 1, 1, 0);
    pad(b, 32);
    u32(b, no);
}

static enum bz_status open_shards(struct gguf *g, struct buf *files, const char *order)
{
    struct source s[4] = { 0 };
    uint32_t n = 0;
    free_copies();
    for (; order[n]; n++) {
        char name[16];
        snprintf(name, sizeof name, "shard %c", order[n]);
        make_source(&s[n], name, files[order[n] - '0'].data, files[order[n] - '0'].n);
    }
    err.text[0] = 0;
    return gguf_open(g, s, n, &err);
}

static void check_shards(struct gguf *g)
{
    uint64_t v = 0;
    CHECK(g->n_sources == 3 && g->n_tensors == 3);
    CHECK(gguf_get_u64(g, "first.only", &v) && v == 11);
    for (uint32_t i = 0; i < 3; i++) {
        const struct gguf_tensor *t = gguf_tensor_find(g, names[i]);
        uint32_t no = 99;
        CHECK(t && t->shard == i && t == &g->tensors[i]);
        CHECK(source_read(&g->sources[t->shard], t->offset, &no, 4, &err) == BZ_OK && no == i);
    }
}

static void test_split(void)
{
    struct buf f[6] = { { 0 } };
    struct gguf g = { 0 };
    int64_t live = mem_live();
    for (uint32_t i = 0; i < 3; i++) build_shard(&f[i], i, 3, 3, names[i]);
    build_shard(&f[3], 2, 3, 3, "t2");
    build_shard(&f[4], 2, 4, 3, "t2");
    start(&f[5], 0, 0);
    TEST("shards make one model, whatever order they come in")
    {
        static const char *const orders[] = { "012", "021", "102", "120", "201", "210" };
        for (size_t i = 0; i < 6; i++) {
            CHECK(open_shards(&g, f, orders[i]) == BZ_OK);
            check_shards(&g);
            gguf_close(&g);
        }
    }

    TEST("a set of shards that is not one model is refused")
    {
        CHECK(open_shards(&g, f, "0") == BZ_ERR_FORMAT);
        CHECK_STR(err.text, "shard 0: is part 1 of 3 of a split model, but 1 file was given");
        CHECK(open_shards(&g, f, "20") == BZ_ERR_FORMAT);
        CHECK_STR(err.text, "shard 2: is part 3 of 3 of a split model, but 2 files were given");
        CHECK(open_shards(&g, f, "023") == BZ_ERR_FORMAT);
        CHECK_STR(err.text, "shard 0: part 2 of 3 of this split model is missing");
        CHECK(open_shards(&g, f, "014") == BZ_ERR_FORMAT);
        CHECK_STR(err.text, "shard 4: is part 3 of 4 of a split model, but 3 files were given");
        CHECK(open_shards(&g, f, "015") == BZ_ERR_FORMAT);
        CHECK_STR(err.text, "shard 5: is a whole model and not one of 3 parts");
        buf_free(&f[2]);
        build_shard(&f[2], 2, 3, 3, "t1");
        CHECK(open_shards(&g, f, "012") == BZ_ERR_FORMAT);
        CHECK_STR(err.text, "shard 2: tensor 't1' appears twice");
        buf_free(&f[0]);
        build_shard(&f[0], 0, 3, 7, "t0");
        CHECK(open_shards(&g, f, "013") == BZ_ERR_FORMAT);
        CHECK_STR(err.text, "shard 0: the split model should have 7 tensors, but its parts hold 3");
        CHECK(gguf_open(&g, NULL, 0, &err) == BZ_ERR_ARGUMENT);
    }
    for (int i = 0; i < 6; i++) buf_free(&f[i]);
    free_copies();
    CHECK(mem_live() == live);
}

static void write_file(const char *path, const struct buf *b)
{
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL);
    if (!f) return;
    CHECK(fwrite(b->data, 1, b->n, f) == b->n);
    fclose(f);
}

#define SHARD(no) "build/tmp/test_gguf-0000" #no "-of-00003.gguf"

static void test_files(void)
{
    static const char *const path[] = { SHARD(1), SHARD(2), SHARD(3) };
    struct gguf g = { 0 };
    int64_t live = mem_live();
    for (uint32_t i = 0; i < 3; i++) {
        struct buf b = { 0 };
        build_shard(&b, i, 3, 3, names[i]);
        write_file(path[i], &b);
        buf_free(&b);
    }
    TEST("opening any shard by its name brings the others along")
    {
        for (int i = 0; i < 3; i++) {
            CHECK(gguf_open_file(&g, path[i], &err) == BZ_OK);
            check_shards(&g);
            gguf_close(&g);
        }
    }

    TEST("any failed allocation while opening shards is an error and leaks nothing")
    {
        bool opened = false;
        for (uint64_t k = 1; !opened && k < 200; k++) {
            mem_fail_at(k);
            enum bz_status st = gguf_open_file(&g, path[0], &err);
            mem_fail_at(0);
            opened = st == BZ_OK;
            CHECK(opened || st == BZ_ERR_MEMORY);
            gguf_close(&g);
            CHECK(mem_live() == live);
        }
        CHECK(opened);
    }

    TEST("a missing shard is named")
    {
        unlink(SHARD(2));
        CHECK(gguf_open_file(&g, SHARD(3), &err) == BZ_ERR_NOT_FOUND);
        CHECK_STR(err.text, "part 2 of 3 of a split model: " SHARD(2) ": no such file");
        CHECK(gguf_open_file(&g, "build/tmp/x-00001-of-00999.gguf", &err) == BZ_ERR_LIMIT);
        CHECK(gguf_open_file(&g, "build/tmp/x-00004-of-00003.gguf", &err) == BZ_ERR_NOT_FOUND);
        CHECK_STR(err.text, "build/tmp/x-00004-of-00003.gguf: no such file");
        CHECK(gguf_open_file(&g, "build/tmp/none", &err) == BZ_ERR_NOT_FOUND);
        CHECK(mem_live() == live);
    }
    for (int i = 0; i < 3; i++) unlink(path[i]);
}

/* A source without map that counts what is asked of it; past its bytes it reads as zeros. */
static struct {
    const char *data;
    size_t n;
    uint64_t n_reads, n_bytes;
} stream;

static enum bz_status stream_read(void *ctx, uint64_t offset, void *dst, size_t n, struct bz_err *e)
{
    (void)ctx;
    (void)e;
    stream.n_reads++;
    stream.n_bytes += n;
    memset(dst, 0, n);
    if (offset < stream.n)
        memcpy(dst, stream.data + offset, n < stream.n - offset ? n : stream.n - (size_t)offset);
    return BZ_OK;
}

static enum bz_status open_stream(struct gguf *g, const struct buf *b, uint64_t size)
{
    struct source s = { .name = mem_copy_str("stream", 6), .size = size, .read = stream_read };
    stream.data = b->data;
    stream.n = b->n;
    stream.n_reads = stream.n_bytes = 0;
    return gguf_open(g, &s, 1, &err);
}

static void test_streams(void)
{
    TEST("a source that cannot be mapped gives the same model")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 };
        build_larger(&b);
        CHECK(open_stream(&g, &b, b.n) == BZ_OK);
        CHECK(g.n_kv == 62 && g.n_tensors == 40);
        CHECK(gguf_tensor_find(&g, "blk.39.attn_q.weight") == &g.tensors[39]);
        CHECK(source_map(&g.sources[0], 0, 1) == NULL);
        CHECK(stream.n_reads == 1);
        gguf_close(&g);
        buf_free(&b);
    }

    TEST("of a huge file only the header is read")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 };
        build_larger(&b);
        CHECK(open_stream(&g, &b, (uint64_t)1 << 50) == BZ_OK);
        CHECK(stream.n_bytes <= 256 << 10);
        gguf_close(&g);
        buf_free(&b);
    }

    TEST("a header of more than 512 MiB is refused without being read")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 };
        int64_t live = mem_live();
        start(&b, 0, 1);
        key(&b, "vast", GGUF_ARRAY), array(&b, GGUF_U8, (uint64_t)600 << 20);
        CHECK(open_stream(&g, &b, (uint64_t)1 << 50) == BZ_ERR_LIMIT);
        CHECK_STR(err.text, "stream: key 'vast' makes the header larger than 512 MiB");
        CHECK(stream.n_bytes <= 256 << 10);
        buf_free(&b);
        CHECK(mem_live() == live);
    }
}

static void test_full_size(void)
{
    TEST("a full-size vocabulary is parsed quickly and read in few, growing windows")
    {
        enum { N_TOKENS = 262144, N_MERGES = 514906 };
        struct buf b = { 0 };
        struct gguf g = { 0 };
        start(&b, 0, 4);
        key(&b, "tokenizer.ggml.tokens", GGUF_ARRAY), array(&b, GGUF_STRING, N_TOKENS);
        for (uint32_t i = 0; i < N_TOKENS; i++) text(&b, &"abcdefghijkl"[i % 12]);
        key(&b, "tokenizer.ggml.scores", GGUF_ARRAY), array(&b, GGUF_F32, N_TOKENS);
        zeros(&b, 4 * N_TOKENS);
        key(&b, "tokenizer.ggml.token_type", GGUF_ARRAY), array(&b, GGUF_I32, N_TOKENS);
        zeros(&b, 4 * N_TOKENS);
        key(&b, "tokenizer.ggml.merges", GGUF_ARRAY), array(&b, GGUF_STRING, N_MERGES);
        for (uint32_t i = 0; i < N_MERGES; i++) text(&b, &"abcdefg hijklm"[i % 14]);
        clock_t t0 = clock();
        CHECK(open_stream(&g, &b, b.n) == BZ_OK);
        double seconds = (double)(clock() - t0) / CLOCKS_PER_SEC;
        CHECK_MSG(seconds < 0.2, "%.3f s for %zu bytes", seconds, b.n);
        CHECK(stream.n_reads <= 8 && stream.n_bytes <= 2 * b.n);
        const struct gguf_kv *kv = gguf_find(&g, "tokenizer.ggml.merges");
        uint64_t n = 0, cursor = 0;
        for (struct str s; gguf_next_str(kv, &cursor, &s);) n++;
        CHECK(n == N_MERGES && kv->n == N_MERGES);
        gguf_close(&g);
        buf_free(&b);
    }
}

int main(void)
{
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    test_split();
    test_files();
    test_streams();
    test_full_size();
    free_copies();
    return check_done();
}
