/* canvas.h - the network of a canvas of tokens, written onto a tape. */
#ifndef BEZEL_MODEL_CANVAS_H
#define BEZEL_MODEL_CANVAS_H

#include "model/text.h"

/* From the canvas's tokens `ids`, and what the step before thought of them, to the final norm. s is
 * a step of a canvas. soft: n x n_embd, zeros in the first step. */
struct value *canvas_forward(struct tape *t, struct text_step *s, struct value *ids,
                             struct value *soft);

/* What becomes of the canvas by the rows x of that. Returns the next step's `soft`. */
struct value *canvas_end(struct tape *t, const struct model *m, struct canvas *canvas,
                         struct value *x);

#endif
