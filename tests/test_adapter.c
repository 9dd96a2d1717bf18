/* LoRA adapters: what GGUF and PEFT say is what arrives, and nothing half-right gets through. */
#include "io/adapter.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/half.h"
#include "base/rng.h"
#include "check.h"
#include "io/gguf_write.h"
#include "quant/quant.h"

static char dir[200], gguf_path[256], config_path[256], weights_path[256];

static struct rng rng = { 11 };

static float random_weight(void)
{
    return 2 * rng_unit(rng_next(&rng)) - 1;
}

static float *random_weights(size_t n)
{
    float *w = mem_alloc(n, sizeof *w);
    for (size_t i = 0; i < n; i++) w[i] = random_weight();
    return w;
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n) perror(path);
    if (f) fclose(f);
}

static const struct adapter_target *find(const struct adapter *a, const char *name)
{
    for (size_t i = 0; i < a->n_targets; i++)
        if (strcmp(a->targets[i].name, name) == 0) return &a->targets[i];
    return NULL;
}

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

static void check_same(const float *got, const float *want, size_t n)
{
    CHECK(got && memcmp(got, want, n * sizeof *got) == 0);
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

/* --- PEFT --- */

/* A safetensors file under construction. */
struct st_file {
    struct buf header, data;
};

static void put_tensor(struct st_file *f, const char *name, const char *dtype, size_t rows,
                       size_t cols, const float *w)
{
    size_t from = f->data.n;
    for (size_t i = 0; i < rows * cols; i++) {
        uint16_t h = dtype[0] == 'B' ? f32_to_bf16(w[i]) : f32_to_f16(w[i]);
        if (strcmp(dtype, "F32") == 0) buf_put(&f->data, &w[i], 4);
        else buf_put(&f->data, &h, 2);
    }
    buf_printf(&f->header,
               "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}",
               f->header.n ? "," : "{", name, dtype, rows, cols, from, f->data.n);
}

/* Random weights under a name; the caller frees them. */
static float *put_random(struct st_file *f, const char *name, size_t rows, size_t cols)
{
    float *w = random_weights(rows * cols);
    put_tensor(f, name, "F32", rows, cols, w);
    return w;
}

static void put_pair(struct st_file *f, const char *module, size_t r, size_t n_in, size_t n_out)
{
    char name[300];
    snprintf(name, sizeof name, "base_model.model.%s.lora_A.weight", module);
    mem_free(put_random(f, name, r, n_in));
    snprintf(name, sizeof name, "base_model.model.%s.lora_B.weight", module);
    mem_free(put_random(f, name, n_out, r));
}

/* The file as bytes; empties f. */
static struct buf finish(struct st_file *f)
{
    struct buf all = { 0 };
    buf_puts(&f->header, f->header.n ? "}" : "{}");
    for (int i = 0; i < 8; i++) buf_putc(&all, (char)((uint64_t)f->header.n >> (8 * i)));
    buf_put_str(&all, buf_str(&f->header));
    buf_put_str(&all, buf_str(&f->data));
    buf_free(&f->header);
    buf_free(&f->data);
    return all;
}

static void write_peft(struct st_file *f, const char *config)
{
    struct buf all = finish(f);
    write_file(weights_path, all.data, all.n);
    write_file(config_path, config, strlen(config));
    buf_free(&all);
}

#define CONFIG(rest) "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":6" rest "}"

static enum bz_status open_peft(struct adapter *a, struct st_file *f, const char *config,
                                struct bz_err *err)
{
    write_peft(f, config);
    return adapter_open_file(a, dir, err);
}

static void test_peft(void)
{
    struct adapter a = { 0 };
    struct bz_err err = { "" };
    struct st_file f = { 0 };
    TEST("a PEFT directory, or its weights alone, gives the same numbers under GGUF's names")
    {
        float *wa =
            put_random(&f, "base_model.model.model.layers.7.mlp.up_proj.lora_A.weight", 4, 9);
        float *wb =
            put_random(&f, "base_model.model.model.layers.7.mlp.up_proj.lora_B.weight", 5, 4);
        write_peft(&f, CONFIG(",\"target_modules\":\"all-linear\",\"use_dora\":false"));
        char slash[256];
        snprintf(slash, sizeof slash, "%s/", dir);
        const char *paths[] = { dir, slash, weights_path };
        for (size_t i = 0; i < 3; i++) {
            CHECK_MSG(adapter_open_file(&a, paths[i], &err) == BZ_OK, "%s", err.text);
            const struct adapter_target *t = find(&a, "blk.7.ffn_up.weight");
            CHECK(a.n_targets == 1 && a.alpha == 6);
            CHECK_STR(a.arch, "");
            CHECK(t && t->rank == 4 && t->n_in == 9 && t->n_out == 5 && t->n_expert == 1);
            CHECK(t && t->scale == 1.5f);
            if (t) check_same(t->a, wa, 36);
            if (t) check_same(t->b, wb, 20);
            adapter_close(&a);
        }
        mem_free(wa);
        mem_free(wb);
    }
    TEST("every module has its tensor, below every prefix")
    {
        static const char *const names[][2] = {
            { "self_attn.q_proj", "attn_q" },   { "self_attn.k_proj", "attn_k" },
            { "self_attn.v_proj", "attn_v" },   { "self_attn.o_proj", "attn_output" },
            { "mlp.gate_proj", "ffn_gate" },    { "mlp.up_proj", "ffn_up" },
            { "mlp.down_proj", "ffn_down" },    { "per_layer_input_gate", "inp_gate" },
            { "per_layer_projection", "proj" }, { "router.proj", "ffn_gate_inp" },
        };
        static const char *const prefixes[] = { "model.language_model.layers.", "model.layers.",
                                                "language_model.model.layers." };
        for (size_t p = 0; p < 3; p++) {
            for (size_t i = 0; i < 10; i++) {
                char module[200];
                snprintf(module, sizeof module, "%s%zu.%s", prefixes[p], 3 * i, names[i][0]);
                put_pair(&f, module, 4, 3 + i, 2);
            }
            CHECK_MSG(open_peft(&a, &f, CONFIG(""), &err) == BZ_OK, "%s", err.text);
            CHECK(a.n_targets == 10);
            for (size_t i = 0; i < 10; i++) {
                char tensor[200];
                snprintf(tensor, sizeof tensor, "blk.%zu.%s.weight", 3 * i, names[i][1]);
                const struct adapter_target *t = find(&a, tensor);
                CHECK_MSG(t && t->n_in == 3 + i, "%s", tensor);
            }
            adapter_close(&a);
        }
    }
    TEST("half floats are read, and the halves of a pair may differ in format")
    {
        float w[8] = { 1, -0.5f, 0.1f, 3e-5f, 65504, 0, -2, 7 };
        put_tensor(&f, "model.layers.0.self_attn.q_proj.lora_A.weight", "F16", 4, 2, w);
        put_tensor(&f, "model.layers.0.self_attn.q_proj.lora_B.weight", "BF16", 2, 4, w);
        CHECK_MSG(open_peft(&a, &f, CONFIG(""), &err) == BZ_OK, "%s", err.text);
        for (int i = 0; i < 8; i++) {
            CHECK(a.targets[0].a[i] == f16_to_f32(f32_to_f16(w[i])));
            CHECK(a.targets[0].b[i] == bf16_to_f32(f32_to_bf16(w[i])));
        }
        adapter_close(&a);
    }
}

static void test_scales(void)
{
    struct adapter a = { 0 };
    struct bz_err err = { "" };
    struct st_file f = { 0 };
    TEST("rslora divides by the root of the rank, patterns change rank and alpha")
    {
        put_pair(&f, "model.layers.0.self_attn.q_proj", 4, 3, 2);
        CHECK_MSG(open_peft(&a, &f, CONFIG(",\"use_rslora\":true"), &err) == BZ_OK, "%s", err.text);
        CHECK(a.targets[0].scale == 3);
        adapter_close(&a);

        put_pair(&f, "model.layers.0.self_attn.q_proj", 2, 3, 2);
        put_pair(&f, "model.layers.1.self_attn.q_proj", 8, 3, 2);
        put_pair(&f, "model.layers.1.self_attn.k_proj", 4, 3, 2);
        static const char patterns[] =
            CONFIG(",\"rank_pattern\":{\"layers\\\\.1\\\\.self_attn\\\\.q_proj\":8,\"q_proj\":2},"
                   "\"alpha_pattern\":{\"k_proj\":1,\"model.layers.0.self_attn.q_proj\":0.5}");
        CHECK_MSG(open_peft(&a, &f, patterns, &err) == BZ_OK, "%s", err.text);
        const struct adapter_target *q0 = find(&a, "blk.0.attn_q.weight");
        const struct adapter_target *q1 = find(&a, "blk.1.attn_q.weight");
        const struct adapter_target *k1 = find(&a, "blk.1.attn_k.weight");
        CHECK(q0 && q0->rank == 2 && q0->scale == 0.25f);
        CHECK(q1 && q1->rank == 8 && q1->scale == 0.75f);
        CHECK(k1 && k1->rank == 4 && k1->scale == 0.25f);
        adapter_close(&a);
    }
    TEST("a rank that the config denies is an error")
    {
        put_pair(&f, "model.layers.0.self_attn.q_proj", 3, 3, 2);
        CHECK(open_peft(&a, &f, CONFIG(""), &err) == BZ_ERR_FORMAT);
        CHECK_MSG(strstr(err.text, "rank 3 and the config says 4") != NULL, "%s", err.text);
    }
    TEST("a pattern that cannot be read is an error, not ignored")
    {
        put_pair(&f, "model.layers.0.self_attn.q_proj", 4, 3, 2);
        CHECK(open_peft(&a, &f, CONFIG(",\"rank_pattern\":{\"q{2}\":8}"), &err) ==
              BZ_ERR_UNSUPPORTED);
        CHECK(strstr(err.text, "q{2}"));
    }
}

/* --- PEFT's experts --- */

enum { E = 3, R = 4, H = 5, I = 2 }; /* experts, rank, model width, expert width */

/* What PEFT adds to expert e's matrix (out x in), from its two tensors. */
static double peft_delta(const float *la, const float *lb, bool old, size_t n_in, size_t n_out,
                         size_t e, size_t o, size_t i)
{
    double sum = 0;
    for (size_t r = 0; r < R; r++) {
        if (old) /* einsum("o r e, e r i -> e i o"), where PEFT's i is our output */
            sum += (double)lb[i * R * E + r * E + e] * (double)la[(e * R + r) * n_out + o];
        else /* einsum("o r e, e r i -> e o i") */
            sum += (double)lb[o * R * E + r * E + e] * (double)la[(e * R + r) * n_in + i];
    }
    return sum;
}

static void check_experts(const struct adapter *a, const char *tensor, const float *la,
                          const float *lb, bool old, size_t n_in, size_t n_out)
{
    const struct adapter_target *t = find(a, tensor);
    CHECK_MSG(t && t->n_expert == E && t->rank == R && t->n_in == n_in && t->n_out == n_out, "%s",
              tensor);
    if (!t) return;
    CHECK(t->scale == 1.5f);
    for (size_t e = 0; e < E; e++)
        for (size_t o = 0; o < n_out; o++)
            for (size_t i = 0; i < n_in; i++) {
                double sum = 0;
                for (size_t r = 0; r < R; r++)
                    sum += (double)t->b[(e * n_out + o) * R + r] *
                           (double)t->a[(e * R + r) * n_in + i];
                CHECK(sum == peft_delta(la, lb, old, n_in, n_out, e, o, i));
            }
}

static void test_experts(void)
{
    struct adapter a = { 0 };
    struct bz_err err = { "" };
    struct st_file f = { 0 };
#define EXPERTS "base_model.model.model.language_model.layers.2.experts"
    TEST("experts add up to what PEFT adds, in its new and its old layout")
    {
        for (int old = 0; old < 2; old++) {
            size_t gi = old ? 2 * I : H, go = old ? H : 2 * I; /* columns of A, rows of B */
            size_t di = old ? H : I, dn = old ? I : H;
            float *w[4] = {
                put_random(&f, EXPERTS ".base_layer.lora_A.weight", R * E, gi),
                put_random(&f, EXPERTS ".base_layer.lora_B.weight", go, R * E),
                put_random(&f, EXPERTS ".lora_A.weight", R * E, di),
                put_random(&f, EXPERTS ".lora_B.weight", dn, R * E),
            };
            const char *config =
                old ? CONFIG(",\"peft_version\":\"0.18.1\",\"target_parameters\":"
                             "[\"experts.gate_up_proj\",\"experts.down_proj\"]")
                    : CONFIG(",\"peft_version\":\"0.19.0\",\"target_parameters\":"
                             "[\"down_proj\",\"language_model.layers.2.experts.gate_up_proj\"]");
            CHECK_MSG(open_peft(&a, &f, config, &err) == BZ_OK, "%s", err.text);
            CHECK(a.n_targets == 2);
            check_experts(&a, "blk.2.ffn_gate_up_exps.weight", w[0], w[1], old, H, 2 * I);
            check_experts(&a, "blk.2.ffn_down_exps.weight", w[2], w[3], old, I, H);
            for (int i = 0; i < 4; i++) mem_free(w[i]);
            adapter_close(&a);
        }
    }
    TEST("one expert parameter alone is the one that the config names")
    {
        for (int down = 0; down < 2; down++) {
            size_t n_in = down ? I : H, n_out = down ? H : 2 * I;
            float *la = put_random(&f, EXPERTS ".lora_A.weight", R * E, n_in);
            float *lb = put_random(&f, EXPERTS ".lora_B.weight", n_out, R * E);
            const char *config =
                down ? CONFIG(",\"peft_version\":\"1.0\",\"target_parameters\":[\"down_proj\"]")
                     : CONFIG(",\"peft_version\":\"0.20.0\",\"target_parameters\":"
                              "[\"experts.gate_up_proj\",\"up_proj\"]");
            CHECK_MSG(open_peft(&a, &f, config, &err) == BZ_OK, "%s", err.text);
            check_experts(&a, down ? "blk.2.ffn_down_exps.weight" : "blk.2.ffn_gate_up_exps.weight",
                          la, lb, false, n_in, n_out);
            mem_free(la);
            mem_free(lb);
            adapter_close(&a);
        }
    }
    TEST("expert tensors that nothing explains are an error")
    {
        put_pair(&f, "model.layers.2.experts", R * E, H, 2 * I);
        CHECK(open_peft(&a, &f, CONFIG(""), &err) == BZ_ERR_FORMAT);
        CHECK_MSG(strstr(err.text, "target_parameters") != NULL, "%s", err.text);
        put_pair(&f, "model.layers.2.experts.base_layer", R * E, H, 2 * I);
        CHECK(open_peft(&a, &f, CONFIG(",\"target_parameters\":[\"experts.gate_up_proj\"]"),
                        &err) == BZ_ERR_FORMAT);
        put_pair(&f, "model.layers.2.experts", R * E, H, 2 * I); /* no such component */
        CHECK(open_peft(&a, &f, CONFIG(",\"target_parameters\":[\"up_proj\",\"\",7]"), &err) ==
              BZ_ERR_FORMAT);
        put_pair(&f, "model.layers.2.experts", R * E + 1, H, 2 * I); /* not whole experts */
        CHECK(open_peft(&a, &f, CONFIG(",\"target_parameters\":[\"experts.gate_up_proj\"]"),
                        &err) == BZ_ERR_FORMAT);
        put_pair(&f, "model.layers.2.experts.0.gate_proj", R, H, 2 * I);
        CHECK(open_peft(&a, &f, CONFIG(""), &err) == BZ_ERR_UNSUPPORTED);
        put_pair(&f, "model.layers.2.experts.gate_up_proj", R, H, 2 * I);
        CHECK(open_peft(&a, &f, CONFIG(""), &err) == BZ_ERR_UNSUPPORTED);
    }
}

/* --- what PEFT may say and Bezel does not take --- */

static void check_bad_peft(struct st_file *f, const char *config, enum bz_status want,
                           const char *word)
{
    struct adapter a = { .n_targets = 77 };
    struct bz_err err = { "" };
    enum bz_status st = open_peft(&a, f, config, &err);
    CHECK_MSG(st == want, "%s: status %d: %s", word, (int)st, err.text);
    CHECK_MSG(strstr(err.text, word) != NULL, "want \"%s\" in: %s", word, err.text);
    CHECK(a.n_targets == 77);
}

static void test_bad_modules(void)
{
    struct st_file f = { 0 };
    TEST("unknown modules are named, embedding and head are explained")
    {
        static const char *const unknown[] = {
            "model.layers.0.self_attn.qkv_proj",
            "model.layers.x.self_attn.q_proj",
            "model.layers.99999.self_attn.q_proj",
            "model.layers.0",
            "model.vision_tower.encoder.layers.0.self_attn.q_proj.linear",
            "model.language_model.per_layer_model_projection",
            "model.layers.0.self_attn.q_proj.default",
        };
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
            put_pair(&f, unknown[i], 4, 3, 2);
            check_bad_peft(&f, CONFIG(""), BZ_ERR_UNSUPPORTED, unknown[i]);
        }
        put_pair(&f, "lm_head", 4, 3, 2);
        check_bad_peft(&f, CONFIG(""), BZ_ERR_UNSUPPORTED, "one table");
        mem_free(put_random(&f, "base_model.model.model.embed_tokens.lora_embedding_A", 4, 3));
        check_bad_peft(&f, CONFIG(""), BZ_ERR_UNSUPPORTED, "one table");
        mem_free(put_random(&f, "model.layers.0.mlp.up_proj.lora_magnitude_vector", 1, 3));
        check_bad_peft(&f, CONFIG(""), BZ_ERR_UNSUPPORTED, "lora_magnitude_vector");
        mem_free(put_random(&f, "base_model.model.lora_B.weight", 2, 4)); /* of no module */
        check_bad_peft(&f, CONFIG(""), BZ_ERR_UNSUPPORTED, "adapts lora_B.weight, a module");
    }
}

static void test_bad_configs(void)
{
    struct st_file f = { 0 };
    TEST("configs of another kind are refused")
    {
        static const char *const bad[][2] = {
            { "{\"peft_type\":\"LOHA\",\"r\":4,\"lora_alpha\":6}", "LOHA" },
            { "{\"r\":4,\"lora_alpha\":6}", "peft_type" },
            { CONFIG(",\"use_dora\":true"), "use_dora" },
            { CONFIG(",\"lora_bias\":true"), "lora_bias" },
            { CONFIG(",\"layer_replication\":[[0,4]]"), "layer_replication" },
            { CONFIG(",\"use_bdlora\":{\"nblocks\":2}"), "use_bdlora" },
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            put_pair(&f, "model.layers.0.self_attn.q_proj", 4, 3, 2);
            check_bad_peft(&f, bad[i][0], BZ_ERR_UNSUPPORTED, bad[i][1]);
        }
    }
    TEST("configs that make no sense are errors")
    {
        static const char *const bad[][2] = {
            { "", "adapter_config.json" },
            { "{", "adapter_config.json" },
            { "{\"peft_type\":\"LORA\",\"lora_alpha\":6}", "no numbers r" },
            { "{\"peft_type\":\"LORA\",\"r\":4}", "no numbers r" },
            { "{\"peft_type\":\"LORA\",\"r\":\"4\",\"lora_alpha\":6}", "no numbers r" },
            { "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":1e300}", "no numbers r" },
            { "{\"peft_type\":\"LORA\",\"r\":0,\"lora_alpha\":6}", "the rank 0" },
            { "{\"peft_type\":\"LORA\",\"r\":-4,\"lora_alpha\":6}", "the rank -4" },
            { "{\"peft_type\":\"LORA\",\"r\":4.5,\"lora_alpha\":6}", "the rank 4.5" },
            { CONFIG(",\"rank_pattern\":{\"q_proj\":\"x\"}"), "q_proj" },
            { CONFIG(",\"rank_pattern\":[4]"), "must be objects" },
            { CONFIG(",\"alpha_pattern\":\"q_proj\""), "must be objects" },
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            put_pair(&f, "model.layers.0.self_attn.q_proj", 4, 3, 2);
            check_bad_peft(&f, bad[i][0], BZ_ERR_FORMAT, bad[i][1]);
        }
    }
}

static void test_bad_weights(void)
{
    struct st_file f = { 0 };
    TEST("weights that do not pair, or are not numbers, are errors")
    {
        float w[12] = { 0, 1, 2, (float)INFINITY };
#define Q "model.layers.0.self_attn.q_proj"
        put_tensor(&f, Q ".lora_A.weight", "F32", 4, 3, w);
        check_bad_peft(&f, CONFIG(""), BZ_ERR_FORMAT, "no lora_b");
        put_tensor(&f, Q ".lora_A.weight", "F32", 4, 3, w);
        put_tensor(&f, "base_model.model." Q ".lora_A.weight", "F32", 4, 3, w);
        check_bad_peft(&f, CONFIG(""), BZ_ERR_FORMAT, "two lora_a");
        put_tensor(&f, Q ".lora_A.weight", "F32", 4, 3, w);
        put_tensor(&f, Q ".lora_B.weight", "F32", 3, 4, w);
        check_bad_peft(&f, CONFIG(""), BZ_ERR_FORMAT, "finite");
        w[3] = 3;
        put_tensor(&f, Q ".lora_A.weight", "I16", 4, 3, w);
        check_bad_peft(&f, CONFIG(""), BZ_ERR_UNSUPPORTED, "I16");
        check_bad_peft(&f, CONFIG(""), BZ_ERR_FORMAT, "nothing");
        put_tensor(&f, Q ".lora_A.weight", "F32", 4, 0, w);
        put_tensor(&f, Q ".lora_B.weight", "F32", 3, 4, w);
        check_bad_peft(&f, CONFIG(""), BZ_ERR_FORMAT, "impossible size");
        buf_puts(&f.header, "{\"" Q ".lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[4],"
                            "\"data_offsets\":[0,16]}");
        buf_put(&f.data, w, 16);
        check_bad_peft(&f, CONFIG(""), BZ_ERR_FORMAT, "shape of a LoRA matrix");
    }
    TEST("tensors that share bytes cannot ask for more than the file has")
    {
        float w[3000] = { 0 };
        buf_put(&f.data, w, sizeof w);
        for (int i = 0; i < 20; i++)
            buf_printf(&f.header,
                       "%s\"model.layers.%d.mlp.up_proj.lora_%s.weight\":{\"dtype\":\"F32\","
                       "\"shape\":[%s],\"data_offsets\":[0,12000]}",
                       i ? "," : "{", i / 2, i % 2 ? "B" : "A", i % 2 ? "750,4" : "4,750");
        check_bad_peft(&f, CONFIG(""), BZ_ERR_FORMAT, "more bytes than the file has");
    }
    TEST("norms are left out with a warning, a missing config is an error")
    {
        struct adapter a;
        struct bz_err err = { "" };
        put_pair(&f, "model.layers.0.self_attn.q_proj", 4, 3, 2);
        mem_free(put_random(&f, "base_model.model.model.norm.weight", 1, 3));
        CHECK_MSG(open_peft(&a, &f, CONFIG(",\"alora_invocation_tokens\":[1]"), &err) == BZ_OK,
                  "%s", err.text);
        CHECK(a.n_warnings == 2 && strstr(a.warnings[0], "activated"));
        adapter_close(&a);
        remove(config_path);
        CHECK(adapter_open_file(&a, dir, &err) == BZ_ERR_NOT_FOUND);
        CHECK(strstr(err.text, "adapter_config.json"));
        CHECK(adapter_open_file(&a, weights_path, &err) == BZ_ERR_NOT_FOUND);
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
                size_t at = rng_below(&rng, (uint32_t)(b.n < 1000 ? b.n : 1000));
                char old = b.data[at];
                b.data[at] = (char)rng_next(&rng);
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
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    snprintf(dir, sizeof dir, "build/tmp/adapter-%ld", (long)getpid());
    snprintf(gguf_path, sizeof gguf_path, "%s/lora.gguf", dir);
    snprintf(config_path, sizeof config_path, "%s/adapter_config.json", dir);
    snprintf(weights_path, sizeof weights_path, "%s/adapter_model.safetensors", dir);
    mkdir(dir, 0777);
    test_gguf();
    test_bad_gguf();
    test_peft();
    test_scales();
    test_experts();
    test_bad_modules();
    test_bad_configs();
    test_bad_weights();
    test_hostile();
    remove(gguf_path);
    remove(config_path);
    remove(weights_path);
    rmdir(dir);
    CHECK(mem_live() == 0);
    return check_done();
}
