#include "step.h"

struct recorded step_record(struct run *r, bz_session *s, uint32_t rows, uint32_t n_logits,
                            uint32_t horizon)
{
    gpu_ops_begin(r->be, s->kv.n_past, horizon);
    s->acts.ids.rows = rows;
    model_forward(r, &s->engine->model, &s->acts, n_logits);
    if (n_logits) model_logits(r, &s->engine->model, &s->acts, 0, n_logits);
    return gpu_ops_end(r->be);
}

struct recorded step_record_draw(struct run *r, bz_session *s, const struct gpu_draw *draw,
                                 uint32_t horizon)
{
    gpu_ops_begin(r->be, s->kv.n_past, horizon);
    s->acts.logits.rows = 1;
    gpu_draw_record(r, draw, &s->acts.ids, &s->acts.logits);
    return gpu_ops_end(r->be);
}

uint32_t step_dispatches(const bz_session *s)
{
    return ((const struct gpu_ops *)s->engine->backend.ctx)->rec.n_dispatches;
}
