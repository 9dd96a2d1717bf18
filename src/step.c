#include "step.h"

void step_plan(struct run *r, bz_session *s, uint32_t rows, uint32_t n_logits, uint32_t horizon)
{
    gpu_ops_begin(r->be, s->kv.n_past, horizon);
    s->acts.ids.rows = rows;
    model_step(r, &s->engine->model, &s->acts, n_logits);
}

void step_plan_draw(struct run *r, bz_session *s, const struct gpu_draw *draw, bool masked,
                    uint32_t horizon)
{
    gpu_ops_begin(r->be, s->kv.n_past, horizon);
    s->acts.logits.rows = 1;
    gpu_draw_record(r, draw, masked, &s->acts.ids, &s->acts.logits);
}

void step_plan_denoise(struct run *r, bz_session *s, uint32_t horizon)
{
    gpu_ops_begin(r->be, s->kv.n_past, horizon);
    model_denoise(r, &s->engine->model, &s->acts);
}
