/* differentiate.c - gradients: nodes that run the tape backwards.
 *
 * The walk goes from the tape's last node to its first. Each op has a rule, named in ops.def. It
 * reads the gradient of the node's result and appends nodes that compute those of its inputs. Only
 * values that depend on a trained adapter have a gradient. Several readers of a value each add
 * their part: `grad` is the sum so far, and the next part is added to it in place where that is
 * free.
 *
 * A gradient may read what the way forward has computed. Without keep_all those values are not
 * kept from one segment (tape_checkpoint) to its gradients: the segment's nodes are appended again.
 * What other segments read is there anyway, and the last segment's values have just been computed.
 */
#include <assert.h>

#include "tape/tape.h"

/* ---- what rules are made of ---- */

static bool learns(struct value *x)
{
    return tape_whole(x)->learns;
}

/* The second computation of x, or x where there is none. */
static struct value *again(struct tape *t, struct value *x)
{
    if (x && x->of && x->of->again) return tape_cols(t, x->of->again, x->col, x->at.cols);
    return x && x->again ? x->again : x;
}

/* The same for a gradient to read. The way forward stores it too: then fusion treats both alike,
 * and they have the same bits. */
static struct value *now(struct tape *t, struct value *x)
{
    if (tape_whole(x)->again) tape_whole(x)->pinned = true;
    return again(t, x);
}

/* The node's next result is a part of x's gradient. */
static struct value *part_of(struct tape *t, struct node *g, const struct value *x)
{
    return g ? tape_output(t, g, x, x->at.cols) : &t->nothing;
}

/* d is a part of x's gradient. */
static void give(struct tape *t, struct value *x, struct value *d)
{
    if (!learns(x)) return;
    assert(t->failed || !x->of);
    if (x->grad == d) x->grad = tape_times(t, d, 2);
    else x->grad = x->grad ? tape_add(t, x->grad, d) : d;
}

/* The node has added a part to x's gradient, and its next result is the sum. */
static void give_sum(struct tape *t, struct node *g, struct value *x)
{
    if (!g) return;
    struct value *sum = part_of(t, g, x);
    if (x->grad && !t->failed) sum->over = x->grad;
    x->grad = sum;
}

/* ---- the rules: n is a node whose result has a gradient ---- */

static void gradient_rows(struct tape *t, struct node *n)
{
    struct value *x = n->in[0], *in[] = { n->out[0]->grad, x->grad };
    struct node *g = tape_append(t, TAPE_ROWS_BWD, in, 2);
    if (g) g->n = n->n;
    give_sum(t, g, x);
}

/* Of a frozen W the gradient reads no x, and nobody wants that of an x which does not learn. */
static void gradient_linear(struct tape *t, struct node *n)
{
    bool trained = n->op == TAPE_LINEAR_Z;
    struct value *x = n->in[0], *in[] = { n->out[0]->grad, NULL, NULL, x->grad };
    if (trained) in[1] = now(t, x), in[2] = now(t, n->out[1]);
    struct node *g = tape_append(t, TAPE_LINEAR_BWD, in, 4);
    if (g) g->w = n->w;
    if (learns(x)) give_sum(t, g, x);
}

static void gradient_rms_norm(struct tape *t, struct node *n)
{
    struct value *x = n->in[0], *in[] = { n->out[0]->grad, now(t, x), x->grad };
    struct node *g = tape_append(t, TAPE_RMS_NORM_BWD, in, 3);
    if (g) g->w = n->w;
    give_sum(t, g, x);
}

static void gradient_head_norm(struct tape *t, struct node *n)
{
    struct value *x = n->in[0], *in[] = { n->out[0]->grad, now(t, x) };
    struct node *g = tape_append(t, TAPE_HEAD_NORM_BWD, in, 2);
    if (g) g->w = n->w, g->n = n->n;
    give(t, x, part_of(t, g, x));
}

/* The rotation back. */
static void gradient_rope(struct tape *t, struct node *n)
{
    struct value *x = n->in[0], *in[] = { n->out[0]->grad, now(t, n->in[1]) };
    struct node *g = tape_append(t, TAPE_ROPE_BWD, in, 2);
    if (g) g->n = n->n;
    give(t, x, part_of(t, g, x));
}

/* Layers may share keys and values, so those gradients are sums. */
static void gradient_self_attend(struct tape *t, struct node *n)
{
    struct value *q = n->in[0], *k = n->in[1], *v = n->in[2];
    struct value *in[] = { n->out[0]->grad, now(t, q), now(t, k), now(t, v), k->grad, v->grad };
    struct node *g = tape_append(t, TAPE_SELF_ATTEND_BWD, in, 6);
    if (g) g->with.kv = n->with.kv, g->n = n->n, g->n_head = n->n_head;
    give(t, q, part_of(t, g, q));
    give_sum(t, g, k);
    give_sum(t, g, v);
}

static void gradient_add(struct tape *t, struct node *n)
{
    give(t, n->in[0], n->out[0]->grad);
    give(t, n->in[1], n->out[0]->grad);
}

static void gradient_times(struct tape *t, struct node *n)
{
    give(t, n->in[0], tape_times(t, n->out[0]->grad, n->c));
}

static void gradient_scale(struct tape *t, struct node *n)
{
    give(t, n->in[0], tape_scale(t, n->out[0]->grad, n->w));
}

static void gradient_gelu_mul(struct tape *t, struct node *n)
{
    struct value *a = n->in[0], *b = n->in[1], *in[] = { n->out[0]->grad, now(t, a), now(t, b) };
    struct node *g = tape_append(t, TAPE_GELU_MUL_BWD, in, 3);
    give(t, a, part_of(t, g, a));
    if (learns(b)) give(t, b, part_of(t, g, b));
}

static void gradient_route(struct tape *t, struct node *n)
{
    struct value *x = n->in[0];
    struct value *in[] = { n->out[1]->grad, now(t, n->out[0]), now(t, n->out[1]) };
    struct node *g = in[0] ? tape_append(t, TAPE_ROUTE_BWD, in, 3) : NULL;
    if (in[0]) give(t, x, part_of(t, g, x));
}

static void gradient_experts(struct tape *t, struct node *n)
{
    struct value *x = n->in[0], *ids = n->in[1], *weights = n->in[2];
    struct value *in[] = { n->out[0]->grad, now(t, x), now(t, ids), now(t, weights), x->grad };
    struct node *g = tape_append(t, TAPE_EXPERTS_BWD, in, 5);
    if (g) g->with = n->with;
    give_sum(t, g, x);
    give(t, weights, part_of(t, g, weights));
}

typedef void (*rule_fn)(struct tape *t, struct node *n);

static const rule_fn gradient_none = NULL;

static rule_fn rule_of(enum tape_op op)
{
    const rule_fn all[] = {
#define OP(NAME, name, n_out, in_place, gradient) gradient_##gradient,
#include "tape/ops.def"
#undef OP
    };
    return all[op];
}

/* ---- the walk ---- */

static bool is_trained(const struct node *n)
{
    return n->op == TAPE_LINEAR_Z || (n->op == TAPE_EXPERTS && experts_learn(&n->with.experts));
}

/* Which values depend on a trained adapter. */
static void mark(struct tape *t)
{
    for (struct node *n = t->nodes; n; n = n->next) {
        bool yes = is_trained(n);
        for (int i = 0; i < NODE_IN; i++) yes = yes || (n->in[i] && learns(n->in[i]));
        for (int i = 0; i < NODE_OUT && n->out[i]; i++) n->out[i]->learns = yes;
    }
}

static bool has_gradient(const struct node *n)
{
    bool yes = false;
    for (int i = 0; i < NODE_OUT && n->out[i]; i++)
        yes = yes || (n->out[i]->learns && n->out[i]->grad);
    return yes;
}

/* Does another segment read x, so that it is kept? */
static bool is_kept(const struct value *x)
{
    bool kept = false;
    for (const struct use *u = x->uses; u; u = u->next)
        kept = kept || u->node->segment != x->from->segment;
    return kept;
}

static void append_again(struct tape *t, const struct node *n)
{
    struct value *in[NODE_IN];
    bool kept = true;
    for (int i = 0; i < NODE_OUT && n->out[i]; i++) kept = kept && is_kept(n->out[i]);
    if (kept) return;
    for (int i = 0; i < NODE_IN; i++) in[i] = again(t, n->in[i]);
    tape_at(t, n->layer, n->step);
    struct node *g = tape_append(t, n->op, in, NODE_IN);
    if (!g) return;
    g->w = n->w;
    g->with = n->with;
    g->mask = n->mask;
    g->n = n->n;
    g->n_head = n->n_head;
    g->c = n->c;
    for (int i = 0; i < NODE_OUT && n->out[i]; i++) {
        struct value *y = tape_output(t, g, n->out[i], n->out[i]->at.cols);
        if (!is_kept(n->out[i])) n->out[i]->again = y;
    }
}

/* The segment that ends with `last`, once more. What nobody reads of it, tape_finish drops. */
static void segment_again(struct tape *t, struct node *last)
{
    struct node *n = last;
    while (n->before && n->before->segment == last->segment) n = n->before;
    while (n->before != last) {
        append_again(t, n);
        n = n->next;
    }
}

void tape_differentiate(struct tape *t, struct value *x, struct value *dx, bool keep_all)
{
    struct node *last = t->end;
    if (t->failed) return;
    mark(t);
    if (learns(x)) x->grad = dx;
    t->segment++; /* of everything below */
    uint32_t computed = last->segment;
    for (struct node *n = last; n && !t->failed; n = n->before) {
        if (!has_gradient(n)) continue;
        rule_fn rule = rule_of(n->op);
        assert(rule);
        if (!keep_all && n->segment != computed) {
            computed = n->segment;
            segment_again(t, n);
        }
        tape_at(t, n->layer, n->step);
        rule(t, n);
    }
}
