/* constrained.c - what texts keep to: constraints of an engine, compiled once for the requests that
 * follow, and what may come next of a text that has one.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "engine.h"
#include "grammar/vocab.h"

/* ---- constraints ---- */

static void leave(struct bz_constraint *c)
{
    if (!c || --c->n_users) return;
    constraint_close(c->compiled);
    mem_free(c->text);
    mem_free(c);
}

void bz_constraint_close(bz_constraint *c)
{
    leave(c);
}

void engine_forget_constraints(struct bz_engine *e)
{
    for (size_t i = 0; i < CONSTRAINTS_KEPT; i++) leave(e->constraints[i]);
    vocab_close(e->vocab);
}

static enum bz_status compile(struct bz_constraint *c, struct bz_engine *e, struct bz_err *err)
{
    struct arena arena = { 0 };
    struct json *how;
    enum bz_status st = json_parse(&how, (struct str) { c->text, c->n }, &arena, err);
    if (st) st = fail_prefix(err, st, "a constraint");
    else if (how->type != JSON_OBJECT) st = fail(err, BZ_ERR_ARGUMENT, "a constraint is an object");
    if (st == BZ_OK && !e->vocab) st = vocab_open(&e->vocab, e->tokenizer, err);
    if (st == BZ_OK) st = constraint_open(&c->compiled, how, e->vocab, err);
    arena_free(&arena);
    return st;
}

static enum bz_status make(struct bz_constraint **out, struct bz_engine *e, struct str json,
                           struct bz_err *err)
{
    struct bz_constraint *c = mem_alloc(1, sizeof *c);
    if (!c) return fail_memory(err, sizeof *c);
    c->n_users = 1;
    c->n = json.n;
    c->text = mem_copy_str(json.p, json.n);
    enum bz_status st = c->text ? compile(c, e, err) : fail_memory(err, json.n);
    if (st) leave(c);
    else *out = c;
    return st;
}

/* The place of a kept one; that of the oldest where there is none. */
static size_t find_kept(const struct bz_engine *e, struct str json)
{
    size_t at = 0;
    for (; at < CONSTRAINTS_KEPT - 1 && e->constraints[at]; at++) {
        const struct bz_constraint *c = e->constraints[at];
        if (!c->broken && str_eq((struct str) { c->text, c->n }, json)) break;
    }
    return at;
}

enum bz_status bz_constraint_open(bz_constraint **out, bz_engine *e, const char *json,
                                  size_t n_bytes, struct bz_err *err)
{
    struct str text = { json, n_bytes };
    size_t at = find_kept(e, text);
    struct bz_constraint *c = e->constraints[at];
    if (!c || c->broken || !str_eq((struct str) { c->text, c->n }, text)) {
        enum bz_status st = make(&c, e, text, err);
        if (st) return st;
        leave(e->constraints[at]);
    }
    memmove(e->constraints + 1, e->constraints, at * sizeof *e->constraints);
    e->constraints[0] = c;
    c->n_users++;
    *out = c;
    return BZ_OK;
}

/* ---- what may come next ---- */

/* Do the caller's own wishes allow it? */
static bool may_draw(const struct generation *g, const struct bz_session *s, int32_t id)
{
    const struct bz_sampling *p = &g->options->sampling;
    size_t n;
    const int32_t *suppressed = tokenizer_suppressed(s->engine->tokenizer, &n);
    for (size_t i = 0; i < n; i++)
        if (suppressed[i] == id) return false;
    for (size_t i = 0; i < p->n_bias; i++)
        if (p->bias[i].id == id && p->bias[i].add == -INFINITY) return false;
    return !p->mask || (p->mask[id / 32] >> id % 32 & 1);
}

/* Tokens that must come, as far as there is room. Where the caller forbids one it is drawn from the
 * mask, which may have another that begins alike. */
static enum bz_status look_forced(struct generation *g, const struct bz_session *s,
                                  struct bz_err *err)
{
    const struct bz_generate_options *o = g->options;
    const int32_t *ids = NULL;
    size_t n = 0, room = s->kv.n_ctx - g->result.first - g->result.n;
    enum bz_status st = guide_forced(g->guide, &ids, &n, err);
    if (o->n_max && o->n_max - g->result.n < room) room = o->n_max - g->result.n;
    if (n > room) n = room;
    if (n > FORCED_MOST) n = FORCED_MOST;
    if (n > 1 && o->one_by_one) n = 1;
    for (size_t i = 0; i < n && st == BZ_OK && may_draw(g, s, ids[i]); i++) {
        if (o->ignore_end && tokenizer_is_end(s->engine->tokenizer, ids[i])) {
            if (i == 0) generation_finish(g, BZ_STOP_END);
            break;
        }
        g->next.forced[g->next.n_forced++] = ids[i];
    }
    return st;
}

/* The tokens of the guide that the caller allows too. */
static enum bz_status look_mask(struct generation *g, const struct bz_session *s,
                                struct bz_err *err)
{
    const uint32_t *own = g->options->sampling.mask, *guided = NULL;
    const struct vocab *v = s->engine->vocab;
    enum bz_status st = guide_mask(g->guide, &guided, err);
    if (st || !guided) return st;
    g->next.mask = guided;
    if (!own && !g->options->ignore_end) return BZ_OK;
    uint32_t left = 0;
    memcpy(g->mask, guided, v->n_words * sizeof *guided);
    for (uint32_t i = 0; i < v->n_ends && g->options->ignore_end; i++)
        g->mask[v->ends[i] / 32] &= ~(1u << v->ends[i] % 32);
    for (uint32_t i = 0; i < v->n_words; i++) {
        left |= g->mask[i];
        if (own) g->mask[i] &= own[i];
    }
    g->next.mask = g->mask;
    if (!left && g->options->ignore_end) generation_finish(g, BZ_STOP_END);
    return BZ_OK;
}

enum bz_status generation_look(struct generation *g, const struct bz_session *s, struct bz_err *err)
{
    g->next.n_forced = 0;
    g->next.mask = g->options->sampling.mask;
    if (!g->guide) return BZ_OK;
    enum bz_status st = look_forced(g, s, err);
    if (st == BZ_OK && !g->done && !g->next.n_forced) st = look_mask(g, s, err);
    if (st) g->options->constraint->broken = true;
    return st;
}
