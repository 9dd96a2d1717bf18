/* synth.c - `bezel synth`: metadata and tensors of a made-up model into a file. */
#include "cli/synth.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/cli_model.h"
#include "cli/synth_vocab.h"

/* Enough for tools that want a template; the real conversation format is src/text/chat.h's. */
static const char chat_template[] =
    "{{ bos_token }}{% for m in messages %}<|turn>{{ 'model' if m['role'] == 'assistant' else "
    "m['role'] }}\n{{ m['content'] }}<turn|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn>model\n{% endif %}";

/* ---- metadata ---- */

static const char *architecture(const struct synth_size *s)
{
    return s->n_canvas ? "diffusion-gemma" : "gemma4";
}

/* A key of the architecture: "gemma4." and its name. */
struct key {
    char z[64];
};

static struct key key(const struct synth_size *s, const char *name)
{
    struct key k;
    snprintf(k.z, sizeof k.z, "%s.%s", architecture(s), name);
    return k;
}

static void put_general(struct gguf_writer *w, const struct synth_plan *p)
{
    const struct synth_options *o = &p->options;
    char name[96];
    snprintf(name, sizeof name, "Synthetic Gemma 4 %s", o->size->label);
    gguf_put_str(w, "general.architecture", str_of(architecture(o->size)));
    gguf_put_str(w, "general.type", str_of("model"));
    gguf_put_str(w, "general.name", str_of(name));
    gguf_put_str(w, "general.description", str_of("random weights in the shape of the real model"));
    gguf_put_str(w, "general.size_label", str_of(o->size->label));
    gguf_put_u32(w, "general.file_type", mix_file_type(o->mix));
    gguf_put_u32(w, "general.quantization_version", 2);
    if (o->ollama) {
        gguf_put_u64(w, "general.parameter_count", p->n_params);
    } else {
        gguf_put_u32(w, "general.sampling.top_k", 64);
        gguf_put_f32(w, "general.sampling.top_p", 0.95f);
        gguf_put_f32(w, "general.sampling.temp", 1.0f);
    }
}

/* One number when all layers agree, as converters write it; else one for each layer. */
static void put_layer_numbers(struct gguf_writer *w, const char *key, const int32_t *v, uint32_t n)
{
    bool same = true;
    for (uint32_t i = 1; i < n; i++) same = same && v[i] == v[0];
    if (same) gguf_put_u32(w, key, (uint32_t)v[0]);
    else gguf_put_array(w, key, GGUF_I32, v, n);
}

static void put_layers(struct gguf_writer *w, const struct synth_size *s)
{
    int32_t n_ff[MAX_LAYERS] = { 0 }, n_kv[MAX_LAYERS] = { 0 };
    uint8_t swa[MAX_LAYERS];
    for (uint32_t il = 0; il < s->n_layer; il++) {
        n_ff[il] = (int32_t)(il < s->n_layer - s->n_shared ? s->n_ff : s->n_ff_shared);
        swa[il] = synth_is_swa(s, il);
        n_kv[il] = (int32_t)(swa[il] ? s->n_kv_swa : s->n_kv_global);
    }
    put_layer_numbers(w, key(s, "feed_forward_length").z, n_ff, s->n_layer);
    put_layer_numbers(w, key(s, "attention.head_count_kv").z, n_kv, s->n_layer);
    gguf_put_array(w, key(s, "attention.sliding_window_pattern").z, GGUF_BOOL, swa, s->n_layer);
}

static void put_text(struct gguf_writer *w, const struct synth_plan *p)
{
    const struct synth_size *s = p->options.size;
    gguf_put_u32(w, key(s, "block_count").z, s->n_layer);
    gguf_put_u32(w, key(s, "context_length").z, p->options.n_ctx);
    gguf_put_u32(w, key(s, "embedding_length").z, s->n_embd);
    gguf_put_u32(w, key(s, "attention.head_count").z, s->n_head);
    put_layers(w, s);
    gguf_put_u32(w, key(s, "attention.key_length").z, s->dim_global);
    gguf_put_u32(w, key(s, "attention.value_length").z, s->dim_global);
    gguf_put_u32(w, key(s, "attention.key_length_swa").z, s->dim_swa);
    gguf_put_u32(w, key(s, "attention.value_length_swa").z, s->dim_swa);
    gguf_put_f32(w, key(s, "attention.layer_norm_rms_epsilon").z, 1e-6f);
    gguf_put_u32(w, key(s, "attention.sliding_window").z, s->n_swa);
    gguf_put_u32(w, key(s, "attention.shared_kv_layers").z, s->n_shared);
    gguf_put_u32(w, key(s, "embedding_length_per_layer_input").z, s->n_ple);
    gguf_put_f32(w, key(s, "rope.freq_base").z, 1e6f);
    gguf_put_f32(w, key(s, "rope.freq_base_swa").z, 1e4f);
    gguf_put_u32(w, key(s, "rope.dimension_count").z, s->dim_global);
    gguf_put_u32(w, key(s, "rope.dimension_count_swa").z, s->dim_swa);
    gguf_put_f32(w, key(s, "final_logit_softcapping").z, 30.0f);
    if (!s->n_expert) return;
    gguf_put_u32(w, key(s, "expert_count").z, s->n_expert);
    gguf_put_u32(w, key(s, "expert_used_count").z, s->n_expert_used);
    gguf_put_u32(w, key(s, "expert_feed_forward_length").z, s->n_ff_expert);
}

/* What a canvas needs beside the keys of Gemma 4. Published files have the first two only. */
static void put_diffusion(struct gguf_writer *w, const struct synth_plan *p)
{
    const struct synth_size *s = p->options.size;
    gguf_put_bool(w, key(s, "attention.causal").z, false);
    gguf_put_u32(w, "diffusion.canvas_length", s->n_canvas);
    if (p->options.few_keys) return;
    gguf_put_u32(w, "diffusion.eb_max_steps", 48);
    gguf_put_f32(w, "diffusion.eb_t_min", 0.4f);
    gguf_put_f32(w, "diffusion.eb_t_max", 0.8f);
    gguf_put_f32(w, "diffusion.eb_entropy_bound", 0.1f);
    gguf_put_u32(w, "diffusion.eb_stability_threshold", 1);
    gguf_put_f32(w, "diffusion.eb_confidence_threshold", 0.005f);
    gguf_put_bool(w, "diffusion.shift_logits", false);
}

static void put_towers(struct gguf_writer *w, const struct synth_tower *t)
{
    gguf_put_u32(w, "gemma4.vision.block_count", t->n_layer);
    gguf_put_u32(w, "gemma4.vision.embedding_length", t->n_embd);
    gguf_put_u32(w, "gemma4.vision.feed_forward_length", t->n_ff);
    gguf_put_u32(w, "gemma4.vision.attention.head_count", t->n_embd / t->head_dim);
    gguf_put_f32(w, "gemma4.vision.attention.layer_norm_epsilon", 1e-6f);
    gguf_put_u32(w, "gemma4.vision.patch_size", 16);
    gguf_put_u32(w, "gemma4.vision.num_channels", 3);
    gguf_put_u32(w, "gemma4.vision.projector.scale_factor", 3);
    if (!t->a_layer) return;
    gguf_put_u32(w, "gemma4.audio.block_count", t->a_layer);
    gguf_put_u32(w, "gemma4.audio.embedding_length", t->a_embd);
    gguf_put_u32(w, "gemma4.audio.feed_forward_length", t->a_ff);
    gguf_put_u32(w, "gemma4.audio.attention.head_count", t->a_embd / t->a_head_dim);
    gguf_put_f32(w, "gemma4.audio.attention.layer_norm_epsilon", 1e-6f);
    gguf_put_u32(w, "gemma4.audio.conv_kernel_size", 5);
}

static int32_t find_token(const struct synth_vocab *v, const char *text)
{
    for (uint32_t i = 0; i < v->n_tokens; i++)
        if (str_is(v->tokens[i], text)) return (int32_t)i;
    return -1;
}

/* The same vocabulary as Ollama's own converter describes it. */
static void put_ollama_vocab(struct gguf_writer *w, const struct synth_vocab *v)
{
    const int32_t ends[] = { v->eos, find_token(v, "<turn|>"), find_token(v, "<|tool_response>") };
    gguf_put_str(w, "tokenizer.ggml.model", str_of("llama"));
    gguf_put_str(w, "tokenizer.ggml.pre", str_of("gemma4"));
    synth_vocab_put_pieces(w, v);
    gguf_put_array(w, "tokenizer.ggml.eos_token_ids", GGUF_I32, ends, 3);
    gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", (uint32_t)v->unk);
    gguf_put_u32(w, "tokenizer.ggml.padding_token_id", (uint32_t)v->pad);
    gguf_put_u32(w, "tokenizer.ggml.mask_token_id", (uint32_t)v->mask);
    gguf_put_bool(w, "tokenizer.ggml.add_bos_token", false);
    gguf_put_bool(w, "tokenizer.ggml.add_eos_token", false);
    gguf_put_bool(w, "tokenizer.ggml.add_mask_token", false);
    gguf_put_bool(w, "tokenizer.ggml.add_padding_token", false);
    gguf_put_bool(w, "tokenizer.ggml.add_unknown_token", false);
}

static void put_metadata(struct gguf_writer *w, const struct synth_plan *p,
                         const struct synth_vocab *v)
{
    const struct synth_size *s = p->options.size;
    put_general(w, p);
    put_text(w, p);
    if (s->n_canvas) put_diffusion(w, p);
    if (p->options.ollama) {
        put_towers(w, s->tower);
        put_ollama_vocab(w, v);
        return;
    }
    synth_vocab_put(w, v);
    gguf_put_str(w, "tokenizer.chat_template", str_of(chat_template));
    if (!s->tower && !s->n_canvas) { /* 12B must never draw the marks that end media */
        const int32_t never[] = { find_token(v, "<audio|>"), find_token(v, "<image|>") };
        gguf_put_array(w, "tokenizer.ggml.suppress_tokens", GGUF_I32, never, 2);
    }
}

/* ---- the file ---- */

static void put_tensors(struct gguf_writer *w, const struct synth_plan *p, void *chunk,
                        synth_progress progress, void *ctx)
{
    uint64_t done = 0;
    size_t n;
    for (size_t i = 0; i < p->n; i++) {
        const struct synth_tensor *t = &p->tensors[i];
        gguf_put_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
    for (size_t i = 0; i < p->n; i++) {
        const struct synth_tensor *t = &p->tensors[i];
        if (p->options.hollow && t->n_dims > 1) {
            gguf_put_zeros(w, t->n_bytes);
            continue;
        }
        for (uint64_t k = 0; (n = synth_fill(t, p->options.seed, k, chunk)); k++) {
            gguf_put_data(w, chunk, n);
            done += n;
            if (progress) progress(ctx, done, p->n_bytes);
        }
    }
}

enum bz_status synth_write(const struct synth_plan *p, const char *path, synth_progress progress,
                           void *ctx, struct bz_err *err)
{
    struct synth_vocab vocab = { 0 };
    struct gguf_writer *w = NULL;
    void *chunk = mem_alloc(SYNTH_CHUNK, 4);
    enum bz_status st = chunk ? BZ_OK : fail_memory(err, 4 * (uint64_t)SYNTH_CHUNK);
    if (st == BZ_OK) st = synth_vocab_make(&vocab, p->options.n_vocab, err);
    if (st == BZ_OK) st = gguf_writer_open(&w, path, err);
    if (st == BZ_OK) {
        put_metadata(w, p, &vocab);
        put_tensors(w, p, chunk, progress, ctx);
        st = gguf_writer_finish(w, err);
    }
    synth_vocab_free(&vocab);
    mem_free(chunk);
    return st;
}

/* ---- the command ---- */

/* On a terminal, about ten times a second. */
static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    double *last = ctx, now = cli_now();
    if (now - *last < 0.1) return;
    *last = now;
    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " MB", done / 1000000, total / 1000000);
}

static int make_file(const struct cli_command *c, const struct synth_options *o, const char *path)
{
    struct bz_err err = { "" };
    struct synth_plan plan = { 0 };
    double start = cli_now(), last = start;
    bool terminal = isatty(STDERR_FILENO);
    enum bz_status st = synth_plan_make(&plan, o, &err);
    if (st == BZ_OK) st = synth_write(&plan, path, terminal ? show_progress : NULL, &last, &err);
    if (terminal) fprintf(stderr, "\r%40s\r", "");
    if (st == BZ_OK) {
        double s = cli_now() - start;
        printf("%s: %s %s, %zu tensors, %" PRIu64 " parameters, %.1f MB in %.2f s (%.0f MB/s)\n",
               path, o->size->name, mix_name(o->mix), plan.n, plan.n_params,
               (double)plan.n_bytes / 1e6, s, (double)plan.n_bytes / 1e6 / s);
    }
    synth_plan_free(&plan);
    return st ? cli_fail(c, &err) : CLI_OK;
}

static const char about[] =
    "Write a model with random weights in the shape, tensor mix and metadata of a real one.\n"
    "\n"
    "  e2b e4b 12b 26b-a4b 31b       the published sizes\n"
    "  tiny-e2b tiny-e4b             a few MB: per-layer embeddings, shared keys and values\n"
    "  tiny-dense                    values equal to keys on global layers (12b, 31b)\n"
    "  tiny-wide tiny-widest         rows as long as those of 26b-a4b; of 31b\n"
    "  tiny-moe tiny-moe-split       experts; with gate and up apart and the old names\n"
    "  diffusion tiny-diffusion      26b-a4b that denoises a canvas; a few MB";

int cmd_synth(int argc, char **argv)
{
    const char *quant = "q4_k_m", *layout = "split", *dialect = "two-scales", *args[2];
    uint64_t seed = 1, n_ctx = 0, n_vocab = 0;
    bool force = false, hollow = false, few_keys = false;
    const struct cli_option options[] = {
        { "--quant", "MIX", MIX_NAMES " (default q4_k_m)", CLI_STR, &quant, NULL },
        { "--seed", "N", "another seed, other weights (default 1)", CLI_U64, &seed, NULL },
        { "--layout", "NAME", "split (llama.cpp) or ollama (towers inside)", CLI_STR, &layout,
          NULL },
        { "--dialect", "NAME",
          "of a diffusion model: two-scales (default), or one-scale for both passes", CLI_STR,
          &dialect, NULL },
        { "--few-keys", NULL, "a diffusion model without the keys that have defaults", CLI_FLAG,
          &few_keys, NULL },
        { "--ctx", "N", "context length to write down", CLI_U64, &n_ctx, NULL },
        { "--vocab", "N", "tokens in the vocabulary, 512 to 262144", CLI_U64, &n_vocab, NULL },
        { "--hollow", NULL, "leave the matrices out: holes that take no room on the disk", CLI_FLAG,
          &hollow, NULL },
        { "--force", NULL, "replace a file that exists", CLI_FLAG, &force, NULL },
    };
    const struct cli_command c = {
        "synth", "SIZE OUT [options]", about, options, sizeof options / sizeof *options, 2, 2
    };
    int code;
    if (cli_parse(&c, argc, argv, args, &code) < 0) return code;
    cli_outlive_reader();

    struct synth_options o = { .size = synth_size_find(args[0]),
                               .ollama = strcmp(layout, "ollama") == 0,
                               .one_scale = strcmp(dialect, "one-scale") == 0,
                               .few_keys = few_keys,
                               .seed = seed,
                               .n_ctx = (uint32_t)n_ctx,
                               .n_vocab = (uint32_t)n_vocab,
                               .hollow = hollow };
    if (!o.size) return cli_misuse(&c, "there is no size \"%s\"", args[0]);
    if (!mix_find(quant, &o.mix)) return cli_misuse(&c, "--quant cannot be \"%s\"", quant);
    if (!o.ollama && strcmp(layout, "split") != 0)
        return cli_misuse(&c, "--layout cannot be \"%s\"", layout);
    if (!o.one_scale && strcmp(dialect, "two-scales") != 0)
        return cli_misuse(&c, "--dialect cannot be \"%s\"", dialect);
    if ((o.one_scale || o.few_keys) && !o.size->n_canvas)
        return cli_misuse(&c, "%s is no diffusion model; --dialect and --few-keys are for those",
                          o.size->name);
    if (n_ctx > INT32_MAX) return cli_misuse(&c, "--ctx cannot be %" PRIu64, n_ctx);
    if (n_vocab && (n_vocab < SYNTH_VOCAB_MIN || n_vocab > SYNTH_VOCAB_FULL))
        return cli_misuse(&c, "--vocab must be between %u and %u", SYNTH_VOCAB_MIN,
                          SYNTH_VOCAB_FULL);
    if (!force && access(args[1], F_OK) == 0)
        return cli_misuse(&c, "%s exists; --force replaces it", args[1]);
    return make_file(&c, &o, args[1]);
}
