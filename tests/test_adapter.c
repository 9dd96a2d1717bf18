/* LoRA adapters in GGUF, and hostile bytes in either form: what a file says is what arrives, and
 * nothing half-right gets through. */
#include "io/adapter.h"

#include <inttypes.h>
#include <math.h>

#include "adapter_fixture.h"
#include "io/gguf_write.h"
#include "quant/quant.h"

/* --- GGUF --- */

struct tensor {
    const char *name;
    uint32_t format, n_dims;
    uint64_t ne[4];
};

/* An adapter file of these tensors; data[i] (may be NULL) receives the weights as a reader must see
 * them after their format's loss. */
static void write_gguf(const struct tensor *t, size_t n, float alpha, const char *type,
                       const char *kind, float **data)
{
    struct gguf_writer *w;
    struct bz_err err = { "" };
    CHECK(gguf_writer_open(&w, gguf_path, &err) == BZ_OK);
    if (type) gguf_put_str(w, "general.type", str_of(type));
    gguf_put_str(w, "general.architecture", str_of("gemma4"));
    if (kind) gguf_put_str(w, "adapter.type", str_of(kind));
    gguf_put_f32(w, "adapter.lora.alpha", alpha);
    for (size_t i = 0; i < n; i++) gguf_put_tensor(w, t[i].name, t[i].format, t[i].n_dims, t[i].ne);
    for (size_t i = 0; i < n; i++) {
        size_t k = 1;
        for (uint32_t d = 0; d < t[i].n_dims; d++) k *= (size_t)t[i].ne[d];
        const struct quant_format *f = quant_find(t[i].format);
        float *x = random_weights(k);
        void *bytes = mem_alloc(quant_row_bytes(f, k), 1);
        f->encode(x, bytes, k);
        f->decode(bytes, x, k);
        gguf_put_data(w, bytes, quant_row_bytes(f, k));
        mem_free(bytes);
        if (data) data[i] = x;
        else mem_free(x);
    }
    CHECK_MSG(gguf_writer_finish(w, &err) == BZ_OK, "%s", err.text);
}

static void test_gguf(void)
{
    struct adapter a = { 0 };
    struct bz_err err = { "" };
    TEST("a GGUF adapter comes back bit for bit in every format it may have")
    {
        static const uint32_t formats[] = { QUANT_F32, QUANT_F16, QUANT_BF16, QUANT_Q8_0 };
        for (size_t i = 0; i < 4; i++) {
            uint32_t f = formats[i];
            uint64_t r = f == QUANT_Q8_0 ? 32 : 5;
            const struct tensor t[] = {
                { "blk.3.attn_q.weight.lora_a", f, 2, { 96, r } },
                { "blk.3.ffn_down_exps.weight.lora_b", f, 3, { r, 7, 3 } },
                { "blk.3.attn_q.weight.lora_b", f, 2, { r, 33 } },
                { "blk.3.ffn_down_exps.weight.lora_a", f, 3, { 64, r, 3 } },
            };
            float *w[4];
            write_gguf(t, 4, 8, "adapter", "lora", w);
            CHECK_MSG(adapter_open_file(&a, gguf_path, &err) == BZ_OK, "%s", err.text);
            CHECK(a.n_targets == 2 && a.alpha == 8 && a.n_warnings == 0);
            CHECK_STR(a.arch, "gemma4");
            const struct adapter_target *q = find(&a, "blk.3.attn_q.weight");
            const struct adapter_target *e = find(&a, "blk.3.ffn_down_exps.weight");
            CHECK(q && q->rank == r && q->n_in == 96 && q->n_out == 33 && q->n_expert == 1);
            CHECK(e && e->rank == r && e->n_in == 64 && e->n_out == 7 && e->n_expert == 3);
            CHECK(q && q->scale == 8.0f / (float)r);
            if (q && e) {
                check_same(q->a, w[0], 96 * r);
                check_same(q->b, w[2], r * 33);
                check_same(e->a, w[3], 64 * r * 3);
                check_same(e->b, w[1], r * 7 * 3);
            }
            for (int k = 0; k < 4; k++) mem_free(w[k]);
            adapter_close(&a);
            adapter_close(&a);
        }
    }
    TEST("an alpha of 0 does not scale, and norms are left out with a warning")
    {
        const struct tensor t[] = {
            { "blk.0.attn_norm.weight", QUANT_F32, 1, { 8 } },
            { "blk.0.proj.weight.lora_a", QUANT_F32, 2, { 4, 2 } },
            { "blk.0.proj.weight.lora_b", QUANT_F32, 2, { 2, 3 } },
            { "output_norm.weight", QUANT_F32, 1, { 8 } },
            { "blk.0.post_ffw_norm.weight", QUANT_F32, 1, { 8 } },
        };
        write_gguf(t, 5, 0, "adapter", "lora", NULL);
        CHECK_MSG(adapter_open_file(&a, gguf_path, &err) == BZ_OK, "%s", err.text);
        CHECK(a.n_targets == 1 && a.targets[0].scale == 1);
        CHECK(a.n_warnings == 3);
        CHECK(a.n_warnings == 3 && strstr(a.warnings[1], "output_norm.weight"));
        adapter_close(&a);
    }
}

/* These tensors are no adapter, and the sentence says why. */
static void check_bad_gguf(const struct tensor *t, size_t n, enum bz_status want, const char *word)
{
    struct adapter a = { .n_targets = 77 };
    struct bz_err err = { "" };
    write_gguf(t, n, 8, "adapter", "lora", NULL);
    enum bz_status st = adapter_open_file(&a, gguf_path, &err);
    CHECK_MSG(st == want, "%s: status %d", word, (int)st);
    CHECK_MSG(strstr(err.text, word) != NULL, "want \"%s\" in: %s", word, err.text);
    CHECK(a.n_targets == 77);
}

static void test_bad_gguf(void)
{
#define NAME "blk.0.attn_q.weight"
    static const struct tensor a = { NAME ".lora_a", QUANT_F32, 2, { 8, 4 } };
    static const struct tensor b = { NAME ".lora_b", QUANT_F32, 2, { 4, 6 } };
    struct adapter ad;
    struct bz_err err;
    TEST("a missing half, a doubtful shape or a stranger among the tensors is an error")
    {
        struct tensor pair[2] = { a, b };
        check_bad_gguf(pair, 1, BZ_ERR_FORMAT, "no lora_b");
        check_bad_gguf(pair + 1, 1, BZ_ERR_FORMAT, "no lora_a");
        check_bad_gguf(pair, 0, BZ_ERR_FORMAT, "nothing");
        pair[1].ne[0] = 3;
        check_bad_gguf(pair, 2, BZ_ERR_FORMAT, "ranks 4 and 3");
        pair[1] = b;
        pair[0].n_dims = pair[1].n_dims = 3;
        pair[0].ne[2] = pair[1].ne[2] = 2;
        check_bad_gguf(pair, 2, BZ_ERR_FORMAT, "no expert stack");
        pair[0].name = "blk.0.ffn_down_exps.weight.lora_a";
        pair[1].name = "blk.0.ffn_down_exps.weight.lora_b";
        pair[1].ne[2] = 3;
        check_bad_gguf(pair, 2, BZ_ERR_FORMAT, "2 and 3 experts");
        pair[0].n_dims = 4;
        pair[0].ne[3] = 2;
        check_bad_gguf(pair, 2, BZ_ERR_FORMAT, "four dimensions");
        struct tensor three[3] = { a, b, { "blk.0.attn_k.weight", QUANT_F32, 1, { 4 } } };
        check_bad_gguf(three, 3, BZ_ERR_FORMAT, "neither");
    }
    TEST("formats of no adapter, and the embedding, are refused with a reason")
    {
        struct tensor pair[2] = { a, b };
        pair[0].format = QUANT_Q4_0;
        pair[0].ne[0] = 32;
        check_bad_gguf(pair, 2, BZ_ERR_UNSUPPORTED, "Q4_0");
        pair[0] = (struct tensor) { "token_embd.weight.lora_a", QUANT_F32, 2, { 8, 4 } };
        check_bad_gguf(pair, 2, BZ_ERR_UNSUPPORTED, "embedding");
        pair[0].name = "output.weight.lora_a";
        check_bad_gguf(pair, 2, BZ_ERR_UNSUPPORTED, "output head");
        pair[0].name = ".lora_a";
        check_bad_gguf(pair, 2, BZ_ERR_FORMAT, "proper name");
    }
    TEST("a GGUF file that is no LoRA adapter says so")
    {
        struct tensor pair[2] = { a, b };
        write_gguf(pair, 2, 8, "model", "lora", NULL);
        CHECK(adapter_open_file(&ad, gguf_path, &err) == BZ_ERR_FORMAT);
        CHECK(strstr(err.text, "not an adapter"));
        write_gguf(pair, 2, 8, NULL, "lora", NULL);
        CHECK(adapter_open_file(&ad, gguf_path, &err) == BZ_ERR_FORMAT);
        write_gguf(pair, 2, 8, "adapter", "control_vector", NULL);
        CHECK(adapter_open_file(&ad, gguf_path, &err) == BZ_ERR_UNSUPPORTED);
        write_gguf(pair, 2, (float)NAN, "adapter", "lora", NULL);
        CHECK(adapter_open_file(&ad, gguf_path, &err) == BZ_ERR_FORMAT);
        CHECK(adapter_open_file(&ad, "build/tmp/no-such-adapter", &err) == BZ_ERR_NOT_FOUND);
        CHECK(adapter_open_file(&ad, "build/tmp", &err) == BZ_ERR_IO);
    }
}

/* --- hostile bytes, little memory --- */

static void write_some(void)
{
    const struct tensor t[] = {
        { "blk.0.attn_q.weight.lora_a", QUANT_F16, 2, { 32, 32 } },
        { "blk.0.attn_q.weight.lora_b", QUANT_Q8_0, 2, { 32, 6 } },
        { "blk.0.attn_norm.weight", QUANT_F32, 1, { 8 } },
    };
    write_gguf(t, 3, 8, "adapter", "lora", NULL);
    struct st_file f = { 0 };
    enum { E = 3, R = 4, H = 5, I = 2 }; /* experts, rank, model width, expert width */
    put_pair(&f, "model.layers.2.experts", R * E, H, 2 * I);
    put_pair(&f, "model.layers.0.self_attn.q_proj", 4, 3, 2);
    write_peft(&f, CONFIG(",\"peft_version\":\"0.19.0\",\"rank_pattern\":{\"x\":1},"
                          "\"target_parameters\":[\"gate_up_proj\"]"));
}

static struct buf read_back(const char *path)
{
    struct source s;
    struct buf b = { 0 };
    CHECK(source_open_file(&s, path, NULL) == BZ_OK);
    CHECK(source_read_all(&s, 1 << 20, &b, NULL) == BZ_OK);
    source_close(&s);
    return b;
}

static enum bz_status open_bytes(struct adapter *a, const char *p, size_t n, const char *config)
{
    struct source s;
    enum bz_status st = source_open_memory(&s, "mem", p, n, NULL);
    if (st) return st;
    if (config) return adapter_open_peft(a, &s, str_of(config), NULL);
    struct gguf g;
    st = gguf_open(&g, &s, 1, NULL);
    if (st) return st;
    st = adapter_open_gguf(a, &g, NULL);
    gguf_close(&g);
    return st;
}

static void test_hostile(void)
{
    struct adapter a;
    write_some();
    TEST("any failed allocation is reported and nothing leaks")
    {
        const char *paths[] = { gguf_path, dir, weights_path };
        int64_t live = mem_live();
        for (int i = 0; i < 3; i++) {
            for (uint64_t k = 1;; k++) {
                mem_fail_at(k);
                enum bz_status st = adapter_open_file(&a, paths[i], NULL);
                mem_fail_at(0);
                if (st == BZ_OK) {
                    CHECK(k > 10);
                    adapter_close(&a);
                    break;
                }
                CHECK_MSG(st == BZ_ERR_MEMORY, "%s, allocation %" PRIu64 ": %d", paths[i], k,
                          (int)st);
                CHECK(mem_live() == live);
            }
        }
        CHECK(mem_live() == live);
    }
    TEST("no prefix of an adapter opens, and damage never crashes")
    {
        struct buf config = read_back(config_path);
        for (int peft = 0; peft < 2; peft++) {
            struct buf b = read_back(peft ? weights_path : gguf_path);
            const char *c = peft ? config.data : NULL;
            CHECK(open_bytes(&a, b.data, b.n, c) == BZ_OK);
            adapter_close(&a);
            /* A GGUF file may end in padding that no tensor needs. */
            for (size_t n = 0; n + 32 < b.n; n += 1 + n / 64)
                CHECK_MSG(open_bytes(&a, b.data, n, c) != BZ_OK, "%zu of %zu bytes", n, b.n);
            for (int i = 0; i < 3000; i++) {
                size_t at = rng_below(&adapter_rng, (uint32_t)(b.n < 1000 ? b.n : 1000));
                char old = b.data[at];
                b.data[at] = (char)rng_next(&adapter_rng);
                if (open_bytes(&a, b.data, b.n, c) == BZ_OK) adapter_close(&a);
                b.data[at] = old;
            }
            buf_free(&b);
        }
        buf_free(&config);
    }
}

int main(void)
{
    adapter_files_open();
    test_gguf();
    test_bad_gguf();
    test_hostile();
    adapter_files_close();
    return check_done();
}
