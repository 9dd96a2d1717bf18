/* adapter_write.c - see adapter_write.h. adapter_gguf.c and adapter_peft.c read these layouts. */
#include "io/adapter_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static float alpha_of(const struct adapter_target *t)
{
    return t->scale * (float)t->rank;
}

static uint64_t numbers_of_a(const struct adapter_target *t)
{
    return (uint64_t)t->n_expert * t->rank * t->n_in;
}

static uint64_t numbers_of_b(const struct adapter_target *t)
{
    return (uint64_t)t->n_expert * t->rank * t->n_out;
}

/* ---- GGUF ---- */

enum { GGUF_ALIGN = 32 };

static void put_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof v);
}

static void put_u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof v);
}

static void put_string(struct buf *b, const char *z)
{
    put_u64(b, strlen(z));
    buf_puts(b, z);
}

static void put_text_pair(struct buf *b, const char *key, const char *value)
{
    put_string(b, key);
    put_u32(b, GGUF_STRING);
    put_string(b, value);
}

static uint64_t aligned(uint64_t n)
{
    return (n + GGUF_ALIGN - 1) / GGUF_ALIGN * GGUF_ALIGN;
}

/* The description of one factor, whose data begins at *offset of the data section. */
static void put_factor(struct buf *b, const struct adapter_target *t, const char *ending,
                       uint64_t cols, uint64_t rows, uint64_t *offset)
{
    char name[256];
    bool stacked = t->n_expert > 1;
    snprintf(name, sizeof name, "%s%s", t->name, ending);
    put_string(b, name);
    put_u32(b, stacked ? 3 : 2);
    put_u64(b, cols);
    put_u64(b, rows);
    if (stacked) put_u64(b, t->n_expert);
    put_u32(b, 0); /* F32 */
    put_u64(b, *offset);
    *offset += aligned(cols * rows * t->n_expert * sizeof(float));
}

static void put_data(struct buf *b, size_t start, const float *p, uint64_t n)
{
    buf_put(b, p, (size_t)n * sizeof *p);
    while (!b->failed && (b->n - start) % GGUF_ALIGN) buf_putc(b, 0);
}

enum bz_status adapter_write_gguf(struct buf *out, const struct adapter *a, struct bz_err *err)
{
    float alpha = a->n_targets ? alpha_of(&a->targets[0]) : 0;
    uint64_t offset = 0;
    for (size_t i = 1; i < a->n_targets; i++)
        if (fabsf(alpha_of(&a->targets[i]) - alpha) > 1e-5f * fabsf(alpha))
            return fail(err, BZ_ERR_UNSUPPORTED,
                        "the targets of this adapter differ in alpha, and a GGUF adapter has one");
    size_t start = out->n;
    buf_put(out, "GGUF", 4);
    put_u32(out, 3);
    put_u64(out, 2 * (uint64_t)a->n_targets);
    put_u64(out, 4); /* pairs */
    put_text_pair(out, "general.type", "adapter");
    put_text_pair(out, "general.architecture", "gemma4");
    put_text_pair(out, "adapter.type", "lora");
    put_string(out, "adapter.lora.alpha");
    put_u32(out, GGUF_F32);
    buf_put(out, &alpha, sizeof alpha);
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct adapter_target *t = &a->targets[i];
        put_factor(out, t, ".lora_a", t->n_in, t->rank, &offset);
        put_factor(out, t, ".lora_b", t->rank, t->n_out, &offset);
    }
    while (!out->failed && (out->n - start) % GGUF_ALIGN) buf_putc(out, 0);
    for (size_t i = 0; i < a->n_targets; i++) {
        put_data(out, start, a->targets[i].a, numbers_of_a(&a->targets[i]));
        put_data(out, start, a->targets[i].b, numbers_of_b(&a->targets[i]));
    }
    return out->failed ? fail_memory(err, out->n) : BZ_OK;
}

/* ---- PEFT ---- */

static const struct {
    const char *tensor, *module;
} modules[] = {
    { "attn_q", "self_attn.q_proj" },   { "attn_k", "self_attn.k_proj" },
    { "attn_v", "self_attn.v_proj" },   { "attn_output", "self_attn.o_proj" },
    { "ffn_gate", "mlp.gate_proj" },    { "ffn_up", "mlp.up_proj" },
    { "ffn_down", "mlp.down_proj" },    { "inp_gate", "per_layer_input_gate" },
    { "proj", "per_layer_projection" }, { "ffn_gate_inp", "router.proj" },
    { "ffn_gate_up_exps", "experts" },  { "ffn_down_exps", "experts" },
};

/* The layer of "blk.3.attn_q.weight" and its place in the table; false: PEFT has no such module. */
static bool find_module(const char *name, unsigned *layer, size_t *at)
{
    if (strncmp(name, "blk.", 4) != 0) return false;
    char *end; /* strtoul and not sscanf, which is 3 KB of the module */
    *layer = (unsigned)strtoul(name + 4, &end, 10);
    if (*end++ != '.') return false;
    for (*at = 0; *at < sizeof modules / sizeof *modules; ++*at) {
        size_t n = strlen(modules[*at].tensor);
        if (strncmp(end, modules[*at].tensor, n) == 0 && strcmp(end + n, ".weight") == 0)
            return true;
    }
    return false;
}

static bool has_target(const struct adapter *a, unsigned layer, const char *tensor)
{
    char name[96];
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, tensor);
    for (size_t i = 0; i < a->n_targets; i++)
        if (strcmp(a->targets[i].name, name) == 0) return true;
    return false;
}

/* PEFT wraps the experts' module once for each trained parameter. When both are trained,
 * gate_up_proj is the inner wrapper. */
static void module_path(char out[192], const struct adapter *a, unsigned layer, size_t at)
{
    bool inner = strcmp(modules[at].tensor, "ffn_gate_up_exps") == 0 &&
                 has_target(a, layer, "ffn_down_exps");
    snprintf(out, 192, "base_model.model.model.language_model.layers.%u.%s%s", layer,
             modules[at].module, inner ? ".base_layer" : "");
}

/* B of stacked experts, (expert, out, rank) here, is out x (rank, expert) there. */
static void put_b(struct buf *b, const struct adapter_target *t)
{
    if (t->n_expert == 1) {
        buf_put(b, t->b, (size_t)numbers_of_b(t) * sizeof(float));
        return;
    }
    for (uint32_t o = 0; o < t->n_out; o++)
        for (uint32_t k = 0; k < t->rank; k++)
            for (uint32_t e = 0; e < t->n_expert; e++)
                buf_put(b, &t->b[((size_t)e * t->n_out + o) * t->rank + k], sizeof(float));
}

static void put_entry(struct buf *b, const char *path, char half, uint64_t rows, uint64_t cols,
                      uint64_t *offset)
{
    uint64_t end = *offset + rows * cols * sizeof(float);
    buf_printf(b,
               "%s\"%s.lora_%c.weight\":{\"dtype\":\"F32\",\"shape\":[%" PRIu64 ",%" PRIu64
               "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
               b->n > 1 ? "," : "", path, half, rows, cols, *offset, end);
    *offset = end;
}

static enum bz_status put_header(struct buf *header, const struct adapter *a, struct bz_err *err)
{
    uint64_t offset = 0;
    buf_putc(header, '{');
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct adapter_target *t = &a->targets[i];
        unsigned layer;
        size_t at;
        char path[192];
        if (!find_module(t->name, &layer, &at))
            return fail(err, BZ_ERR_UNSUPPORTED, "PEFT has no module for %s", t->name);
        module_path(path, a, layer, at);
        put_entry(header, path, 'A', (uint64_t)t->n_expert * t->rank, t->n_in, &offset);
        put_entry(header, path, 'B', t->n_out, (uint64_t)t->rank * t->n_expert, &offset);
    }
    buf_putc(header, '}');
    while (!header->failed && header->n % 8) buf_putc(header, ' ');
    return header->failed ? fail_memory(err, header->n) : BZ_OK;
}

/* The modules that are trained anywhere, each once; experts are parameters. */
static void put_modules(struct buf *b, const struct adapter *a, bool experts)
{
    bool first = true;
    for (size_t m = 0; m < sizeof modules / sizeof *modules; m++) {
        bool is_experts = strcmp(modules[m].module, "experts") == 0, used = false;
        unsigned layer;
        size_t at;
        for (size_t i = 0; i < a->n_targets && !used; i++)
            used = find_module(a->targets[i].name, &layer, &at) && at == m;
        if (!used || is_experts != experts) continue;
        const char *last = strrchr(modules[m].module, '.');
        const char *parameter =
            strstr(modules[m].tensor, "gate_up") ? "experts.gate_up_proj" : "experts.down_proj";
        buf_printf(b, "%s\"%s\"", first ? "" : ", ",
                   experts ? parameter
                   : last  ? last + 1
                           : modules[m].module);
        first = false;
    }
}

static enum bz_status put_config(struct buf *b, const struct adapter *a, const char *base,
                                 struct bz_err *err)
{
    const struct adapter_target *first = &a->targets[0];
    for (size_t i = 1; i < a->n_targets; i++)
        if (a->targets[i].rank != first->rank ||
            fabsf(alpha_of(&a->targets[i]) - alpha_of(first)) > 1e-5f * fabsf(alpha_of(first)))
            return fail(err, BZ_ERR_UNSUPPORTED,
                        "the targets of this adapter differ in rank or alpha");
    buf_puts(b, "{\n  \"peft_type\": \"LORA\",\n  \"peft_version\": \"0.19.0\",\n"
                "  \"task_type\": \"CAUSAL_LM\",\n  \"base_model_name_or_path\": ");
    json_put_string(b, str_of(base));
    buf_printf(b, ",\n  \"r\": %u,\n  \"lora_alpha\": ", first->rank);
    json_put_f32(b, alpha_of(first));
    buf_puts(b, ",\n  \"lora_dropout\": 0.0,\n  \"bias\": \"none\",\n  \"use_rslora\": false,\n"
                "  \"inference_mode\": true,\n  \"target_modules\": [");
    put_modules(b, a, false);
    buf_puts(b, "],\n  \"target_parameters\": [");
    put_modules(b, a, true);
    buf_puts(b, "]\n}\n");
    return b->failed ? fail_memory(err, b->n) : BZ_OK;
}

enum bz_status adapter_write_peft(struct buf *weights, struct buf *config, const struct adapter *a,
                                  const char *base, struct bz_err *err)
{
    struct buf header = { 0 };
    if (!a->n_targets) return fail(err, BZ_ERR_ARGUMENT, "the adapter has no targets");
    enum bz_status st = put_header(&header, a, err);
    if (st == BZ_OK) st = put_config(config, a, base, err);
    if (st == BZ_OK) {
        put_u64(weights, header.n);
        buf_put(weights, header.data, header.n);
        for (size_t i = 0; i < a->n_targets; i++) {
            buf_put(weights, a->targets[i].a, (size_t)numbers_of_a(&a->targets[i]) * sizeof(float));
            put_b(weights, &a->targets[i]);
        }
        if (weights->failed) st = fail_memory(err, weights->n);
    }
    buf_free(&header);
    return st;
}
