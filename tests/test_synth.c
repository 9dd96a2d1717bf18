/* Made-up models: their shapes against published numbers, their weights against what was asked for,
 * and the recipes that `synth` and `quantize` share. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "check.h"
#include "cli/cli.h"
#include "cli/quantize.h"
#include "cli/synth.h"
#include "model/weights.h"
#include "ops/ops_cpu.h"
#include "text/tokenizer.h"

#define DIR "build/tmp/synth_"

static struct bz_err err;

static struct synth_plan plan_with(const struct synth_options *o)
{
    struct synth_plan p = { 0 };
    CHECK_MSG(synth_plan_make(&p, o, &err) == BZ_OK, "%s", err.text);
    return p;
}

static struct synth_plan plan_of(const char *size, enum mix_id mix, bool ollama)
{
    return plan_with(&(struct synth_options) {
        .size = synth_size_find(size), .mix = mix, .ollama = ollama, .seed = 7 });
}

static struct synth_plan plan_diffusion(const char *size, bool one_scale, bool few_keys)
{
    return plan_with(&(struct synth_options) { .size = synth_size_find(size),
                                               .mix = MIX_Q4_K_M,
                                               .seed = 7,
                                               .one_scale = one_scale,
                                               .few_keys = few_keys });
}

static const struct synth_tensor *find(const struct synth_plan *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->tensors[i].name, name) == 0) return &p->tensors[i];
    return NULL;
}

/* ---- recipes ---- */

/* Are the layers whose `name` has type `more` exactly these, and the others of type `less`? "0-4,7"
 * are the layers; one without the tensor does not count. */
static void check_layers(const struct synth_plan *p, const char *name, uint32_t more, uint32_t less,
                         const char *layers)
{
    bool wanted[64] = { 0 };
    for (const char *z = layers; *z;) {
        char *end;
        long a = strtol(z, &end, 10), b = a;
        if (*end == '-') b = strtol(end + 1, &end, 10);
        for (long il = a; il <= b; il++) wanted[il] = true;
        z = *end ? end + 1 : end;
    }
    for (uint32_t il = 0; il < p->options.size->n_layer; il++) {
        char full[64];
        snprintf(full, sizeof full, "blk.%u.%s", il, name);
        const struct synth_tensor *t = find(p, full);
        if (!t) CHECK_MSG(!wanted[il], "%s is missing", full);
        else
            CHECK_MSG(t->type == (wanted[il] ? more : less), "%s is %s", full,
                      quant_type_name(t->type));
    }
}

/* Every text tensor whose name ends so has this type. */
static void check_type(const struct synth_plan *p, const char *end, uint32_t type)
{
    bool seen = false;
    for (size_t i = 0; i < p->n; i++) {
        const struct synth_tensor *t = &p->tensors[i];
        if (t->name[1] == '.' || !str_ends(str_of(t->name), end)) continue;
        seen = true;
        CHECK_MSG(t->type == type, "%s is %s", t->name, quant_type_name(t->type));
    }
    CHECK_MSG(seen, "no tensor %s", end);
}

static void check_totals(const char *size, enum mix_id mix, bool ollama, uint64_t n_tensors,
                         uint64_t n_params, uint64_t n_bytes)
{
    struct synth_plan p = plan_of(size, mix, ollama);
    CHECK_MSG(p.n == n_tensors, "%s: %zu tensors", size, p.n);
    if (n_params)
        CHECK_MSG(p.n_params == n_params, "%s: %llu parameters", size,
                  (unsigned long long)p.n_params);
    if (n_bytes)
        CHECK_MSG(p.n_bytes == n_bytes, "%s: %llu bytes", size, (unsigned long long)p.n_bytes);
    synth_plan_free(&p);
}

static void test_published(void)
{
    TEST("tensor counts, parameters and sizes are those of the published files")
    {
        check_totals("e2b", MIX_Q4_K_M, false, 601, 0, 0);
        check_totals("e2b", MIX_Q4_0, false, 541, 0, 0);
        check_totals("e4b", MIX_Q4_K_M, false, 720, 7518069290u, 0);
        check_totals("e4b", MIX_Q4_0, false, 666, 0, 0);
        check_totals("e4b", MIX_Q4_K_M, true, 720 + 1411, 7996157674u, 9592448448u);
        check_totals("12b", MIX_Q4_0, false, 667, 0, 6975879296u - 15823488u);
        check_totals("26b-a4b", MIX_Q4_K_M, true, 658 + 356, 25805936462u, 0);
        check_totals("31b", MIX_Q4_K_M, true, 833 + 356, 31273089132u, 0);
    }
    TEST("the E4B recipe is Ollama's, which counts the towers' value projections")
    {
        struct synth_plan p = plan_of("e4b", MIX_Q4_K_M, true);
        check_layers(&p, "attn_v.weight", QUANT_Q6_K, QUANT_Q4_K,
                     "0-7,10,13,16,19,22,25,28,31,34,37,40");
        check_layers(&p, "ffn_down.weight", QUANT_Q6_K, QUANT_Q4_K,
                     "0-4,7,10,13,16,19,22,25,28,31,34,36-41");
        CHECK(find(&p, "token_embd.weight")->type == QUANT_Q6_K);
        CHECK(find(&p, "per_layer_token_embd.weight")->type == QUANT_BF16);
        CHECK(find(&p, "per_layer_model_proj.weight")->type == QUANT_Q4_K);
        CHECK(find(&p, "a.conv1d.0.weight")->type == QUANT_F32);
        CHECK(find(&p, "a.blk.3.attn_v.weight")->type == QUANT_BF16);
        CHECK(find(&p, "v.blk.3.attn_v.weight")->type == QUANT_F16);
        check_type(&p, ".inp_gate.weight", QUANT_Q4_K);
        check_type(&p, ".proj.weight", QUANT_Q4_K);
        check_type(&p, "_norm.weight", QUANT_F32);
        synth_plan_free(&p);
    }
    TEST("the E4B recipe of a split file counts the text model only")
    {
        struct synth_plan p = plan_of("e4b", MIX_Q4_K_M, false);
        check_layers(&p, "attn_v.weight", QUANT_Q6_K, QUANT_Q4_K,
                     "0-4,7,10,13,16,19,22,25,28,31,34,36-41");
        check_layers(&p, "ffn_down.weight", QUANT_Q6_K, QUANT_Q4_K,
                     "0-4,7,10,13,16,19,22,25,28,31,34,36-41");
        CHECK(find(&p, "per_layer_token_embd.weight")->type == QUANT_Q6_K);
        CHECK(find(&p, "per_layer_model_proj.weight")->type == QUANT_BF16);
        synth_plan_free(&p);
    }
    TEST("the 26B recipe falls back to Q5_0 and Q8_0 where rows are too short for K-quants")
    {
        struct synth_plan p = plan_of("26b-a4b", MIX_Q4_K_M, true);
        const char *down = "0-2,5,8,11,14,17,20,23,26-29";
        check_layers(&p, "attn_v.weight", QUANT_Q6_K, QUANT_Q4_K, "0-4,6,9,13,16,20,24,27");
        check_layers(&p, "ffn_down.weight", QUANT_Q8_0, QUANT_Q5_0, down);
        check_layers(&p, "ffn_down_exps.weight", QUANT_Q8_0, QUANT_Q5_0, down);
        check_type(&p, ".ffn_gate_up_exps.weight", QUANT_Q4_K);
        check_type(&p, ".attn_q.weight", QUANT_Q4_K);
        check_type(&p, ".ffn_gate_inp.weight", QUANT_F32);
        check_type(&p, ".scale", QUANT_F32);
        synth_plan_free(&p);
        p = plan_of("26b-a4b", MIX_Q4_K_M, false); /* 25 value projections instead of 52 */
        check_layers(&p, "attn_v.weight", QUANT_Q6_K, QUANT_Q4_K, "0-2,6,9,13,16,20,24-28");
        synth_plan_free(&p);
    }
    TEST("the 31B recipe is the published one")
    {
        struct synth_plan p = plan_of("31b", MIX_Q4_K_M, true);
        check_layers(&p, "ffn_down.weight", QUANT_Q6_K, QUANT_Q4_K,
                     "0-6,9,12,15,18,21,24,27,30,33,36,39,42,45,48,51,52-59");
        check_layers(&p, "attn_v.weight", QUANT_Q6_K, QUANT_Q4_K,
                     "0-4,6-9,13,16,20,24,27,31,34,38,42,45,49,52,56");
        CHECK(find(&p, "token_embd.weight")->type == QUANT_Q6_K);
        synth_plan_free(&p);
    }
    TEST("the diffusion model's formats and size are those of the published Q4_K_M file")
    {
        static const struct {
            enum quant_id type;
            uint32_t n;
        } published[] = { { QUANT_F32, 423 },
                          { QUANT_Q5_0, 33 },
                          { QUANT_Q8_0, 28 },
                          { QUANT_Q4_K, 194 },
                          { QUANT_Q6_K, 14 } };
        struct synth_plan p = plan_of("diffusion", MIX_Q4_K_M, false);
        uint32_t n[64] = { 0 };
        for (size_t i = 0; i < p.n; i++) n[p.tensors[i].type]++;
        for (size_t i = 0; i < sizeof published / sizeof *published; i++)
            CHECK_MSG(n[published[i].type] == published[i].n, "%u tensors are %s",
                      n[published[i].type], quant_type_name(published[i].type));
        CHECK(p.n == 692);
        /* The file has 16,806,810,336 bytes. What is not data is metadata, which is that of 12B
         * (15,823,488 bytes) but for some KB: the vocabulary is the same. */
        uint64_t rest = 16806810336u - p.n_bytes;
        CHECK_MSG(rest > 15800000 && rest < 15900000, "%llu bytes of metadata",
                  (unsigned long long)rest);
        CHECK(find(&p, "self_cond_gate.weight")->type == QUANT_Q4_K);
        CHECK(find(&p, "self_cond_up.weight")->ne[1] == 2112);
        CHECK(find(&p, "self_cond_down.weight")->type == QUANT_Q5_0);
        CHECK(find(&p, "self_cond_pre_norm.weight")->type == QUANT_F32);
        CHECK(find(&p, "blk.29.enc_layer_output_scale.weight")->n_weights == 1);
        synth_plan_free(&p);
    }
    TEST("the other dialect of diffusion models has one scale a layer and another norm")
    {
        struct synth_plan p = plan_diffusion("diffusion", true, false);
        CHECK(p.n == 692 - 30);
        CHECK(find(&p, "self_cond_norm.weight") && !find(&p, "self_cond_pre_norm.weight"));
        CHECK(!find(&p, "blk.0.enc_layer_output_scale.weight"));
        CHECK(find(&p, "blk.0.layer_output_scale.weight"));
        synth_plan_free(&p);
    }
    TEST("Google's Q4_0 has Q6_K tables and nothing dead on layers that share keys")
    {
        struct synth_plan p = plan_of("e4b", MIX_Q4_0, false);
        CHECK(find(&p, "token_embd.weight")->type == QUANT_Q6_K);
        CHECK(find(&p, "per_layer_token_embd.weight")->type == QUANT_Q6_K);
        check_type(&p, ".ffn_down.weight", QUANT_Q4_0);
        check_type(&p, ".inp_gate.weight", QUANT_Q4_0);
        CHECK(find(&p, "blk.23.attn_k.weight") && !find(&p, "blk.24.attn_k.weight"));
        CHECK(!find(&p, "blk.24.attn_v.weight") && !find(&p, "blk.24.attn_k_norm.weight"));
        synth_plan_free(&p);
    }
    TEST("the order of a file's tensors does not change the recipe")
    {
        const char *names[] = { "blk.10.attn_v.weight", "blk.2.attn_v.weight",
                                "blk.0.attn_v.weight", "blk.11.attn_v.weight" };
        struct mix mix = { .id = MIX_Q4_K_M };
        const uint64_t ne[] = { 256, 256, 1, 1 };
        for (int i = 0; i < 4; i++) mix_add(&mix, str_of(names[i]));
        uint32_t t0 = mix_type(&mix, str_of(names[2]), 2, ne, QUANT_F16);  /* first of four */
        uint32_t t2 = mix_type(&mix, str_of(names[1]), 2, ne, QUANT_F16);  /* second */
        uint32_t t10 = mix_type(&mix, str_of(names[0]), 2, ne, QUANT_F16); /* third */
        uint32_t t11 = mix_type(&mix, str_of(names[3]), 2, ne, QUANT_F16); /* last */
        CHECK(t0 == QUANT_Q4_K && t2 == QUANT_Q4_K && t10 == QUANT_Q6_K && t11 == QUANT_Q6_K);
    }
}

/* ---- files ---- */

static void write_file(const struct synth_plan *p, const char *path)
{
    CHECK_MSG(synth_write(p, path, NULL, NULL, &err) == BZ_OK, "%s", err.text);
}

/* The whole of a small tensor as floats; the caller frees. */
static float *decode(const struct gguf *g, const struct gguf_tensor *t, size_t *n)
{
    const struct quant_format *f = quant_find(t->type);
    *n = (size_t)(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]);
    uint8_t *bytes = mem_alloc((size_t)t->n_bytes, 1);
    float *v = mem_alloc(*n, sizeof *v);
    CHECK(source_read(&g->sources[t->shard], t->offset, bytes, (size_t)t->n_bytes, &err) == BZ_OK);
    f->decode(bytes, v, *n);
    mem_free(bytes);
    return v;
}

static void check_moments(const struct synth_tensor *t, const float *v, size_t n)
{
    double sum = 0, square = 0;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(v[i]);
        sum += v[i];
        square += ((double)v[i] - t->mean) * ((double)v[i] - t->mean);
    }
    CHECK_MSG(finite, "%s has numbers that are not", t->name);
    if (t->is_rope || n < 64) return;
    double mean = sum / (double)n, std = sqrt(square / (double)n);
    /* Blocks share a scale, so the deviation is less sure than n weights suggest. */
    double slack = 0.02 + 4 / sqrt((double)n / 32);
    CHECK_MSG(fabs(std / t->std - 1) < slack, "%s (%s): deviation %g, not %g", t->name,
              quant_type_name(t->type), std, (double)t->std);
    CHECK_MSG(fabs(mean - t->mean) < t->std * (0.005 + 5 / sqrt((double)n)),
              "%s (%s): mean %g, not %g", t->name, quant_type_name(t->type), mean, (double)t->mean);
}

/* No row is the same as the next, and none is constant. */
static void check_rows(const struct gguf_tensor *t, const float *v, size_t n)
{
    size_t cols = (size_t)t->ne[0];
    if (cols < 16) return;
    for (size_t i = 0; i + cols < n; i += cols)
        if (memcmp(v + i, v + i + cols, cols * sizeof *v) == 0) {
            CHECK_MSG(0, "rows of %.*s repeat", STR_ARG(t->name));
            return;
        }
}

static void check_config(const struct config *c, const struct synth_size *s)
{
    CHECK(c->n_layer == s->n_layer && c->n_embd == s->n_embd && c->n_head == s->n_head);
    CHECK(c->n_swa == s->n_swa && c->n_ctx == s->n_ctx && c->n_vocab == s->n_vocab);
    CHECK(c->n_own == s->n_layer - s->n_shared && c->n_ple == s->n_ple);
    CHECK(c->n_expert == s->n_expert && c->n_expert_used == s->n_expert_used);
    CHECK(c->canvas.n_canvas == s->n_canvas && c->canvas.n_ff == (s->n_canvas ? s->n_ff : 0));
    CHECK(c->softcap == 30 && c->eps == 1e-6f && c->rope_base == 1e6f && c->rope_base_swa == 1e4f);
    for (uint32_t il = 0; il < s->n_layer; il++) {
        const struct layer_config *l = &c->layers[il];
        bool swa = synth_is_swa(s, il);
        CHECK(l->swa == swa && l->head_dim == (swa ? s->dim_swa : s->dim_global));
        CHECK(l->n_kv_head == (swa ? s->n_kv_swa : s->n_kv_global));
        CHECK(l->n_ff == (il < c->n_own ? s->n_ff : s->n_ff_shared));
    }
}

static void check_file(const struct synth_plan *p, const char *path)
{
    struct gguf g;
    struct backend be = { 0 };
    struct model m;
    struct tokenizer *tok = NULL;
    if (!check_that(gguf_open_file(&g, path, &err) == BZ_OK, __FILE__, __LINE__, path)) return;
    CHECK(g.n_tensors == p->n);
    for (size_t i = 0; i < p->n; i++) {
        const struct synth_tensor *t = &p->tensors[i];
        const struct gguf_tensor *got = gguf_tensor_find(&g, t->name);
        CHECK_MSG(got && got->type == t->type && got->n_bytes == t->n_bytes, "%s", t->name);
        if (!got) continue;
        size_t n;
        float *v = decode(&g, got, &n);
        check_moments(t, v, n);
        check_rows(got, v, n);
        mem_free(v);
    }
    CHECK(cpu_open(&be, false, 1, &err) == BZ_OK);
    enum bz_status st = model_load(&m, &g, &be, &err);
    CHECK_MSG(st == BZ_OK, "%s: %s", path, err.text);
    if (st == BZ_OK) {
        check_config(&m.config, p->options.size);
        model_free(&m, &be);
    }
    CHECK_MSG(tokenizer_open(&tok, &g, &err) == BZ_OK, "%s", err.text);
    tokenizer_close(tok);
    cpu_close(&be);
    gguf_close(&g);
}

static void test_files(void)
{
    TEST("every tiny size in every mix opens, loads, and has the weights that were asked for")
    {
        for (size_t i = 0; synth_size_at(i); i++) {
            const char *name = synth_size_at(i)->name;
            if (strncmp(name, "tiny", 4) != 0) continue;
            for (int mix = 0; mix < N_MIX; mix++)
                for (int ollama = 0; ollama < 2; ollama++) {
                    if (ollama && mix != MIX_Q4_K_M && mix != MIX_F16) continue;
                    if (ollama && !synth_size_at(i)->tower) continue;
                    struct synth_plan p = plan_of(name, (enum mix_id)mix, ollama);
                    write_file(&p, DIR "m.gguf");
                    check_file(&p, DIR "m.gguf");
                    synth_plan_free(&p);
                }
        }
    }
    TEST("the tiny mixtures contain both fallback formats, and the others K-quants")
    {
        struct synth_plan p = plan_of("tiny-moe", MIX_Q4_K_M, false);
        bool seen[64] = { 0 };
        for (size_t i = 0; i < p.n; i++) seen[p.tensors[i].type] = true;
        CHECK(seen[QUANT_Q5_0] && seen[QUANT_Q8_0] && seen[QUANT_Q4_K] && seen[QUANT_Q6_K]);
        synth_plan_free(&p);
        p = plan_of("tiny-dense", MIX_Q4_K_M, false);
        memset(seen, 0, sizeof seen);
        for (size_t i = 0; i < p.n; i++) seen[p.tensors[i].type] = true;
        CHECK(!seen[QUANT_Q5_0] && !seen[QUANT_Q8_0] && seen[QUANT_Q4_K] && seen[QUANT_Q6_K]);
        synth_plan_free(&p);
    }
    TEST("the single-file layout says what Ollama's converter says")
    {
        struct synth_plan p = plan_of("tiny-e2b", MIX_Q4_K_M, true);
        struct gguf g;
        struct str model = { 0 };
        bool add_bos = true;
        uint64_t n_blocks = 0;
        write_file(&p, DIR "m.gguf");
        CHECK(gguf_open_file(&g, DIR "m.gguf", &err) == BZ_OK);
        CHECK(gguf_get_str(&g, "tokenizer.ggml.model", &model) && str_is(model, "llama"));
        CHECK(gguf_get_bool(&g, "tokenizer.ggml.add_bos_token", &add_bos) && !add_bos);
        CHECK(gguf_find(&g, "tokenizer.ggml.eos_token_ids")->n == 3);
        CHECK(gguf_get_u64(&g, "gemma4.audio.block_count", &n_blocks) && n_blocks == 2);
        CHECK(!gguf_find(&g, "tokenizer.chat_template"));
        CHECK(gguf_tensor_find(&g, "v.blk.1.ffn_down.output_max"));
        CHECK(gguf_tensor_find(&g, "mm.a.fc.bias"));
        CHECK(gguf_tensor_find(&g, "per_layer_token_embd.weight")->type == QUANT_BF16);
        gguf_close(&g);
        synth_plan_free(&p);
    }
    TEST("12B and the diffusion model have no single-file layout")
    {
        struct synth_plan p;
        struct synth_options o = { .size = synth_size_find("12b"), .ollama = true };
        CHECK(synth_plan_make(&p, &o, &err) == BZ_ERR_UNSUPPORTED);
        o.size = synth_size_find("diffusion");
        CHECK(synth_plan_make(&p, &o, &err) == BZ_ERR_UNSUPPORTED);
    }
    TEST("both dialects of a diffusion model load, with and without the keys that have defaults")
    {
        for (int i = 0; i < 4; i++) {
            struct synth_plan p = plan_diffusion("tiny-diffusion", i & 1, i & 2);
            struct gguf g;
            struct str arch = { 0 };
            bool causal = true;
            write_file(&p, DIR "m.gguf");
            check_file(&p, DIR "m.gguf");
            CHECK(gguf_open_file(&g, DIR "m.gguf", &err) == BZ_OK);
            CHECK(gguf_get_str(&g, "general.architecture", &arch));
            CHECK(str_is(arch, "diffusion-gemma") && !gguf_find(&g, "gemma4.block_count"));
            CHECK(gguf_get_bool(&g, "diffusion-gemma.attention.causal", &causal) && !causal);
            CHECK(gguf_find(&g, "diffusion.canvas_length"));
            CHECK(!gguf_find(&g, "diffusion.eb_max_steps") == (i >= 2));
            CHECK(!gguf_find(&g, "diffusion.shift_logits") == (i >= 2));
            CHECK(!gguf_find(&g, "tokenizer.ggml.suppress_tokens"));
            gguf_close(&g);
            synth_plan_free(&p);
        }
    }
    TEST("a hollow diffusion model loads, and its vectors are the full ones")
    {
        struct synth_plan p = plan_diffusion("tiny-diffusion", false, false);
        struct gguf g;
        size_t n;
        p.options.hollow = true;
        write_file(&p, DIR "m.gguf");
        CHECK(gguf_open_file(&g, DIR "m.gguf", &err) == BZ_OK);
        const struct gguf_tensor *t = gguf_tensor_find(&g, "self_cond_gate.weight");
        float *v = decode(&g, t, &n), sum = 0;
        for (size_t i = 0; i < n; i++) sum += fabsf(v[i]);
        CHECK(sum == 0);
        mem_free(v);
        t = gguf_tensor_find(&g, "blk.3.enc_layer_output_scale.weight");
        v = decode(&g, t, &n);
        CHECK(n == 1 && *v > 0.4f && *v < 0.7f); /* 0.52, deviation 0.03 */
        mem_free(v);
        gguf_close(&g);
        synth_plan_free(&p);
    }
}

/* ---- weights ---- */

static void test_weights(void)
{
    static uint8_t a[4 * SYNTH_CHUNK], b[4 * SYNTH_CHUNK];
    TEST("a chunk depends on seed, name and number, and on nothing else")
    {
        for (int mix = 0; mix < N_MIX; mix++) {
            struct synth_plan p = plan_of("e2b", (enum mix_id)mix, false);
            const struct synth_tensor *t = find(&p, "blk.3.ffn_gate.weight");
            struct synth_tensor other = *t;
            other.name[4] = '4';
            size_t n = synth_fill(t, 1, 2, a);
            CHECK(n > 0 && synth_fill(t, 1, 3, b) == n && memcmp(a, b, n) != 0);
            CHECK(synth_fill(t, 2, 2, b) == n && memcmp(a, b, n) != 0);
            CHECK(synth_fill(&other, 1, 2, b) == n && memcmp(a, b, n) != 0);
            CHECK(synth_fill(t, 1, 2, b) == n && memcmp(a, b, n) == 0);
            synth_plan_free(&p);
        }
    }
    TEST("full-size tensors have the deviation that was asked for, in every format")
    {
        float *v = mem_alloc(SYNTH_CHUNK, sizeof *v);
        for (int mix = 0; mix < N_MIX; mix++) {
            struct synth_plan p = plan_of("31b", (enum mix_id)mix, false);
            for (size_t i = 0; i < p.n && i < 40; i++) {
                const struct synth_tensor *t = &p.tensors[i];
                const struct quant_format *f = quant_find(t->type);
                size_t n = synth_fill(t, 5, 0, a) / f->bytes * f->block;
                f->decode(a, v, n);
                check_moments(t, v, n);
            }
            synth_plan_free(&p);
        }
        mem_free(v);
    }
    TEST("the chunks of a tensor are its bytes, to the last")
    {
        struct synth_tensor t = { .name = "x.weight", .type = QUANT_Q4_0, .std = 1 };
        for (t.n_weights = SYNTH_CHUNK - 32; t.n_weights <= SYNTH_CHUNK + 32; t.n_weights += 32) {
            size_t n = 0, m;
            for (uint64_t i = 0; (m = synth_fill(&t, 1, i, a)); i++) n += m;
            CHECK(n == t.n_weights / 32 * 18);
        }
    }
    TEST("Q8_0 has no -128, which quantisers never give")
    {
        struct synth_tensor t = { .name = "x", .type = QUANT_Q8_0, .std = 1, .n_weights = 1 << 20 };
        size_t n = synth_fill(&t, 1, 0, a), n_found = 0;
        for (size_t i = 0; i < n; i++) n_found += i % 34 >= 2 && a[i] == 0x80;
        CHECK(n_found == 0);
    }
}

static struct buf file_bytes(const char *path)
{
    struct buf b = { 0 };
    struct source s;
    CHECK(source_open_file(&s, path, &err) == BZ_OK);
    CHECK(source_read_all(&s, 1 << 28, &b, &err) == BZ_OK);
    source_close(&s);
    return b;
}

static bool same_file(const char *path_a, const char *path_b)
{
    struct buf a = file_bytes(path_a), b = file_bytes(path_b);
    bool same = a.n == b.n && memcmp(a.data, b.data, a.n) == 0;
    buf_free(&a);
    buf_free(&b);
    return same;
}

static void test_seeds(void)
{
    TEST("the same seed gives the same file, another seed another in every random tensor")
    {
        struct synth_plan p = plan_of("tiny-moe", MIX_Q4_K_M, false);
        struct gguf g, h;
        write_file(&p, DIR "a.gguf");
        write_file(&p, DIR "b.gguf");
        CHECK(same_file(DIR "a.gguf", DIR "b.gguf"));
        p.options.seed++;
        write_file(&p, DIR "b.gguf");
        CHECK(gguf_open_file(&g, DIR "a.gguf", &err) == BZ_OK);
        CHECK(gguf_open_file(&h, DIR "b.gguf", &err) == BZ_OK);
        for (size_t i = 0; i < p.n; i++) {
            const struct synth_tensor *t = &p.tensors[i];
            size_t n;
            float *x = decode(&g, gguf_tensor_find(&g, t->name), &n);
            float *y = decode(&h, gguf_tensor_find(&h, t->name), &n);
            bool same = memcmp(x, y, n * sizeof *x) == 0;
            CHECK_MSG(same == t->is_rope, "%s", t->name);
            mem_free(x);
            mem_free(y);
        }
        gguf_close(&g);
        gguf_close(&h);
        synth_plan_free(&p);
    }
}

/* ---- quantize ---- */

static void quantize(const char *from, const char *to, enum mix_id mix, unsigned n_threads)
{
    struct gguf g;
    struct pool *pool = NULL;
    CHECK_MSG(gguf_open_file(&g, from, &err) == BZ_OK, "%s", err.text);
    CHECK(pool_open(&pool, n_threads));
    CHECK_MSG(quantize_file(&g, to, mix, pool, NULL, NULL, &err) == BZ_OK, "%s", err.text);
    pool_close(pool);
    gguf_close(&g);
}

/* Same keys and values in the same order, but for the file type, which moves to the end. */
static void check_metadata(const struct gguf *a, const struct gguf *b)
{
    CHECK(a->n_kv == b->n_kv);
    for (uint64_t i = 0; i < a->n_kv; i++) {
        const struct gguf_kv *x = &a->kvs[i];
        if (str_is(x->key, "general.file_type")) continue;
        char key[96];
        snprintf(key, sizeof key, "%.*s", STR_ARG(x->key));
        const struct gguf_kv *y = gguf_find(b, key);
        CHECK_MSG(y && y->type == x->type && y->elem == x->elem && y->n == x->n &&
                      y->n_bytes == x->n_bytes && memcmp(y->value, x->value, x->n_bytes) == 0,
                  "%s", key);
    }
}

/* Root of the mean squared error of every tensor, relative to its size: at most `limit` for those
 * in a coarser format, nothing for the others. */
static void check_error(const char *exact, const char *coarse, double limit)
{
    struct gguf a, b;
    CHECK(gguf_open_file(&a, exact, &err) == BZ_OK);
    CHECK(gguf_open_file(&b, coarse, &err) == BZ_OK);
    check_metadata(&a, &b);
    CHECK(a.n_tensors == b.n_tensors);
    for (uint64_t i = 0; i < a.n_tensors; i++) {
        double error = 0, size = 0;
        size_t n;
        CHECK(str_eq(a.tensors[i].name, b.tensors[i].name));
        float *x = decode(&a, &a.tensors[i], &n), *y = decode(&b, &b.tensors[i], &n);
        for (size_t k = 0; k < n; k++) {
            error += ((double)x[k] - y[k]) * ((double)x[k] - y[k]);
            size += (double)x[k] * x[k];
        }
        double relative = sqrt(error / size);
        bool coarser = b.tensors[i].type != a.tensors[i].type;
        CHECK_MSG(coarser ? relative < limit && relative > 0 : relative == 0,
                  "%.*s as %s: error %g", STR_ARG(a.tensors[i].name),
                  quant_type_name(b.tensors[i].type), relative);
        mem_free(x);
        mem_free(y);
    }
    gguf_close(&a);
    gguf_close(&b);
}

static void check_recipe(const struct synth_plan *p, const char *path)
{
    struct gguf g;
    uint64_t file_type = 99;
    CHECK(gguf_open_file(&g, path, &err) == BZ_OK);
    CHECK(gguf_get_u64(&g, "general.file_type", &file_type));
    CHECK(file_type == mix_file_type(p->options.mix));
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", STR_ARG(g.tensors[i].name));
        const struct synth_tensor *t = find(p, name);
        CHECK_MSG(!t || t->type == g.tensors[i].type, "%s is %s", name,
                  quant_type_name(g.tensors[i].type));
    }
    gguf_close(&g);
}

static void test_quantize(void)
{
    struct synth_plan p = plan_of("tiny-moe", MIX_F32, false);
    write_file(&p, DIR "f32.gguf");
    synth_plan_free(&p);
    TEST("quantising to Q8_0 keeps the metadata and nearly all of the weights")
    {
        quantize(DIR "f32.gguf", DIR "q8.gguf", MIX_Q8_0, 1);
        check_error(DIR "f32.gguf", DIR "q8.gguf", 0.006);
    }
    TEST("every mix gives the recipe's types and an error that fits them")
    {
        static const double limits[N_MIX] = {
            [MIX_F16] = 4e-4,    [MIX_BF16] = 3e-3,   [MIX_Q4_0] = 0.1,   [MIX_Q8_0] = 0.006,
            [MIX_Q4_K_M] = 0.08, [MIX_Q5_K_M] = 0.04, [MIX_Q6_K] = 0.025,
        };
        for (int mix = MIX_F32 + 1; mix < N_MIX; mix++) {
            p = plan_of("tiny-moe", (enum mix_id)mix, false);
            quantize(DIR "f32.gguf", DIR "q.gguf", (enum mix_id)mix, 2);
            check_recipe(&p, DIR "q.gguf");
            check_error(DIR "f32.gguf", DIR "q.gguf", limits[mix]);
            synth_plan_free(&p);
        }
    }
    TEST("a diffusion model is quantised by the same recipe")
    {
        p = plan_of("tiny-diffusion", MIX_F32, false);
        write_file(&p, DIR "a.gguf");
        synth_plan_free(&p);
        p = plan_diffusion("tiny-diffusion", false, false);
        quantize(DIR "a.gguf", DIR "b.gguf", MIX_Q4_K_M, 2);
        check_recipe(&p, DIR "b.gguf");
        check_error(DIR "a.gguf", DIR "b.gguf", 0.08); /* as above */
        synth_plan_free(&p);
    }
    TEST("the number of threads does not show in the result")
    {
        quantize(DIR "f32.gguf", DIR "a.gguf", MIX_Q4_K_M, 1);
        quantize(DIR "f32.gguf", DIR "b.gguf", MIX_Q4_K_M, 3);
        CHECK(same_file(DIR "a.gguf", DIR "b.gguf"));
    }
    TEST("a single file keeps its towers as they are")
    {
        p = plan_of("tiny-e2b", MIX_Q4_K_M, true);
        write_file(&p, DIR "a.gguf");
        quantize(DIR "a.gguf", DIR "b.gguf", MIX_F32, 2);
        struct gguf g, h;
        CHECK(gguf_open_file(&g, DIR "a.gguf", &err) == BZ_OK);
        CHECK(gguf_open_file(&h, DIR "b.gguf", &err) == BZ_OK);
        for (uint64_t i = 0; i < g.n_tensors; i++) {
            struct str name = g.tensors[i].name;
            bool tower = name.p[1] == '.' || str_starts(name, "mm.");
            size_t n;
            CHECK(h.tensors[i].type == (tower ? g.tensors[i].type : QUANT_F32));
            float *x = decode(&g, &g.tensors[i], &n), *y = decode(&h, &h.tensors[i], &n);
            CHECK(memcmp(x, y, n * sizeof *x) == 0); /* F32 holds every decoded weight exactly */
            mem_free(x);
            mem_free(y);
        }
        gguf_close(&g);
        gguf_close(&h);
        synth_plan_free(&p);
    }
    TEST("a format that Bezel does not read is refused by name and leaves no file")
    {
        struct gguf_writer *w = NULL;
        struct gguf g;
        const uint64_t ne[] = { 256, 2 };
        uint8_t zeros[2 * 66] = { 0 };
        CHECK(gguf_writer_open(&w, DIR "a.gguf", &err) == BZ_OK);
        gguf_put_tensor(w, "blk.0.attn_q.weight", 16, 2, ne); /* IQ2_XXS */
        gguf_put_data(w, zeros, sizeof zeros);
        CHECK_MSG(gguf_writer_finish(w, &err) == BZ_OK, "%s", err.text);
        CHECK(gguf_open_file(&g, DIR "a.gguf", &err) == BZ_OK);
        remove(DIR "c.gguf");
        CHECK(quantize_file(&g, DIR "c.gguf", MIX_Q8_0, NULL, NULL, NULL, &err) ==
              BZ_ERR_UNSUPPORTED);
        CHECK(strstr(err.text, "IQ2_XXS") && strstr(err.text, "blk.0.attn_q.weight"));
        CHECK(access(DIR "c.gguf", F_OK) != 0 && access(DIR "c.gguf.part", F_OK) != 0);
        gguf_close(&g);
    }
}

/* ---- commands ---- */

/* Run a command with its output thrown away. */
static int run_quietly(int (*cmd)(int, char **), const char *words)
{
    char text[256], *argv[16];
    int argc = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *z = strtok(text, " "); z && argc < 16; z = strtok(NULL, " ")) argv[argc++] = z;
    fflush(stdout);
    fflush(stderr);
    int out = dup(1), e = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    int code = cmd(argc, argv);
    fflush(stdout);
    dup2(out, 1);
    dup2(e, 2);
    close(null);
    close(out);
    close(e);
    return code;
}

static void test_commands(void)
{
    TEST("synth writes a file once, and again only with --force")
    {
        remove(DIR "c.gguf");
        CHECK(run_quietly(cmd_synth, "synth tiny-e4b " DIR "c.gguf --vocab 700 --ctx 999") == 0);
        CHECK(run_quietly(cmd_synth, "synth tiny-e4b " DIR "c.gguf") == 2);
        CHECK(run_quietly(cmd_synth, "synth --force tiny-e4b " DIR "c.gguf --seed 3") == 0);
    }
    TEST("quantize reads what synth writes")
    {
        remove(DIR "d.gguf");
        CHECK(run_quietly(cmd_quantize, "quantize " DIR "c.gguf " DIR "d.gguf q8_0") == 0);
        CHECK(run_quietly(cmd_quantize, "quantize " DIR "c.gguf " DIR "d.gguf q8_0") == 2);
        CHECK(run_quietly(cmd_quantize, "quantize " DIR "none.gguf " DIR "e.gguf q8_0") == 1);
    }
    TEST("wrong usage is told apart from failure, and help from both")
    {
        CHECK(run_quietly(cmd_synth, "synth") == 2);
        CHECK(run_quietly(cmd_synth, "synth 7b " DIR "x.gguf") == 2);
        CHECK(run_quietly(cmd_synth, "synth e2b " DIR "x.gguf --quant q9") == 2);
        CHECK(run_quietly(cmd_synth, "synth e2b " DIR "x.gguf --layout none") == 2);
        CHECK(run_quietly(cmd_synth, "synth e2b " DIR "x.gguf --vocab 3") == 2);
        CHECK(run_quietly(cmd_synth, "synth 12b " DIR "x.gguf --layout ollama") == 1);
        CHECK(run_quietly(cmd_synth, "synth diffusion " DIR "x.gguf --layout ollama") == 1);
        CHECK(run_quietly(cmd_synth, "synth diffusion " DIR "x.gguf --dialect none") == 2);
        CHECK(run_quietly(cmd_synth, "synth e2b " DIR "x.gguf --dialect one-scale") == 2);
        CHECK(run_quietly(cmd_synth, "synth e2b " DIR "x.gguf --few-keys") == 2);
        CHECK(run_quietly(cmd_synth, "synth tiny-e2b /nowhere/x.gguf") == 1);
        CHECK(run_quietly(cmd_synth, "synth --help") == 0);
        CHECK(run_quietly(cmd_quantize, "quantize a b c") == 2);
        CHECK(run_quietly(cmd_quantize, "quantize --help") == 0);
        CHECK(access(DIR "x.gguf", F_OK) != 0);
    }
    TEST("no memory is lost when any allocation fails")
    {
        struct synth_plan p = plan_of("tiny-moe-split", MIX_Q4_K_M, false);
        int64_t live = mem_live();
        enum bz_status st = BZ_ERR_MEMORY;
        int k = 1;
        for (; st != BZ_OK && k < 2000; k += k < 40 ? 1 : 17) {
            mem_fail_at((uint64_t)k);
            st = synth_write(&p, DIR "c.gguf", NULL, NULL, &err);
            CHECK(mem_live() == live);
            CHECK(st == BZ_OK || st == BZ_ERR_MEMORY);
        }
        mem_fail_at(0);
        CHECK(st == BZ_OK && k > 5);
        synth_plan_free(&p);
    }
}

int main(void)
{
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    test_published();
    test_files();
    test_weights();
    test_seeds();
    test_quantize();
    test_commands();
    CHECK(mem_live() == 0);
    return check_done();
}
