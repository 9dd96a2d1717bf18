#include "wasm/wasm_train_programs.h"

#include "gpu/ops_gpu_bwd.h"

void gpu_train_programs_free(struct gpu_train_programs *p)
{
    for (uint32_t i = 0; i < p->n; i++) recorded_free(&p->list[i].recorded);
    *p = (struct gpu_train_programs) { 0 };
}

/* FNV-1a of the buffers that adapters of trained weights are in: others, another number. */
static uint64_t name_adapters(const struct trainee *t)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < t->n_targets; i++) {
        const struct gpu_weight *w = t->targets[i].where->mem;
        h = (h ^ w->adapted.a) * 0x100000001b3u;
        h = (h ^ w->adapted.b) * 0x100000001b3u;
    }
    return h;
}

static void record_part(struct run *r, struct trainer *t, enum gpu_train_part part, uint32_t rows)
{
    switch (part) {
    case TRAIN_GRADIENTS: trainer_gradients(r, t, rows); break;
    case TRAIN_LOSSES: trainer_only_losses(r, t, rows); break;
    case TRAIN_UPDATE: trainer_update(r, t); break;
    case TRAIN_CLEAR: trainer_clear(r, t); break;
    case TRAIN_PUBLISH: trainee_publish(r, &t->trainee); break;
    case N_TRAIN_PARTS: break;
    }
}

/* A place in the list: a new one, or that of the program which has been there longest. */
static struct gpu_train_program *take_place(struct gpu_train_programs *p)
{
    if (p->n < COUNT(p->list)) return &p->list[p->n++];
    struct gpu_train_program *old = &p->list[p->next++ % COUNT(p->list)];
    recorded_free(&old->recorded);
    return old;
}

gpu_program gpu_train_program(struct gpu_train_programs *p, struct trainer *t,
                              enum gpu_train_part part, uint32_t rows, struct bz_err *err)
{
    uint64_t adapters = name_adapters(&t->trainee);
    if (adapters != p->adapters) gpu_train_programs_free(p);
    p->adapters = adapters;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].part == part && p->list[i].rows == rows) return p->list[i].recorded.program;
    struct run r = { .be = t->be };
    ((struct gpu_ops *)t->be->ctx)->roomy = t->pass.keep_all;
    gpu_ops_begin(t->be, 0, rows);
    if (part == TRAIN_GRADIENTS) t->trainee.drop->share = t->options.dropout;
    record_part(&r, t, part, rows);
    t->trainee.drop->share = 0;
    struct recorded made = gpu_ops_record(t->be);
    if (r.status || !made.program) {
        recorded_free(&made);
        fail(err, r.status ? r.status : BZ_ERR_MEMORY, "%s",
             r.status ? r.err.text : "not enough memory to record a step");
        return 0;
    }
    *take_place(p) = (struct gpu_train_program) { part, rows, made };
    return made.program;
}

uint64_t gpu_train_bytes(const struct backend *be, struct model *m, uint32_t n_max,
                         const struct train_options *o)
{
    const struct config *c = &m->config;
    uint64_t scores = (uint64_t)n_max * n_max * c->n_head * 4;
    uint64_t logits = (uint64_t)n_max * c->n_vocab * 4;
    uint64_t most = o->keep_all ? GPU_MORE_LOGITS_BYTES : GPU_LOGITS_BYTES;
    uint64_t slots = (uint64_t)n_max * c->n_expert_used * 4;
    return 2 * (scores < GPU_SCORES_BYTES ? scores : GPU_SCORES_BYTES) +
           (logits < most ? logits : most) + ((struct gpu_ops *)be->ctx)->tuning->parts_bytes +
           slots * (5 * (uint64_t)c->n_ff_expert + 2 * (uint64_t)c->n_embd) +
           trainee_bytes(m, &o->adapter) / 4;
}
