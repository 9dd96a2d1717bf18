/* step.h - the plans of a session's steps on the GPU: the one place that turns the network into
 * dispatches. */
#ifndef BEZEL_STEP_H
#define BEZEL_STEP_H

#include "engine.h"
#include "gpu/draw.h"

/* Positions that the first of the programs for one token is meant for; each next one is for twice
 * as many. */
enum { FIRST_HORIZON = 128 };

/* Plan a step of `rows` <= n_batch tokens with the logits of its last n_logits <= LOGIT_ROWS rows,
 * with tiles for positions below `horizon`. The plan is the recorder's; a failure is the run's. */
void step_plan(struct run *r, bz_session *s, uint32_t rows, uint32_t n_logits, uint32_t horizon);

/* Plan a step of the canvas, with tiles for positions below `horizon`. */
void step_plan_denoise(struct run *r, bz_session *s, uint32_t horizon);

/* Draw a token from row 0 of the logits, `masked` or not, for positions below `horizon`. */
void step_plan_draw(struct run *r, bz_session *s, const struct gpu_draw *draw, bool masked,
                    uint32_t horizon);

#endif
