/* `bezel inspect`: what it says about files of every kind, good and bad. */
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/mem.h"
#include "check.h"
#include "cli/inspect.h"
#include "cli/synth.h"
#include "io/gguf_write.h"

#define DIR "build/tmp/inspect_"

static struct bz_err err;

static void make_with(const struct synth_options *o, const char *path)
{
    struct synth_plan p = { 0 };
    CHECK(synth_plan_make(&p, o, &err) == BZ_OK);
    CHECK_MSG(synth_write(&p, path, NULL, NULL, &err) == BZ_OK, "%s", err.text);
    synth_plan_free(&p);
}

static void make_model(const char *size, enum mix_id mix, bool ollama, const char *path)
{
    make_with(
        &(struct synth_options) { .size = synth_size_find(size), .mix = mix, .ollama = ollama },
        path);
}

/* What a copy of a file does not have as the file has it. */
struct change {
    const char *tensor, *other; /* this tensor has another name; other NULL: it is left out */
    const char *key;            /* this key is left out */
    char type;                  /* and written anew: f, i, b, s; 0: not so */
    double v;
};

static void put_changed(struct gguf_writer *w, const struct change *c)
{
    const int32_t number = c->type == 'i' ? (int32_t)c->v : 0;
    switch (c->type) {
    case 'f': gguf_put_f32(w, c->key, (float)c->v); break;
    case 'i': gguf_put_array(w, c->key, GGUF_I32, &number, 1); break;
    case 'b': gguf_put_bool(w, c->key, c->v != 0); break;
    case 's': gguf_put_str(w, c->key, str_of("many")); break;
    }
}

static void copy_changed(const char *from, const char *to, const struct change *c)
{
    struct gguf g;
    struct gguf_writer *w = NULL;
    CHECK(gguf_open_file(&g, from, &err) == BZ_OK);
    CHECK(gguf_writer_open(&w, to, &err) == BZ_OK);
    for (uint64_t i = 0; i < g.n_kv; i++)
        if (!c->key || !str_is(g.kvs[i].key, c->key)) gguf_put_kv(w, &g.kvs[i]);
    put_changed(w, c);
    for (int data = 0; data < 2; data++)
        for (uint64_t i = 0; i < g.n_tensors; i++) {
            const struct gguf_tensor *t = &g.tensors[i];
            bool it = c->tensor && str_is(t->name, c->tensor);
            if (it && !c->other) continue;
            char z[64];
            snprintf(z, sizeof z, "%.*s", STR_ARG(t->name));
            if (!data) gguf_put_tensor(w, it ? c->other : z, t->type, t->n_dims, t->ne);
            else
                gguf_put_data(w, source_map(&g.sources[0], t->offset, t->n_bytes),
                              (size_t)t->n_bytes);
        }
    CHECK_MSG(gguf_writer_finish(w, &err) == BZ_OK, "%s", err.text);
    gguf_close(&g);
}

/* A copy of a file with one tensor left out or renamed (to NULL: left out). */
static void copy_without(const char *from, const char *to, const char *name, const char *other)
{
    copy_changed(from, to, &(struct change) { .tensor = name, .other = other });
}

static struct inspect look_at(const char *path)
{
    struct inspect x = { 0 };
    CHECK_MSG(inspect_open(&x, path, NULL, &err) == BZ_OK, "%s", err.text);
    return x;
}

/* The text for people, which must contain `part`. */
static void check_text(const struct inspect *x, const char *part)
{
    struct buf b = { 0 };
    inspect_put_text(&b, x, (struct inspect_wish) { .keys = true, .tensors = true });
    CHECK_MSG(b.data && strstr(b.data, part), "no \"%s\" in\n%s", part, b.data ? b.data : "");
    buf_free(&b);
}

static const struct json *json_of(const struct inspect *x, struct arena *a, struct buf *b)
{
    struct json *j = NULL;
    inspect_put_json(b, x, (struct inspect_wish) { .keys = true, .tensors = true });
    CHECK_MSG(json_parse(&j, buf_str(b), a, &err) == BZ_OK, "%s", err.text);
    return j;
}

static void test_models(void)
{
    TEST("a split text model is described and runs")
    {
        make_model("tiny-e2b", MIX_Q4_K_M, false, DIR "a.gguf");
        struct inspect x = look_at(DIR "a.gguf");
        struct inspect_pattern pattern;
        CHECK(x.kind == INSPECT_TEXT && x.runs && x.has_config);
        CHECK(strcmp(x.file_type, "Q4_K_M") == 0);
        CHECK(x.roles[ROLE_PLE].n_params == 1024 * 8 * 256);
        CHECK(x.roles[ROLE_ATTENTION].n_tensors == 8 * 4 && x.roles[ROLE_FFN].n_tensors == 8 * 3);
        CHECK(x.roles[ROLE_UNKNOWN].n_tensors == 0 && x.roles[ROLE_VISION].n_tensors == 0);
        /* Four owning layers: three rings and one global, F32, two heads of 64 and 128. */
        CHECK(x.kv_context[0] == 4096 && x.kv_context[1] == 0 && x.kv_bytes[0] > 4096 * 128 * 8);
        inspect_layer_pattern(&pattern, &x.config);
        CHECK_STR(pattern.unit, "SSSF");
        CHECK(pattern.times == 2);
        check_text(&x, "layers 4-7 read those of layer 2 (sliding) or 3 (global)");
        check_text(&x, "256 (layers 0-3), 512 (layers 4-7) wide");
        check_text(&x, "runs             yes");
        inspect_close(&x);
    }
    TEST("the sums by role and by format are each the whole")
    {
        struct inspect x = look_at(DIR "a.gguf");
        struct inspect_sum roles = { 0 }, types = { 0 };
        for (int i = 0; i < N_ROLE; i++) roles.n_bytes += x.roles[i].n_bytes;
        for (int i = 0; i < INSPECT_N_TYPES; i++) types.n_bytes += x.types[i].n_bytes;
        CHECK(roles.n_bytes == x.all.n_bytes && types.n_bytes == x.all.n_bytes);
        inspect_close(&x);
    }
    TEST("experts are counted, also under their old names")
    {
        make_model("tiny-moe-split", MIX_Q8_0, false, DIR "b.gguf");
        struct inspect x = look_at(DIR "b.gguf");
        CHECK(x.runs && x.roles[ROLE_EXPERTS].n_tensors == 4 * 6);
        CHECK(x.roles[ROLE_UNKNOWN].n_tensors == 0);
        check_text(&x, "12, 3 used, 160 wide");
        inspect_close(&x);
    }
    TEST("a single file's towers are recognised and do not stop it")
    {
        make_model("tiny-e4b", MIX_Q4_0, true, DIR "b.gguf");
        struct inspect x = look_at(DIR "b.gguf");
        CHECK(x.kind == INSPECT_SINGLE && x.runs);
        CHECK(x.roles[ROLE_VISION].n_tensors == 2 + 2 * 41 + 1);
        CHECK(x.roles[ROLE_AUDIO].n_tensors == 5 + 2 * 62 + 3);
        CHECK(x.roles[ROLE_UNKNOWN].n_tensors == 0);
        inspect_close(&x);
    }
}

static void test_reasons(void)
{
    TEST("a missing tensor is the reason that is given")
    {
        copy_without(DIR "a.gguf", DIR "b.gguf", "blk.2.attn_k.weight", NULL);
        struct inspect x = look_at(DIR "b.gguf");
        CHECK(!x.runs && strstr(x.why.text, "blk.2.attn_k.weight"));
        check_text(&x, "no: ");
        inspect_close(&x);
    }
    TEST("a key of a layer that shares keys may be missing")
    {
        copy_without(DIR "a.gguf", DIR "b.gguf", "blk.5.attn_k.weight", NULL);
        struct inspect x = look_at(DIR "b.gguf");
        CHECK(x.runs);
        inspect_close(&x);
    }
    TEST("an unknown tensor is listed as such")
    {
        copy_without(DIR "a.gguf", DIR "b.gguf", "blk.5.attn_k.weight", "blk.5.surprise.weight");
        struct inspect x = look_at(DIR "b.gguf");
        CHECK(x.roles[ROLE_UNKNOWN].n_tensors == 1);
        check_text(&x, "unknown tensors\n  blk.5.surprise.weight");
        inspect_close(&x);
        CHECK(inspect_role_of(str_of("blk.attn_q.weight")) == ROLE_UNKNOWN);
        CHECK(inspect_role_of(str_of("blk.1.")) == ROLE_UNKNOWN);
        CHECK(inspect_role_of(str_of("")) == ROLE_UNKNOWN);
    }
    TEST("vocabularies, towers and other architectures are told apart")
    {
        static const struct {
            const char *arch, *type;
            bool tokens;
            enum inspect_kind kind;
        } cases[] = {
            { "gemma4", "model", true, INSPECT_VOCABULARY },
            { "clip", "mmproj", false, INSPECT_MMPROJ },
            { "llama", "model", false, INSPECT_OTHER },
            { NULL, NULL, false, INSPECT_OTHER },
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct gguf_writer *w = NULL;
            struct str token = str_of("x");
            CHECK(gguf_writer_open(&w, DIR "b.gguf", &err) == BZ_OK);
            if (cases[i].arch) gguf_put_str(w, "general.architecture", str_of(cases[i].arch));
            if (cases[i].type) gguf_put_str(w, "general.type", str_of(cases[i].type));
            if (cases[i].tokens) gguf_put_strs(w, "tokenizer.ggml.tokens", &token, 1);
            CHECK(gguf_writer_finish(w, &err) == BZ_OK);
            struct inspect x = look_at(DIR "b.gguf");
            CHECK(x.kind == cases[i].kind && !x.runs && x.why.text[0]);
            check_text(&x, "no: ");
            inspect_close(&x);
        }
    }
    TEST("what is not there, or no model, is an error")
    {
        struct inspect x;
        CHECK(inspect_open(&x, DIR "none.gguf", NULL, &err) == BZ_ERR_NOT_FOUND);
        CHECK(inspect_open(&x, "Makefile", NULL, &err) == BZ_ERR_FORMAT);
        CHECK(inspect_open(&x, "no-such-model:tag", "build/tmp", &err) != BZ_OK);
    }
}

static void check_diffusion(const char *path, bool one_scale, bool few_keys)
{
    struct inspect x = look_at(path);
    struct arena a = { 0 };
    struct buf b = { 0 };
    const char *mark = few_keys ? " (default)" : "";
    char text[160];
    CHECK_MSG(x.kind == INSPECT_DIFFUSION && x.runs, "%s", x.why.text);
    CHECK(x.roles[ROLE_SELF_COND].n_tensors == 3 && x.roles[ROLE_UNKNOWN].n_tensors == 0);
    CHECK(x.n_encoder_scales == (one_scale ? 0 : 6));
    CHECK(x.bytes_a_step == x.all.n_bytes && x.bytes_a_token < x.bytes_a_step);
    check_text(&x, "kind             Gemma 4 diffusion model: it denoises a canvas of tokens\n");
    check_text(&x, "canvas           48 tokens\n");
    snprintf(text, sizeof text, "  steps          48 at most%s\n", mark);
    check_text(&x, text);
    snprintf(text, sizeof text, "  temperature    0.8%s to 0.4%s\n", mark, mark);
    check_text(&x, text);
    snprintf(text, sizeof text, "add up to at most 0.1 nats%s\n", mark);
    check_text(&x, text);
    snprintf(text, sizeof text,
             "after 1 step without a change%s, at a mean entropy below 0.005 "
             "nats%s\n",
             mark, mark);
    check_text(&x, text);
    check_text(&x, "runs             yes, as text; a step reads up to ");

    const struct json *j = json_of(&x, &a, &b), *canvas = json_get(j, "canvas");
    CHECK(str_is(json_get_str(j, "kind"), "diffusion"));
    CHECK(json_get(canvas, "length")->integer == 48 && json_get(canvas, "steps")->integer == 48);
    CHECK(json_get(canvas, "t_max")->number == 0.8 && json_get(canvas, "t_min")->number == 0.4);
    CHECK(json_get(canvas, "entropy_bound")->number == 0.1);
    CHECK(json_get(canvas, "stability")->integer == 1);
    CHECK(json_get(canvas, "confidence")->number == 0.005);
    CHECK(json_get(canvas, "n_ff")->integer == 160);
    CHECK(json_get(canvas, "encoder_scales")->integer == (one_scale ? 0 : 6));
    CHECK(json_get(canvas, "defaults")->n == (few_keys ? 6u : 0u));
    CHECK((uint64_t)json_get(j, "bytes_a_step")->integer == x.bytes_a_step);
    buf_free(&b);
    arena_free(&a);
    inspect_close(&x);
}

/* Of a copy of the diffusion model with this change: the reason why it does not run. */
static void check_reason(const struct change *c, const char *reason)
{
    copy_changed(DIR "d.gguf", DIR "b.gguf", c);
    struct inspect x = look_at(DIR "b.gguf");
    CHECK_MSG(!x.runs && strstr(x.why.text, reason), "%s%s: \"%s\" and not \"%s\"",
              c->key ? c->key : "", c->tensor ? c->tensor : "", x.why.text, reason);
    check_text(&x, "runs             no: ");
    inspect_close(&x);
}

static void test_diffusion(void)
{
    struct synth_options o = { .size = synth_size_find("tiny-diffusion"), .mix = MIX_Q4_K_M };
    TEST("a diffusion model says its canvas and which of that are defaults, in both dialects")
    {
        for (int i = 3; i >= 0; i--) {
            o.one_scale = i & 1;
            o.few_keys = i & 2;
            make_with(&o, DIR "d.gguf");
            check_diffusion(DIR "d.gguf", o.one_scale, o.few_keys);
        }
    }
    TEST("what the file says of its canvas is not a default")
    {
        static const struct {
            struct change change;
            const char *text;
        } cases[] = {
            { { .key = KEY_CANVAS_LENGTH, .type = 'i', .v = 33 }, "canvas           33 tokens\n" },
            { { .key = KEY_CANVAS_LENGTH }, "canvas           256 tokens (default)\n" },
            { { .key = KEY_CANVAS_STEPS, .type = 'i', .v = 7 }, "  steps          7 at most\n" },
            { { .key = KEY_CANVAS_T_MAX, .type = 'f', .v = 1.5 }, "temperature    1.5 to 0.4\n" },
            { { .key = KEY_CANVAS_T_MIN }, "temperature    0.8 to 0.4 (default)\n" },
            { { .key = KEY_CANVAS_BOUND, .type = 'f', .v = 0 }, "at most 0 nats\n" },
            { { .key = KEY_CANVAS_STABILITY, .type = 'i', .v = 2 }, "after 2 steps without a" },
            { { .key = KEY_CANVAS_CONFIDENCE, .type = 'f', .v = 0.5 }, "below 0.5 nats\n" },
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            copy_changed(DIR "d.gguf", DIR "b.gguf", &cases[i].change);
            struct inspect x = look_at(DIR "b.gguf");
            CHECK_MSG(x.runs, "%s", x.why.text);
            check_text(&x, cases[i].text);
            inspect_close(&x);
        }
    }
    TEST("each tensor that a canvas needs is named where it is missing")
    {
        static const char *const needed[] = {
            "self_cond_pre_norm.weight",   "self_cond_gate.weight", "self_cond_up.weight",
            "self_cond_down.weight",       "output_norm.weight",    "blk.5.ffn_norm.weight",
            "blk.0.pre_ffw_norm_2.weight",
        };
        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
            char reason[64];
            snprintf(reason, sizeof reason, "tensor %s is missing", needed[i]);
            check_reason(&(struct change) { .tensor = needed[i] }, reason);
        }
    }
    TEST("a scale for the encoder pass may be missing in any layer")
    {
        copy_without(DIR "d.gguf", DIR "b.gguf", "blk.2.enc_layer_output_scale.weight", NULL);
        struct inspect x = look_at(DIR "b.gguf");
        CHECK(x.runs && x.n_encoder_scales == 5);
        inspect_close(&x);
    }
    TEST("metadata that no canvas can have is one sentence that names the key")
    {
        static const struct {
            struct change change;
            const char *reason;
        } cases[] = {
            { { .key = KEY_CANVAS_LENGTH, .type = 'i', .v = 0 },
              "diffusion.canvas_length is 0; it must be between 1 and 4096" },
            { { .key = KEY_CANVAS_LENGTH, .type = 'i', .v = 4097 },
              "diffusion.canvas_length is 4097; it must be between 1 and 4096" },
            { { .key = KEY_CANVAS_LENGTH, .type = 'i', .v = INT32_MAX },
              "diffusion.canvas_length is 2147483647; it must be between" },
            { { .key = KEY_CANVAS_LENGTH, .type = 'i', .v = -1 },
              "diffusion.canvas_length is not a whole number from 0" },
            { { .key = KEY_CANVAS_LENGTH, .type = 's' },
              "diffusion.canvas_length is not a whole number from 0" },
            { { .key = KEY_CANVAS_LENGTH, .type = 'f', .v = 48.5 },
              "diffusion.canvas_length is not a whole number from 0" },
            { { .key = "diffusion-gemma.context_length", .type = 'i', .v = 47 },
              "a canvas of 48 tokens in a context of 47" },
            { { .key = KEY_CANVAS_STEPS, .type = 'i', .v = 0 },
              "diffusion.eb_max_steps is 0; it must be between 1 and 1024" },
            { { .key = KEY_CANVAS_STEPS, .type = 'i', .v = 1e6 },
              "diffusion.eb_max_steps is 1000000; it must be between 1 and 1024" },
            { { .key = KEY_CANVAS_STABILITY, .type = 'i', .v = 1e6 },
              "diffusion.eb_stability_threshold is 1000000; it must be between 0 and 1024" },
            { { .key = KEY_CANVAS_T_MIN, .type = 'f', .v = 0 },
              "diffusion.eb_t_min is 0; it must be between 0.01 and 100" },
            { { .key = KEY_CANVAS_T_MAX, .type = 'f', .v = NAN }, "diffusion.eb_t_max is " },
            { { .key = KEY_CANVAS_T_MAX, .type = 'f', .v = INFINITY },
              "diffusion.eb_t_max is inf; it must be between 0.01 and 100" },
            { { .key = KEY_CANVAS_T_MAX, .type = 's' }, "diffusion.eb_t_max is not a number" },
            { { .key = KEY_CANVAS_BOUND, .type = 'f', .v = -1 },
              "diffusion.eb_entropy_bound is -1; it must be between 0 and 1e+06" },
            { { .key = KEY_CANVAS_CONFIDENCE, .type = 'f', .v = -1 },
              "diffusion.eb_confidence_threshold is -1; it must be between 0 and 1e+06" },
            { { .key = "diffusion.shift_logits", .type = 'b', .v = 1 },
              "diffusion.shift_logits is true; this build runs canvases whose row i is" },
            { { .key = "diffusion.shift_logits", .type = 's' },
              "diffusion.shift_logits is not true or false" },
            { { .key = "diffusion-gemma.attention.causal", .type = 'b', .v = 1 },
              "diffusion-gemma.attention.causal is true; the tokens of a canvas see those after" },
            { { .key = "diffusion-gemma.attention.shared_kv_layers", .type = 'i', .v = 3 },
              "a canvas with shared keys" },
            { { .key = "diffusion-gemma.embedding_length_per_layer_input", .type = 'i', .v = 8 },
              "per-layer embeddings; this build runs neither" },
            { { .key = "diffusion-gemma.block_count" },
              "the metadata has no number diffusion-gemma.block_count" },
            { { .tensor = "self_cond_up.weight", .other = "self_cond_gate.weight.more" },
              "tensor self_cond_up.weight is missing" },
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            check_reason(&cases[i].change, cases[i].reason);
    }
    TEST("a feed-forward of the self-conditioning that does not fit together is named")
    {
        struct synth_plan p = { 0 };
        o.one_scale = o.few_keys = false;
        CHECK(synth_plan_make(&p, &o, &err) == BZ_OK);
        for (size_t i = 0; i < p.n; i++)
            if (strcmp(p.tensors[i].name, "self_cond_gate.weight") == 0) {
                p.tensors[i].ne[1] /= 2;
                p.tensors[i].n_weights /= 2;
                p.tensors[i].n_bytes /= 2;
            }
        CHECK_MSG(synth_write(&p, DIR "b.gguf", NULL, NULL, &err) == BZ_OK, "%s", err.text);
        struct inspect x = look_at(DIR "b.gguf");
        CHECK_MSG(!x.runs && strstr(x.why.text, "tensor self_cond_up.weight is 256 x 160 x 1 x 1; "
                                                "this model's metadata asks for 256 x 80"),
                  "%s", x.why.text);
        inspect_close(&x);
        synth_plan_free(&p);
    }
}

static void test_adapters(void)
{
    TEST("an adapter shows rank, alpha and targets")
    {
        static const float zeros[512];
        struct gguf_writer *w = NULL;
        CHECK(gguf_writer_open(&w, DIR "b.gguf", &err) == BZ_OK);
        gguf_put_str(w, "general.architecture", str_of("gemma4"));
        gguf_put_str(w, "general.type", str_of("adapter"));
        gguf_put_str(w, "adapter.type", str_of("lora"));
        gguf_put_f32(w, "adapter.lora.alpha", 8);
        gguf_put_tensor(w, "blk.1.attn_q.weight.lora_a", QUANT_F32, 2, (uint64_t[]) { 64, 4 });
        gguf_put_tensor(w, "blk.1.attn_q.weight.lora_b", QUANT_F32, 2, (uint64_t[]) { 4, 128 });
        gguf_put_data(w, zeros, 64 * 4 * 4);
        gguf_put_data(w, zeros, 4 * 128 * 4);
        CHECK_MSG(gguf_writer_finish(w, &err) == BZ_OK, "%s", err.text);
        struct inspect x = look_at(DIR "b.gguf");
        CHECK(x.kind == INSPECT_ADAPTER && x.adapter.n_targets == 1);
        check_text(&x, "rank             4\n");
        check_text(&x, "alpha            8\n");
        check_text(&x, "64 -> 128, rank 4, scale 2\n");
        struct arena a = { 0 };
        struct buf b = { 0 };
        const struct json *j = json_of(&x, &a, &b);
        CHECK(json_get(j, "alpha")->number == 8 && json_get(j, "targets")->n == 1);
        buf_free(&b);
        arena_free(&a);
        inspect_close(&x);
    }
}

static void test_json(void)
{
    TEST("the JSON is valid and says the same")
    {
        struct arena a = { 0 };
        struct buf b = { 0 };
        struct inspect x = look_at(DIR "a.gguf");
        const struct json *j = json_of(&x, &a, &b);
        CHECK(str_is(json_get_str(j, "kind"), "text"));
        CHECK((uint64_t)json_get(j, "parameters")->integer == x.all.n_params);
        CHECK(json_get(j, "runs")->boolean);
        CHECK(json_get(j, "tensor_list")->n == x.all.n_tensors);
        const struct json *keys = json_get(j, "keys"), *shape = json_get(j, "shape");
        CHECK(keys->n == x.file.gguf.n_kv);
        CHECK(json_get(keys, "gemma4.attention.sliding_window_pattern")->n == 8);
        CHECK(json_get(json_get(keys, "tokenizer.ggml.merges"), "n")->integer > 1100);
        CHECK(json_get(shape, "layers")->n == 8);
        CHECK(json_get(json_at(json_get(shape, "layers"), 7), "donor")->integer == 3);
        uint64_t sum = 0;
        const struct json *formats = json_get(j, "formats");
        for (const struct json *f = formats->child; f; f = f->next)
            sum += (uint64_t)json_get(f, "bytes")->integer;
        CHECK(sum == x.all.n_bytes);
        buf_free(&b);
        arena_free(&a);
        inspect_close(&x);
    }
    TEST("names with quotes and control bytes do not break the output")
    {
        struct gguf_writer *w = NULL;
        struct arena a = { 0 };
        struct buf b = { 0 };
        CHECK(gguf_writer_open(&w, DIR "b.gguf", &err) == BZ_OK);
        gguf_put_str(w, "general.architecture", str_of("ge\"m\x1b[31m\xff"));
        gguf_put_str(w, "k\"ey\n", str_of("\\\""));
        gguf_put_tensor(w, "t\"\x1b", QUANT_F32, 1, (uint64_t[]) { 1 });
        gguf_put_data(w, "\0\0\0\0", 4);
        CHECK(gguf_writer_finish(w, &err) == BZ_OK);
        struct inspect x = look_at(DIR "b.gguf");
        const struct json *j = json_of(&x, &a, &b);
        CHECK(str_is(json_get_str(json_get(j, "keys"), "k\"ey\n"), "\\\""));
        struct buf text = { 0 };
        inspect_put_text(&text, &x, (struct inspect_wish) { .keys = true, .tensors = true });
        CHECK(text.data && !strchr(text.data, '\x1b'));
        buf_free(&text);
        buf_free(&b);
        arena_free(&a);
        inspect_close(&x);
    }
    TEST("a tensor without dimensions does not break the JSON")
    {
        /* The fixed part (one tensor, no keys), a name of one byte, no dimensions, F32, at 0. */
        static const uint8_t bytes[68] = { 'G', 'G', 'U', 'F', 3, [8] = 1, [24] = 1, [32] = 't' };
        struct located file = { 0 };
        struct source src;
        struct inspect x = { 0 };
        struct arena a = { 0 };
        struct buf b = { 0 };
        CHECK(source_open_memory(&src, "scalar", bytes, sizeof bytes, &err) == BZ_OK);
        CHECK_MSG(gguf_open(&file.gguf, &src, 1, &err) == BZ_OK, "%s", err.text);
        CHECK(inspect_file(&x, &file, "scalar", &err) == BZ_OK);
        const struct json *list = json_get(json_of(&x, &a, &b), "tensor_list");
        CHECK(list && json_get(json_at(list, 0), "shape"));
        buf_free(&b);
        arena_free(&a);
        inspect_close(&x);
    }
}

static void test_memory(void)
{
    TEST("no memory is lost when any allocation fails")
    {
        int64_t live = mem_live();
        bool done = false;
        int n_failed = 0;
        for (uint64_t k = 1; !done && k < 5000; k += k < 60 ? 1 : 7) {
            struct inspect x = { 0 };
            mem_fail_at(k);
            enum bz_status st = inspect_open(&x, DIR "a.gguf", NULL, &err);
            mem_fail_at(0);
            done = st == BZ_OK && x.runs;
            n_failed += !done;
            CHECK(st == BZ_OK || st == BZ_ERR_MEMORY);
            inspect_close(&x);
            CHECK(mem_live() == live);
        }
        CHECK(done && n_failed > 10);
    }
}

int main(void)
{
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    test_models();
    test_reasons();
    test_diffusion();
    test_adapters();
    test_json();
    test_memory();
    CHECK(mem_live() == 0);
    return check_done();
}
