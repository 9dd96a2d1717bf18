/* step.h - a session's steps on the GPU: the one place that turns the network into dispatches. What
 * becomes of them is the recorder's mode: a program, pipelines, notes, or a count. */
#ifndef BEZEL_STEP_H
#define BEZEL_STEP_H

#include "engine.h"
#include "gpu/draw.h"

/* Record a step of `rows` <= n_batch tokens with the logits of its last n_logits <= LOGIT_ROWS
 * rows, with tiles for positions below `horizon`. A failure is the run's. */
struct recorded step_record(struct run *r, bz_session *s, uint32_t rows, uint32_t n_logits,
                            uint32_t horizon);

/* Draw a token from row 0 of the logits, for positions below `horizon`. */
struct recorded step_record_draw(struct run *r, bz_session *s, const struct gpu_draw *draw,
                                 uint32_t horizon);

/* The dispatches of the last one. */
uint32_t step_dispatches(const bz_session *s);

#endif
