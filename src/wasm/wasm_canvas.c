/* wasm_canvas.c - exports: the canvas of a diffusion model.
 *
 * On the CPU bz_wasm_generation_next takes its steps. On the GPU the host drives: it submits a
 * step's program again and again, brings what a step shows into the session's copy, and reads a
 * finished canvas as it reads a prompt.
 */
#include "base/mem.h"
#include "gpu/ops_gpu.h"
#include "step.h"
#include "wasm/host.h"
#include "wasm/wasm_generation.h"

/* ---- options ---- */

/* A list of numbers, whole canvases one after the other; -1 is for a random token. */
static enum bz_status read_list(const int32_t **out, size_t *n_canvases, const struct json *list,
                                const char *what, uint32_t n_canvas, struct arena *a)
{
    if (!list) return BZ_OK;
    if (list->type != JSON_ARRAY || list->n % n_canvas)
        return fail(&wasm_err, BZ_ERR_ARGUMENT,
                    "\"%s\" is a list of numbers, %u for each canvas of this model", what,
                    n_canvas);
    int32_t *ids = arena_alloc(a, list->n + 1, sizeof *ids); /* of none too: it is a list */
    if (!ids) return fail_memory(&wasm_err, list->n * sizeof *ids);
    size_t n = 0;
    for (const struct json *j = list->child; j; j = j->next) {
        if (j->type != JSON_INT || j->integer < -1 || j->integer > INT32_MAX)
            return fail(&wasm_err, BZ_ERR_ARGUMENT, "\"%s\" is a list of whole numbers", what);
        ids[n++] = (int32_t)j->integer;
    }
    *out = ids;
    *n_canvases = n / n_canvas;
    return BZ_OK;
}

/* What a caller has chosen of a canvas: tokens that it begins with, which of them stay. */
static enum bz_status read_start(struct bz_diffusion *d, const struct json *j, uint32_t n_canvas,
                                 struct arena *a)
{
    const int32_t *stays = NULL;
    size_t n = 0, n_stays = 0;
    enum bz_status st = read_list(&d->canvas, &n, json_get(j, "canvas"), "canvas", n_canvas, a);
    if (st == BZ_OK) st = read_list(&stays, &n_stays, json_get(j, "fixed"), "fixed", n_canvas, a);
    if (st) return st;
    if ((d->canvas && n != 1) || (stays && n_stays != 1))
        return fail(&wasm_err, BZ_ERR_ARGUMENT, "\"canvas\" and \"fixed\" are of one canvas");
    if (!stays) return BZ_OK;
    bool *fixed = arena_alloc(a, n_canvas, sizeof *fixed);
    if (!fixed) return fail_memory(&wasm_err, n_canvas);
    for (uint32_t i = 0; i < n_canvas; i++) fixed[i] = stays[i] > 0;
    d->fixed = fixed;
    return BZ_OK;
}

enum bz_status wasm_read_diffusion(struct bz_generate_options *o, const bz_engine *e,
                                   const struct json *options, struct arena *a)
{
    const struct json *j = json_get(options, "diffusion");
    uint32_t n_canvas = bz_engine_info(e).n_canvas;
    if (!j) return BZ_OK;
    if (!n_canvas) return fail(&wasm_err, BZ_ERR_ARGUMENT, "\"diffusion\" is for diffusion models");
    struct bz_diffusion *d = arena_alloc(a, 1, sizeof *d);
    if (!d) return fail_memory(&wasm_err, sizeof *d);
    *d = bz_diffusion_defaults(e);
    json_u32(j, "steps", &d->n_steps);
    json_u32(j, "stability", &d->n_stable);
    json_u32(j, "canvases", &d->n_canvases);
    json_f32(j, "t_min", &d->t_min);
    json_f32(j, "t_max", &d->t_max);
    json_f32(j, "entropy_bound", &d->entropy_bound);
    json_f32(j, "confidence", &d->confidence);
    enum bz_status st = read_start(d, j, n_canvas, a);
    if (st == BZ_OK)
        st = read_list(&d->random, &d->n_random, json_get(j, "random"), "random", n_canvas, a);
    if (st == BZ_OK)
        st = read_list(&d->sampled, &d->n_sampled, json_get(j, "sampled"), "sampled", n_canvas, a);
    o->diffusion = d;
    return st;
}

/* ---- what a step shows ---- */

static bool lacks_canvas(const bz_session *s)
{
    return !session_diffuses(s) &&
           wasm_failed(fail(&wasm_err, BZ_ERR_ARGUMENT, "this model has no canvas"));
}

/* Where a part begins, in words. */
static uint32_t place_of(const bz_session *s, const struct tensor *part)
{
    return part->first - s->acts.canvas.all.first;
}

EXPORT(int32_t, bz_wasm_canvas, const bz_session *s)
{
    static struct host_canvas shown;
    const struct canvas *c = &s->acts.canvas;
    if (lacks_canvas(s)) return -1;
    shown = (struct host_canvas) { .buffer = s->engine->backend.fuse ? gpu_of(&c->all) : 0,
                                   .n = c->n,
                                   .n_shown = c->n_shown,
                                   .words = (uint32_t)(uintptr_t)s->canvas,
                                   .n_words = (uint32_t)c->all.size,
                                   .ids = place_of(s, &c->ids),
                                   .best = place_of(s, &c->best),
                                   .entropy = place_of(s, &c->entropy),
                                   .accepted = place_of(s, &c->accepted),
                                   .soft = (uint32_t)(uintptr_t)s->acts.soft.mem,
                                   .n_soft = (uint32_t)s->acts.soft.size };
    wasm_show(&shown, sizeof shown);
    return 0;
}

/* ---- steps on the GPU ---- */

EXPORT(int32_t, bz_wasm_gpu_canvas_begin, struct wasm_generation *w)
{
    struct run r = { .be = &w->session->engine->backend };
    if (lacks_canvas(w->session)) return -1;
    return wasm_failed(diffusion_begin(&w->g, w->session, &r, &wasm_err)) ? -1 : 0;
}

EXPORT(int32_t, bz_wasm_gpu_canvas_step, struct wasm_generation *w, uint32_t place)
{
    bz_session *s = w->session;
    struct run r = { .be = &s->engine->backend };
    if (wasm_failed(diffusion_noise(&w->g, s, &r, &wasm_err))) return -1;
    if (place) gpu_write_step(r.be, s->kv.n_past, s->acts.canvas.n, 0);
    return 0;
}

EXPORT(int32_t, bz_wasm_gpu_canvas_advance, struct wasm_generation *w)
{
    uint32_t n;
    w->g.ready.n = 0;
    if (wasm_failed(diffusion_advance(&w->g, w->session, &n, &wasm_err))) return -1;
    wasm_show(w->g.ready.data, w->g.ready.n);
    return (int32_t)n;
}

EXPORT(int32_t, bz_wasm_gpu_canvas_taken, struct wasm_generation *w)
{
    w->g.ready.n = 0;
    if (wasm_failed(diffusion_taken(&w->g, w->session, &wasm_err))) return -1;
    wasm_show(w->g.ready.data, w->g.ready.n);
    return w->g.done ? 1 : 0;
}
