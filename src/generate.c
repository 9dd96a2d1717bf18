/* generate.c - drawing tokens, and texts made of them, one step at a time.
 *
 * A generation is a state and not a loop: a host that must not block can take its steps one by one,
 * and the same rules end a text whether the CPU or the GPU drew the token.
 */
#include <math.h>

#include "base/mem.h"
#include "engine.h"

/* ---- choosing ---- */

struct bz_sampling bz_sampling_defaults(const bz_engine *e)
{
    struct bz_sampling p = {
        .penalty_window = 64, .repeat_penalty = 1, .temperature = 1, .top_k = 64, .top_p = 0.95f
    };
    const struct gguf *g = &e->file.gguf;
    double f;
    uint64_t u;
    if (gguf_get_f64(g, "general.sampling.temp", &f)) p.temperature = (float)f;
    if (gguf_get_f64(g, "general.sampling.top_p", &f)) p.top_p = (float)f;
    if (gguf_get_u64(g, "general.sampling.top_k", &u) && u <= UINT32_MAX) p.top_k = (uint32_t)u;
    if (!e->file.from_store) return p;
    const struct ollama_params *o = &e->file.store.params;
    if (o->temperature.set) p.temperature = (float)o->temperature.v;
    if (o->top_p.set) p.top_p = (float)o->top_p.v;
    if (o->min_p.set) p.min_p = (float)o->min_p.v;
    if (o->top_k.set) p.top_k = o->top_k.v > 0 ? (uint32_t)o->top_k.v : 0;
    if (o->repeat_penalty.set) p.repeat_penalty = (float)o->repeat_penalty.v;
    if (o->presence_penalty.set) p.presence_penalty = (float)o->presence_penalty.v;
    if (o->frequency_penalty.set) p.frequency_penalty = (float)o->frequency_penalty.v;
    if (o->repeat_last_n.set) /* Ollama's -1 means the whole context */
        p.penalty_window = o->repeat_last_n.v < 0 ? UINT32_MAX : (uint32_t)o->repeat_last_n.v;
    if (o->seed.set && o->seed.v >= 0) p.seed = (uint64_t)o->seed.v;
    return p;
}

enum bz_status sampling_check(struct bz_sampling *p, struct bz_err *err)
{
    if (p->top_p == 0) p->top_p = 1; /* zero is neutral */
    if (p->repeat_penalty == 0) p->repeat_penalty = 1;
    if (!(p->temperature >= 0))
        return fail(err, BZ_ERR_ARGUMENT, "temperature %g; it must be 0 or more",
                    (double)p->temperature);
    if (!(p->top_p > 0))
        return fail(err, BZ_ERR_ARGUMENT, "top-p %g; it must not be negative", (double)p->top_p);
    if (!(p->repeat_penalty > 0))
        return fail(err, BZ_ERR_ARGUMENT, "repeat penalty %g; it must not be negative",
                    (double)p->repeat_penalty);
    if (!isfinite(p->presence_penalty) || !isfinite(p->frequency_penalty))
        return fail(err, BZ_ERR_ARGUMENT, "presence and frequency penalties must be finite");
    if (!(p->min_p >= 0 && p->min_p <= 1))
        return fail(err, BZ_ERR_ARGUMENT, "min-p %g; it must be between 0 and 1", (double)p->min_p);
    return BZ_OK;
}

enum bz_status bz_session_sample(bz_session *s, const struct bz_sampling *sampling, int32_t *id,
                                 struct bz_err *err)
{
    if (session_diffuses(s))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "this model denoises a canvas of %u tokens; it draws no next token",
                    s->acts.canvas.n);
    if (!s->has_logits)
        return fail(err, BZ_ERR_ARGUMENT, "feed at least one token before drawing the next");
    struct bz_sampling p = sampling ? *sampling : bz_sampling_defaults(s->engine);
    enum bz_status st = sampling_check(&p, err);
    if (st) return st;
    size_t n_suppress;
    const int32_t *suppress = tokenizer_suppressed(s->engine->tokenizer, &n_suppress);
    /* The position numbers the draw: a branch of a conversation draws like the original. */
    return sampler_draw(&s->sampler, &p, s->logits, s->tokens, s->kv.n_past, suppress, n_suppress,
                        s->kv.n_past, id, err);
}

/* ---- generating ---- */

struct bz_generate_options bz_generate_defaults(const bz_engine *e)
{
    const struct ollama_params *p = &e->file.store.params;
    return (struct bz_generate_options) {
        .sampling = bz_sampling_defaults(e),
        .n_max = p->num_predict.set && p->num_predict.v > 0 ? (uint32_t)p->num_predict.v : 0,
        .stop = (const char *const *)e->stop,
        .n_stop = e->n_stop,
    };
}

static enum bz_status open_guide(struct generation *g, const struct bz_session *s,
                                 struct bz_err *err)
{
    const struct bz_generate_options *o = g->options;
    if (session_diffuses(s))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "the text of a diffusion model cannot be constrained yet");
    enum bz_status st = guide_open(&g->guide, o->constraint->compiled, err);
    if (st) return st;
    uint32_t n_words = vocab_mask_words(s->engine->vocab);
    g->mask = mem_alloc(n_words, sizeof *g->mask);
    return g->mask ? BZ_OK : fail_memory(err, n_words * sizeof *g->mask);
}

/* Where ends are ignored no token comes after the last one that may. */
static enum bz_status end_where_it_must(struct generation *g, const struct bz_session *s,
                                        struct bz_err *err)
{
    return g->guide && g->options->ignore_end && !g->done ? generation_look(g, s, err) : BZ_OK;
}

enum bz_status generation_begin(struct generation *g, const struct bz_session *s,
                                const struct bz_generate_options *options, struct bz_err *err)
{
    *g = (struct generation) { .options = options, .result.first = s->kv.n_past };
    g->diffusion.how = options->diffusion ? *options->diffusion : bz_diffusion_defaults(s->engine);
    g->stop.strings = options->stop;
    g->stop.n_strings = options->n_stop;
    enum bz_status st = options->constraint ? open_guide(g, s, err) : BZ_OK;
    if (st == BZ_OK) st = end_where_it_must(g, s, err);
    if (st) generation_close(g);
    return st;
}

void generation_close(struct generation *g)
{
    guide_close(g->guide);
    mem_free(g->mask);
    stop_free(&g->stop);
    buf_free(&g->text);
    buf_free(&g->ready);
    *g = (struct generation) { 0 };
}

void generation_finish(struct generation *g, enum bz_stop why)
{
    g->result.stop = why;
    g->done = true;
    g->text.n = 0;
    detok_end(&g->detok, &g->text);
    stop_feed(&g->stop, buf_str(&g->text), &g->ready);
    stop_end(&g->stop, &g->ready);
}

enum bz_status generation_check_text(const struct generation *g, struct bz_err *err)
{
    return g->ready.failed || g->text.failed ? fail_memory(err, g->text.n) : BZ_OK;
}

/* No token after this one where it was the last that is wanted, or that fits. */
void generation_check_room(struct generation *g, const struct bz_session *s)
{
    uint32_t n_canvases = g->diffusion.how.n_canvases;
    if ((g->options->n_max && g->result.n == g->options->n_max) ||
        (n_canvases && g->result.n_canvases == n_canvases))
        generation_finish(g, BZ_STOP_LENGTH);
    else if (g->result.first + g->result.n == s->kv.n_ctx) generation_finish(g, BZ_STOP_CONTEXT);
}

bool generation_has_room(struct generation *g, const struct bz_session *s)
{
    g->ready.n = 0;
    g->n_ends = 0;
    if (!g->done) generation_check_room(g, s);
    return !g->done;
}

enum bz_status generation_advance(struct generation *g, const struct bz_session *s, int32_t id,
                                  struct bz_err *err)
{
    const struct tokenizer *t = s->engine->tokenizer;
    g->result.n++;
    enum bz_status st = g->guide ? guide_advance(g->guide, id, err) : BZ_OK;
    if (st) {
        g->options->constraint->broken = st != BZ_ERR_ARGUMENT;
        return st;
    }
    if (!g->options->ignore_end && tokenizer_is_end(t, id)) {
        generation_finish(g, BZ_STOP_END);
    } else {
        g->text.n = 0;
        detok_feed(&g->detok, t, id, g->options->specials, &g->text);
        if (stop_feed(&g->stop, buf_str(&g->text), &g->ready)) generation_finish(g, BZ_STOP_STRING);
        else generation_check_room(g, s);
    }
    st = end_where_it_must(g, s, err);
    return st ? st : generation_check_text(g, err);
}

enum bz_status generation_resume(struct generation *g, const struct bz_session *s, uint32_t n,
                                 struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    g->result.first -= n;
    for (uint32_t i = 0; i < n && st == BZ_OK && !g->done; i++)
        st = generation_advance(g, s, s->tokens[g->result.first + i], err);
    return st;
}

/* The text has the tokens first, since a stop string may end it before the last of them. */
static enum bz_status read_forced(struct generation *g, struct bz_session *s, struct bz_err *err)
{
    const struct next_tokens next = g->next; /* each of them may make the text look again */
    size_t before = g->result.n;
    uint32_t n = 0;
    enum bz_status st = BZ_OK;
    while (n < next.n_forced && st == BZ_OK && !g->done) {
        st = generation_advance(g, s, next.forced[n++], err);
        g->ends[g->n_ends++] = (uint32_t)g->ready.n;
    }
    bool end = g->done && g->result.stop == BZ_STOP_END;
    if (st == BZ_OK) st = bz_session_feed(s, next.forced, n, end ? 0 : 1, NULL, NULL, err);
    if (st) g->result.n = before;
    return st;
}

enum bz_status generation_next(struct generation *g, struct bz_session *s, struct bz_err *err)
{
    int32_t id;
    if (!generation_has_room(g, s)) return generation_check_text(g, err);
    if (session_diffuses(s)) return diffusion_next(g, s, err);
    enum bz_status st = generation_look(g, s, err);
    if (st) return st;
    if (g->next.n_forced) return read_forced(g, s, err);
    struct bz_sampling sampling = g->options->sampling;
    sampling.mask = g->next.mask;
    st = bz_session_sample(s, &sampling, &id, err);
    if (st) return st;
    bool end = !g->options->ignore_end && tokenizer_is_end(s->engine->tokenizer, id);
    st = bz_session_feed(s, &id, 1, end ? 0 : 1, NULL, NULL, err);
    return st ? st : generation_advance(g, s, id, err);
}

enum bz_status bz_generate(bz_session *s, const struct bz_generate_options *options,
                           struct bz_generated *result, struct bz_err *err)
{
    struct bz_generate_options defaults = bz_generate_defaults(s->engine);
    if (!options) options = &defaults;
    struct generation g;
    enum bz_status st = generation_begin(&g, s, options, err);
    if (st) return st;
    while (!g.done && st == BZ_OK) {
        st = generation_next(&g, s, err);
        if (st == BZ_ERR_CANCELLED) { /* by a callback of the session */
            g.result.stop = BZ_STOP_CANCELLED;
            st = BZ_OK;
            break;
        }
        if (st || !g.ready.n || !options->on_text) continue;
        if (options->on_text(options->ctx, g.ready.data, g.ready.n)) continue;
        if (!g.done) g.result.stop = BZ_STOP_CANCELLED;
        break;
    }
    if (result) *result = g.result;
    generation_close(&g);
    return st;
}
