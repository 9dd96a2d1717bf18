/* LoRA adapters of PEFT: modules, scales, experts, and what Bezel does not take. */
#include "io/adapter.h"

#include <math.h>

#include "adapter_fixture.h"

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

int main(void)
{
    adapter_files_open();
    test_peft();
    test_scales();
    test_experts();
    test_bad_modules();
    test_bad_configs();
    test_bad_weights();
    adapter_files_close();
    return check_done();
}
