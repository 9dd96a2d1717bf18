/* test_merge.c - a file with an adapter added: W + s B A where it names a tensor, else the same
 * bytes. */
#include "io/merge.h"

#include "model_fixture.h"

enum { COLS = 64, ROWS = 3, RANK = 2, N_DATA = COLS * ROWS };
#define SCALE 0.5f

static struct tmp_path in, out;

static float value(uint32_t i)
{
    return (float)((int)(i * 37 % 101) - 50) / 16;
}

/* "w" is F32, "r" has a format that is only read, "k" has an odd size, "x" is a stack of two
 * experts, "y" has four dimensions. */
static void write_model(const char *arch)
{
    struct gguf_writer *w;
    static float floats[2 * N_DATA];
    static uint8_t blocks[N_DATA / 32 * 18];
    const uint64_t ne[] = { COLS, ROWS }, odd[] = { 7 }, stack[] = { COLS, ROWS, 2 };
    const uint64_t four[] = { COLS, ROWS, 1, 2 };
    for (uint32_t i = 0; i < 2 * N_DATA; i++) floats[i] = value(i);
    for (size_t i = 0; i < sizeof blocks; i++) blocks[i] = (uint8_t)(i % 18 < 2 ? 0x34 : i * 31);
    CHECK(gguf_writer_open(&w, in.z, NULL) == BZ_OK);
    gguf_put_str(w, "general.architecture", str_of(arch));
    gguf_put_u32(w, "gemma4.block_count", 4);
    gguf_put_u32(w, "gemma4.attention.shared_kv_layers", 2);
    gguf_put_array(w, "numbers", GGUF_F32, floats, 9);
    gguf_put_tensor(w, "k", QUANT_F32, 1, odd);
    gguf_put_tensor(w, "r", QUANT_IQ4_NL, 2, ne);
    gguf_put_tensor(w, "w", QUANT_F32, 2, ne);
    gguf_put_tensor(w, "x", QUANT_F32, 3, stack);
    gguf_put_tensor(w, "y", QUANT_F32, 4, four);
    gguf_put_data(w, floats, 7 * sizeof *floats);
    gguf_put_data(w, blocks, sizeof blocks);
    gguf_put_data(w, floats, N_DATA * sizeof *floats);
    gguf_put_data(w, floats, sizeof floats);
    gguf_put_data(w, floats, sizeof floats);
    CHECK(gguf_writer_finish(w, NULL) == BZ_OK);
}

static float numbers_a[2 * RANK * COLS], numbers_b[2 * ROWS * RANK];

static struct adapter_target target(const char *name, uint32_t n_expert)
{
    return (struct adapter_target) { .name = name,
                                     .rank = RANK,
                                     .n_in = COLS,
                                     .n_out = ROWS,
                                     .n_expert = n_expert,
                                     .scale = 2,
                                     .a = numbers_a,
                                     .b = numbers_b };
}

/* Merge the targets into the model; the size that was foretold is the file's. */
static enum bz_status merge_file(struct adapter_target *targets, size_t n, const char *arch,
                                 struct bz_err *err)
{
    struct gguf g;
    struct gguf_writer *w;
    struct merge *m = NULL;
    struct merge_window next[2];
    static uint8_t bytes[2 * N_DATA * sizeof(float)];
    const struct adapter a = { .arch = arch, .targets = targets, .n_targets = n };
    enum bz_status st = gguf_open_file(&g, in.z, err);
    if (st) return st;
    st = gguf_writer_open(&w, out.z, err);
    if (st == BZ_OK) {
        st = merge_open(&m, &g, &a, SCALE, w, err);
        uint64_t size = st ? 0 : gguf_writer_size(w);
        /* One window is asked for ahead of the one that is given. */
        bool has = st == BZ_OK && merge_next(m, &next[0]);
        while (st == BZ_OK && has) {
            has = merge_next(m, &next[1]);
            CHECK(next[0].n_bytes <= sizeof bytes);
            st = source_read(next[0].src, next[0].offset, bytes, next[0].n_bytes, err);
            if (st == BZ_OK) merge_give(m, bytes);
            next[0] = next[1];
        }
        if (st) gguf_writer_abort(w);
        else st = gguf_writer_finish(w, err);
        struct stat info;
        CHECK((stat(out.z, &info) == 0) == (st == BZ_OK));
        if (st == BZ_OK) CHECK((uint64_t)info.st_size == size);
    }
    merge_close(m);
    gguf_close(&g);
    return st;
}

/* A tensor's numbers. */
static void decode(const struct gguf *g, const char *name, float *v, size_t n)
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name);
    uint8_t bytes[2 * N_DATA * sizeof(float)];
    CHECK(t && source_read(&g->sources[0], t->offset, bytes, (size_t)t->n_bytes, NULL) == BZ_OK);
    quant_find(t->type)->decode(bytes, v, n);
}

static void check_sum(const struct gguf *before, const struct gguf *after, const char *name,
                      uint32_t n_rows, double tolerance)
{
    static float old[2 * N_DATA], new[2 * N_DATA];
    decode(before, name, old, (size_t)n_rows * COLS);
    decode(after, name, new, (size_t)n_rows * COLS);
    for (uint32_t i = 0; i < n_rows * COLS; i++) {
        uint32_t row = i / COLS, expert = row / ROWS;
        double want = (double)old[i];
        for (uint32_t k = 0; k < RANK; k++)
            want += (double)SCALE * 2 * (double)numbers_b[row * RANK + k] *
                    (double)numbers_a[(expert * RANK + k) * COLS + i % COLS];
        CHECK_MSG(fabs((double)new[i] - want) <= tolerance, "%s[%u]: %g, not %g", name, i,
                  (double)new[i], want);
    }
}

static void check_merged(void)
{
    struct gguf before, after;
    struct adapter_target targets[] = { target("w", 1), target("r", 1), target("x", 2),
                                        target("blk.3.attn_k.weight", 1) };
    struct bz_err err = { "" };
    CHECK_MSG(merge_file(targets, 4, "gemma4", &err) == BZ_OK, "%s", err.text);
    CHECK(gguf_open_file(&before, in.z, NULL) == BZ_OK);
    CHECK(gguf_open_file(&after, out.z, NULL) == BZ_OK);
    CHECK(after.n_kv == before.n_kv && after.n_tensors == before.n_tensors);
    for (uint64_t i = 0; i < before.n_kv; i++) {
        const struct gguf_kv *a = &before.kvs[i], *b = &after.kvs[i];
        CHECK(str_eq(a->key, b->key) && a->type == b->type && a->n_bytes == b->n_bytes &&
              memcmp(a->value, b->value, (size_t)a->n_bytes) == 0);
    }
    CHECK(gguf_tensor_find(&after, "r")->type == QUANT_Q8_0);
    CHECK(gguf_tensor_find(&after, "w")->type == QUANT_F32);
    float old[7], new[7];
    decode(&before, "k", old, 7);
    decode(&after, "k", new, 7);
    CHECK(same_floats(old, new, 7));
    check_sum(&before, &after, "w", ROWS, 1e-6); /* f32 of sums up to 16 */
    check_sum(&before, &after, "x", 2 * ROWS, 1e-6);
    check_sum(&before, &after, "r", ROWS, 0.2); /* half a step of Q8_0, 127 of which reach 45 */
    gguf_close(&before);
    gguf_close(&after);
    remove(out.z);
}

static void check_refused(struct adapter_target t, const char *arch, const char *why)
{
    struct bz_err err = { "" };
    CHECK(merge_file(&t, 1, arch, &err) != BZ_OK);
    CHECK_MSG(strstr(err.text, why), "%s", err.text);
}

int main(void)
{
    in = tmp_path("merge_in.gguf");
    out = tmp_path("merge_out.gguf");
    for (uint32_t i = 0; i < 2 * RANK * COLS; i++) numbers_a[i] = value(i + 11);
    for (uint32_t i = 0; i < 2 * ROWS * RANK; i++) numbers_b[i] = value(i + 5);
    write_model("gemma4");

    TEST("targets become W + s B A, what is only read becomes Q8_0, all else stays") check_merged();

    TEST("an adapter that does not fit is refused")
    {
        struct adapter_target wide = target("w", 1);
        wide.n_in = 2 * COLS;
        check_refused(wide, "",
                      "the adapter is for another model: its w is 128 -> 3, this model's 64 -> 3");
        check_refused(target("w", 2), "", "its w is 64 -> 3 in 2 experts, this model's 64 -> 3");
        check_refused(target("y", 1), "", "y has four dimensions");
        check_refused(target("y", 2), "", "y has four dimensions");
        check_refused(target("nowhere", 1), "", "the model has no tensor nowhere");
        check_refused(target("blk.1.attn_k.weight", 1), "", "no tensor blk.1.attn_k.weight");
        check_refused(target("blk.3.attn_v.weight", 1), "", "changes nothing");
        check_refused(target("w", 1), "llama", "for llama; the model is gemma4");
    }

    TEST("every allocation that fails is a status, and leaves neither memory nor a file")
    {
        struct adapter_target t = target("w", 1);
        int64_t live = mem_live();
        bool failed = true;
        for (uint64_t k = 1; failed; k++) {
            struct bz_err err = { "" };
            uint64_t before = mem_count();
            mem_fail_at(k);
            enum bz_status st = merge_file(&t, 1, "gemma4", &err);
            mem_fail_at(0);
            failed = mem_count() - before >= k;
            CHECK_MSG(st == (failed ? BZ_ERR_MEMORY : BZ_OK), "allocation %u: %s", (unsigned)k,
                      err.text);
            CHECK(mem_live() == live);
        }
    }
    remove(in.z);
    remove(out.z);
    return check_done();
}
