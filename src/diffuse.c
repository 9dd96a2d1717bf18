/* diffuse.c - texts of a diffusion model: canvases are denoised, become text, and are read.
 *
 * A step is run.c's business; here is what the host does before and after one. Like a generation it
 * is a state and not a loop, so a host that must not block can take its steps one by one.
 */
#include <string.h>

#include "engine.h"

_Static_assert((int)BZ_CANVAS_STABLE == (int)CANVAS_STABLE &&
                   (int)BZ_CANVAS_STEPS == (int)CANVAS_STEPS,
               "the public reasons are those of the backend");

struct bz_diffusion bz_diffusion_defaults(const bz_engine *e)
{
    const struct canvas_config *c = &e->model.config.canvas;
    return (struct bz_diffusion) { .n_steps = c->n_steps,
                                   .t_min = c->t_min,
                                   .t_max = c->t_max,
                                   .entropy_bound = c->entropy_bound,
                                   .confidence = c->confidence,
                                   .n_stable = c->n_stable };
}

/* ---- checks ---- */

static enum bz_status check_range(const char *what, double v, double min, double max,
                                  struct bz_err *err)
{
    if (v >= min && v <= max) return BZ_OK;
    return fail(err, BZ_ERR_ARGUMENT, "%s %g; it must be between %g and %g", what, v, min, max);
}

/* Tokens that the caller chose. */
static enum bz_status check_tokens(const struct bz_session *s, const char *what, const int32_t *ids,
                                   size_t n_canvases, int32_t least, struct bz_err *err)
{
    size_t n = n_canvases * s->acts.canvas.n;
    uint32_t n_vocab = s->engine->model.config.n_vocab;
    for (size_t i = 0; ids && i < n; i++)
        if (ids[i] < least || (ids[i] >= 0 && (uint32_t)ids[i] >= n_vocab))
            return fail(err, BZ_ERR_ARGUMENT, "token id %d in the %s; this vocabulary ends at %u",
                        ids[i], what, n_vocab - 1);
    return BZ_OK;
}

static enum bz_status check_options(const struct generation *g, const struct bz_session *s,
                                    struct bz_err *err)
{
    const struct bz_diffusion *d = &g->diffusion.how;
    const struct bz_sampling *p = &g->options->sampling;
    if (s->kv.n_past == 0)
        return fail(err, BZ_ERR_ARGUMENT, "feed at least one token before a canvas");
    if (p->mask || p->n_bias)
        return fail(err, BZ_ERR_UNSUPPORTED, "a canvas takes neither a grammar nor a logit bias");
    if (d->fixed && !d->canvas)
        return fail(err, BZ_ERR_ARGUMENT, "fixed positions need the canvas that they are of");
    enum bz_status st = check_range("steps", d->n_steps, 1, MAX_CANVAS_STEPS, err);
    if (!st) st = check_range("stability", d->n_stable, 0, MAX_CANVAS_STEPS, err);
    if (!st)
        st = check_range("temperature", (double)d->t_min, MIN_TEMPERATURE, MAX_TEMPERATURE, err);
    if (!st)
        st = check_range("temperature", (double)d->t_max, MIN_TEMPERATURE, MAX_TEMPERATURE, err);
    if (!st) st = check_range("entropy bound", (double)d->entropy_bound, 0, MAX_ENTROPY, err);
    if (!st) st = check_range("confidence", (double)d->confidence, 0, MAX_ENTROPY, err);
    if (!st) st = check_tokens(s, "canvas", d->canvas, 1, -1, err);
    if (!st) st = check_tokens(s, "random canvases", d->random, d->n_random, 0, err);
    if (!st) st = check_tokens(s, "draws", d->sampled, d->n_sampled, 0, err);
    return st;
}

/* ---- before a step ---- */

/* The caller's next canvas of those; an error where they are used up. */
static enum bz_status next_of(const struct bz_session *s, const char *what, const int32_t *ids,
                              size_t n, size_t *used, int32_t *to, struct bz_err *err)
{
    uint32_t size = s->acts.canvas.n;
    if (!ids) return BZ_OK;
    if (*used == n)
        return fail(err, BZ_ERR_ARGUMENT, "the script has %zu %s, and this step needs another", n,
                    what);
    memcpy(to, ids + *used * size, size * sizeof *to);
    ++*used;
    return BZ_OK;
}

static enum bz_status first_tokens(struct diffusion *d, const struct bz_session *s, bool first,
                                   const struct canvas_state *state, struct bz_err *err)
{
    const struct canvas *c = &s->acts.canvas;
    int32_t *ids = session_canvas(s, &c->ids), *fixed = session_canvas(s, &c->fixed);
    const struct bz_diffusion *how = &d->how;
    uint32_t n_vocab = s->engine->model.config.n_vocab;
    for (uint32_t i = 0; i < c->n; i++) {
        ids[i] = (int32_t)canvas_fresh(canvas_row_key(state->key, 0, i), n_vocab);
        fixed[i] = -1;
    }
    if (!first || !how->canvas)
        return next_of(s, "random canvases", how->random, how->n_random, &d->n_random, ids, err);
    for (uint32_t i = 0; i < c->n; i++) {
        if (how->canvas[i] >= 0) ids[i] = how->canvas[i];
        if (how->fixed && how->fixed[i]) fixed[i] = ids[i];
    }
    return BZ_OK;
}

enum bz_status diffusion_begin(struct generation *g, struct bz_session *s, struct run *r,
                               struct bz_err *err)
{
    struct canvas *c = &s->acts.canvas;
    struct diffusion *d = &g->diffusion;
    bool first = g->result.n_canvases == 0;
    enum bz_status st = first ? check_options(g, s, err) : BZ_OK;
    if (st) return st;
    /* The position numbers the canvas: a branch of a conversation draws like the original. */
    const struct canvas_state state = {
        .key = (uint32_t)(rng_at(g->options->sampling.seed, s->kv.n_past) >> 32),
        .n_steps = d->how.n_steps,
        .n_stable = d->how.n_stable,
        .t_min = d->how.t_min,
        .t_max = d->how.t_max,
        .entropy_bound = d->how.entropy_bound,
        .confidence = d->how.confidence,
    };
    memset(s->canvas, 0, c->all.rows * sizeof *s->canvas);
    memset(session_canvas(s, &c->draws), 0xff, c->n * sizeof(int32_t)); /* -1 */
    memset(session_canvas(s, &c->fresh), 0xff, c->n * sizeof(int32_t));
    memcpy(s->canvas, &state, sizeof state);
    st = first_tokens(d, s, first, &state, err);
    if (st) return st;
    op_write(r, &c->all, 0, s->canvas, c->all.rows);
    model_forget(r, &s->acts);
    d->begun = true;
    return BZ_OK;
}

enum bz_status diffusion_noise(struct generation *g, struct bz_session *s, struct run *r,
                               struct bz_err *err)
{
    struct canvas *c = &s->acts.canvas;
    struct diffusion *d = &g->diffusion;
    const struct bz_diffusion *how = &d->how;
    int32_t *draws = session_canvas(s, &c->draws), *fresh = session_canvas(s, &c->fresh);
    enum bz_status st =
        next_of(s, "draws", how->sampled, how->n_sampled, &d->n_sampled, draws, err);
    if (st == BZ_OK)
        st = next_of(s, "random canvases", how->random, how->n_random, &d->n_random, fresh, err);
    if (st) return st;
    if (how->sampled) op_write(r, &c->draws, 0, draws, c->n);
    if (how->random) op_write(r, &c->fresh, 0, fresh, c->n);
    return BZ_OK;
}

/* ---- after a step ---- */

static bool show(const struct generation *g, const struct bz_session *s)
{
    const struct canvas *c = &s->acts.canvas;
    const struct canvas_state *state = (const void *)s->canvas;
    const struct bz_diffusion *how = &g->diffusion.how;
    const struct bz_canvas seen = { .canvas = g->result.n_canvases,
                                    .step = state->step,
                                    .n = c->n,
                                    .n_accepted = state->n_accepted,
                                    .ids = session_canvas(s, &c->ids),
                                    .best = session_canvas(s, &c->best),
                                    .entropy = session_canvas(s, &c->entropy),
                                    .accepted = session_canvas(s, &c->accepted),
                                    .mean_entropy = state->mean_entropy,
                                    .stopped = (enum bz_canvas_stop)state->stopped };
    return !how->on_step || how->on_step(how->ctx, &seen);
}

enum bz_status diffusion_advance(struct generation *g, struct bz_session *s, uint32_t *n,
                                 struct bz_err *err)
{
    const struct canvas_state *state = (const void *)s->canvas;
    const int32_t *best = session_canvas(s, &s->acts.canvas.best);
    *n = 0;
    g->result.n_steps++;
    bool stopped = state->stopped, go_on = show(g, s);
    if (!go_on) generation_finish(g, BZ_STOP_CANCELLED);
    if (!go_on || !stopped) return BZ_OK;
    enum bz_status st = BZ_OK;
    for (uint32_t i = 0; i < s->acts.canvas.n && st == BZ_OK && !g->done; i++) {
        *n = i + 1;
        st = generation_advance(g, s, best[i], err);
    }
    return st;
}

enum bz_status diffusion_taken(struct generation *g, const struct bz_session *s, struct bz_err *err)
{
    g->diffusion.begun = false;
    g->result.n_canvases++;
    if (!g->done) generation_check_room(g, s);
    return generation_check_text(g, err);
}

enum bz_status diffusion_next(struct generation *g, struct bz_session *s, struct bz_err *err)
{
    struct run r = session_run(s);
    struct canvas *c = &s->acts.canvas;
    uint32_t n = 0;
    size_t before = g->result.n;
    enum bz_status st = g->diffusion.begun ? BZ_OK : diffusion_begin(g, s, &r, err);
    if (st == BZ_OK) st = diffusion_noise(g, s, &r, err);
    if (st) return st;
    model_denoise(&r, &s->engine->model, &s->acts);
    model_check(&r, &s->engine->model);
    op_read(&r, &c->all, 0, s->canvas, c->n_shown);
    if (r.status) return fail(err, r.status, "%s", r.err.text);
    st = diffusion_advance(g, s, &n, err);
    if (st == BZ_OK && n)
        st = bz_session_feed(s, session_canvas(s, &c->best), n, 0, NULL, NULL, err);
    if (st) g->result.n = before;
    return st || !n ? st : diffusion_taken(g, s, err);
}
