/* canvas.c - the canvas of a diffusion model: tokens that are denoised together. text.c encodes the
 * text before it into the cache; here is where a canvas differs, with MODEL.md's step numbers.
 */
#include "model/canvas.h"

#include <math.h>

/* 12. Input: the token's row of the table, times sqrt(n_embd). */
static struct value *input(struct tape *t, const struct model *m, struct value *ids)
{
    tape_at(t, -1, 12);
    struct value *x = tape_embed(t, &m->token_embd, ids, sqrtf((float)m->config.n_embd));
    return tape_tap(t, "embd", -1, x);
}

/* 13. Self-conditioning: what the step before thought, through a feed-forward of its own. */
static struct value *self_condition(struct tape *t, const struct model *m, struct value *soft)
{
    tape_at(t, -1, 13);
    struct value *h = tape_rms_norm(t, soft, &m->self_norm);
    struct value *gate = tape_linear(t, h, &m->self_gate);
    struct value *up = tape_linear(t, h, &m->self_up);
    h = tape_gelu_mul(t, gate, up);
    h = tape_linear(t, h, &m->self_down);
    return tape_tap(t, "self_cond", -1, h);
}

struct value *canvas_forward(struct tape *t, struct text_step *s, struct value *ids,
                             struct value *soft)
{
    static const struct weight none;
    struct value *x = input(t, s->m, ids);
    struct value *sc = self_condition(t, s->m, soft);
    x = tape_add(t, x, sc);
    x = tape_rms_norm(t, x, &none);
    tape_tap(t, "canvas_in", -1, x);
    return text_layers(t, s, x); /* 14 */
}

/* 15. Head.  16. Sampler. */
struct value *canvas_end(struct tape *t, const struct model *m, struct canvas *canvas,
                         struct value *x)
{
    const struct canvas_head head = { .canvas = canvas,
                                      .head = model_head(m),
                                      .table = &m->token_embd,
                                      .cap = m->config.softcap,
                                      .scale = sqrtf((float)m->config.n_embd) };
    tape_at(t, -1, 15);
    struct canvas_rows rows = tape_canvas_head(t, x, &head);
    tape_tap(t, "soft", -1, rows.soft);
    tape_tap(t, "entropy", -1, rows.entropy);
    tape_tap(t, "picks", -1, rows.picks);
    tape_at(t, -1, 16);
    tape_canvas_step(t, &head, rows);
    return rows.soft;
}
