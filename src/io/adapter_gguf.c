/* adapter_gguf.c - owns the names and keys of a GGUF adapter:
 *
 *     general.type = "adapter"   adapter.type = "lora"   adapter.lora.alpha
 *     NAME.lora_a  ne = [in, rank (, experts)]     NAME.lora_b  ne = [rank, out (, experts)]
 *
 * which is rank x in and out x rank in memory, so nothing moves.
 */
#include <math.h>

#include "io/adapter.h"
#include "io/adapter_plan.h"
#include "io/quote.h"

static enum bz_status read_keys(struct adapter_plan *p, const struct gguf *g, struct bz_err *err)
{
    struct str type = { NULL, 0 }, kind = { NULL, 0 }, arch = { "", 0 };
    double alpha = 0;
    gguf_get_str(g, "general.type", &type);
    gguf_get_str(g, "adapter.type", &kind);
    gguf_get_str(g, "general.architecture", &arch);
    if (!str_is(type, "adapter"))
        return fail(err, BZ_ERR_FORMAT, "%s: a GGUF file, but not an adapter (general.type is %s)",
                    p->file, type.p ? quote(type).z : "missing");
    if (!str_is(kind, "lora"))
        return fail(err, BZ_ERR_UNSUPPORTED, "%s: an adapter of type \"%s\"; Bezel reads lora",
                    p->file, quote(kind).z);
    if (gguf_find(g, "adapter.lora.alpha") &&
        (!gguf_get_f64(g, "adapter.lora.alpha", &alpha) || !isfinite((float)alpha)))
        return fail(err, BZ_ERR_FORMAT, "%s: adapter.lora.alpha is not a number", p->file);
    p->out.alpha = (float)alpha;
    p->out.arch = arena_copy_str(&p->out.arena, arch.p, arch.n);
    if (!p->out.arch) return fail_memory(err, arch.n);
    if (gguf_find(g, "adapter.alora.invocation_tokens"))
        return adapter_plan_warn(p, err, "an activated LoRA: it is applied to every token here");
    return BZ_OK;
}

static enum bz_status add_tensor(struct adapter_plan *p, const struct gguf *g,
                                 const struct gguf_tensor *t, struct bz_err *err)
{
    bool is_a = str_ends(t->name, ".lora_a"), is_b = str_ends(t->name, ".lora_b");
    if (!is_a && !is_b) {
        if (str_ends(t->name, "_norm.weight"))
            return adapter_plan_warn(p, err, "%s was left out: norms are not adapted",
                                     quote(t->name).z);
        return fail(err, BZ_ERR_FORMAT, "%s: tensor %s is neither a lora_a nor a lora_b", p->file,
                    quote(t->name).z);
    }
    if (t->ne[3] != 1)
        return fail(err, BZ_ERR_FORMAT, "%s: tensor %s has four dimensions", p->file,
                    quote(t->name).z);
    struct adapter_half h = {
        .src = &g->sources[t->shard],
        .offset = t->offset,
        .n_bytes = t->n_bytes,
        .format = t->type,
        .n_expert = t->ne[2],
        .rows = t->ne[1],
        .cols = t->ne[0],
    };
    adapter_half_plain(&h);
    /* An alpha of 0 means that the file does not scale. */
    float alpha = p->out.alpha, rank = (float)(is_b ? h.cols : h.rows);
    float scale = alpha != 0 ? alpha / rank : 1;
    return adapter_plan_half(p, (struct str) { t->name.p, t->name.n - 7 }, ADAPTER_BOTH, is_b, &h,
                             scale, err);
}

enum bz_status adapter_open_gguf(struct adapter *out, const struct gguf *g, struct bz_err *err)
{
    struct adapter_plan p;
    uint64_t n_available = 0;
    for (uint32_t i = 0; i < g->n_sources; i++) n_available += g->sources[i].size;
    enum bz_status st = adapter_plan_init(&p, g->sources[0].name, g->n_tensors, err);
    if (!st) st = read_keys(&p, g, err);
    for (uint64_t i = 0; !st && i < g->n_tensors; i++) st = add_tensor(&p, g, &g->tensors[i], err);
    if (!st) st = adapter_plan_check(&p, n_available, err);
    if (!st) st = adapter_plan_load(&p, out, err);
    adapter_plan_free(&p);
    return st;
}
