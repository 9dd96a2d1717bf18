/* tape.c - the ops of a tape: each checks shapes and appends a node. */
#include "tape/tape.h"

#include <assert.h>
#include <string.h>

void tape_begin(struct tape *t, float eps, uint32_t rows, uint32_t n_out)
{
    struct arena arena = t->arena;
    arena_reset(&arena);
    *t = (struct tape) { .arena = arena, .eps = eps, .rows = rows, .n_out = n_out };
    t->layer = t->nothing.layer = -1;
}

void tape_free(struct tape *t)
{
    arena_free(&t->arena);
    *t = (struct tape) { 0 };
}

void tape_at(struct tape *t, int layer, int step)
{
    t->layer = layer;
    t->step = step;
}

static struct value *new_value(struct tape *t, struct value like)
{
    struct value *v = arena_alloc(&t->arena, 1, sizeof *v);
    if (!v) {
        t->failed = true;
        return &t->nothing;
    }
    *v = like;
    v->layer = -1;
    v->next = t->values;
    t->values = v;
    return v;
}

struct value *tape_room(struct tape *t, const struct value *like, uint32_t cols)
{
    return new_value(t, (struct value) { .at = { .rows = like->at.rows, .cols = cols },
                                         .row0 = like->row0,
                                         .leaves = like->leaves,
                                         .fixed = like->fixed });
}

static void add_use(struct value *x, struct node *n, int i)
{
    n->use[i] = (struct use) { n, tape_whole(x)->uses };
    tape_whole(x)->uses = &n->use[i];
}

struct node *tape_append(struct tape *t, enum tape_op op, struct value *const *in, int n_in)
{
    struct node *n = t->failed ? NULL : arena_alloc(&t->arena, 1, sizeof *n);
    if (!n) {
        t->failed = true;
        return NULL;
    }
    n->op = op;
    n->layer = t->layer;
    n->step = t->step;
    n->number = t->n_nodes++;
    n->segment = t->segment;
    for (int i = 0; i < n_in; i++) {
        n->in[i] = in[i];
        if (in[i]) add_use(in[i], n, i);
    }
    n->before = t->end;
    if (t->end) t->end->next = n;
    else t->nodes = n;
    t->end = n;
    return n;
}

/* Ops whose result may lie where their first input does. */
static bool in_place(enum tape_op op)
{
    static const bool all[] = {
#define OP(NAME, name, n_out, in_place, gradient) in_place,
#include "tape/ops.def"
#undef OP
    };
    return all[op];
}

struct value *tape_output(struct tape *t, struct node *n, const struct value *x, uint32_t cols)
{
    struct value *y = tape_room(t, x, cols);
    int i = 0;
    if (t->failed) return &t->nothing;
    while (n->out[i]) i++;
    y->from = n;
    if (!i && in_place(n->op) && !n->in[0]->of) y->over = n->in[0];
    n->out[i] = y;
    return y;
}

/* A node of up to two inputs with a result of x's rows; NULL where there is nothing to do. */
static struct node *append(struct tape *t, enum tape_op op, struct value *x, struct value *b,
                           uint32_t cols)
{
    struct value *in[] = { x, b };
    if (t->failed || x->at.rows == 0) return NULL;
    struct node *n = tape_append(t, op, in, b ? 2 : 1);
    if (n && tape_output(t, n, x, cols) == &t->nothing) return NULL;
    return n;
}

static struct value *made(struct tape *t, const struct node *n)
{
    return n ? n->out[0] : &t->nothing;
}

struct value *tape_input(struct tape *t, const struct tensor *own, uint32_t rows)
{
    struct value v = { .at = { .rows = rows, .cols = own->cols }, .own = own };
    return new_value(t, v);
}

struct value *tape_donated(struct tape *t, const struct tensor *own, uint32_t rows)
{
    struct value *x = tape_input(t, own, rows);
    x->donated = true;
    return x;
}

struct value *tape_embed(struct tape *t, const struct weight *table, struct value *ids, float c)
{
    struct node *n = append(t, TAPE_EMBED, ids, NULL, table->cols);
    if (n) n->w = table, n->c = c;
    return made(t, n);
}

struct value *tape_rows(struct tape *t, struct value *x, uint32_t first, uint32_t n_rows)
{
    if (n_rows == x->at.rows) return x;
    if (n_rows == 0) return &t->nothing;
    assert(t->failed || first + n_rows <= x->at.rows);
    struct node *n = append(t, TAPE_ROWS, x, NULL, x->at.cols);
    if (!n) return &t->nothing;
    n->n = first;
    n->out[0]->at.rows = n_rows;
    n->out[0]->row0 = x->row0 + first;
    n->out[0]->leaves = true;
    return n->out[0];
}

struct value *tape_cols(struct tape *t, struct value *x, uint32_t col, uint32_t n)
{
    if (x->at.rows == 0) return &t->nothing;
    assert(t->failed || (!x->of && col + n <= x->at.cols));
    struct value *v = tape_room(t, x, n);
    if (t->failed) return v;
    v->of = x;
    v->col = col;
    return v;
}

struct value *tape_linear(struct tape *t, struct value *x, const struct weight *w)
{
    assert(weight_exists(w) && (!x->at.rows || w->cols == x->at.cols));
    bool keeps = t->trains && weight_learns(w);
    struct node *n = append(t, keeps ? TAPE_LINEAR_Z : TAPE_LINEAR, x, NULL, w->rows);
    if (n) n->w = w;
    if (n && keeps) tape_output(t, n, x, lora_width(w));
    return made(t, n);
}

struct value *tape_rms_norm(struct tape *t, struct value *x, const struct weight *w)
{
    assert(!weight_exists(w) || !x->at.rows || w->cols == x->at.cols);
    struct node *n = append(t, TAPE_RMS_NORM, x, NULL, x->at.cols);
    if (n) n->w = w;
    return made(t, n);
}

struct value *tape_head_norm(struct tape *t, struct value *x, const struct weight *w, uint32_t size)
{
    assert(t->failed || (size && x->at.cols % size == 0));
    struct node *n = append(t, TAPE_HEAD_NORM, x, NULL, x->at.cols);
    if (n) n->w = w, n->n = size;
    return made(t, n);
}

struct value *tape_angles(struct tape *t, const struct rope *rope, uint32_t row0, uint32_t n_rows)
{
    if (t->failed || n_rows == 0) return &t->nothing;
    struct value like = { .at = { .rows = n_rows }, .row0 = row0, .leaves = row0 > 0 };
    struct node *n = tape_append(t, TAPE_ANGLES, NULL, 0);
    if (!n) return &t->nothing;
    n->with.rope = rope;
    return tape_output(t, n, &like, 2 * rope->n_pair);
}

struct value *tape_rope(struct tape *t, struct value *x, struct value *angles, uint32_t size)
{
    assert(t->failed || !x->at.rows || angles->row0 == x->row0);
    struct node *n = append(t, TAPE_ROPE, x, angles, x->at.cols);
    if (n) n->n = size;
    return made(t, n);
}

/* What a cache would hold. */
struct own_kv {
    const struct kv *kv;
    struct value *k, *v;
    struct own_kv *next;
};

static void write_own(struct tape *t, const struct kv *kv, struct value *k, struct value *v)
{
    struct own_kv *own = arena_alloc(&t->arena, 1, sizeof *own);
    if (own) *own = (struct own_kv) { kv, k, v, t->own_kv };
    else t->failed = true;
    t->own_kv = own;
}

void tape_kv_write(struct tape *t, struct kv *kv, struct value *k, struct value *v)
{
    struct value *in[] = { k, v };
    if (t->failed || k->at.rows == 0) return;
    if (t->trains) {
        write_own(t, kv, k, v);
        return;
    }
    struct node *n = tape_append(t, TAPE_KV_WRITE, in, 2);
    if (n) n->with.kv = kv;
}

static struct value *self_attend(struct tape *t, struct value *q, const struct attend *a)
{
    const struct own_kv *own = t->own_kv;
    while (own->kv != a->kv) own = own->next;
    struct value *in[] = { q, own->k, own->v };
    struct node *n = tape_append(t, TAPE_SELF_ATTEND, in, 3);
    if (!n) return &t->nothing;
    n->with.kv = a->kv;
    n->n = a->mask.window;
    n->n_head = a->n_head;
    return tape_output(t, n, q, q->at.cols);
}

/* Attention of text is a node of its own, which backends fuse and gradients know. */
struct value *tape_attend(struct tape *t, struct value *q, const struct attend *a)
{
    bool text = a->mask.kind == MASK_CAUSAL && a->scale == 1;
    struct value *in[] = { q, a->k ? a->k : a->later, a->v };
    int n_in = a->k ? 3 : a->later ? 2 : 1;
    assert(t->failed || !a->later || !q->at.rows || a->later->row0 == q->row0);
    if (t->failed || q->at.rows == 0) return &t->nothing;
    if (text && t->trains) return self_attend(t, q, a);
    struct node *n = tape_append(t, text ? TAPE_ATTEND : TAPE_ATTEND_MASKED, in, n_in);
    if (!n) return &t->nothing;
    n->with.kv = a->kv;
    n->mask = a->mask.kind;
    n->n = a->mask.window;
    n->n_head = a->n_head;
    n->c = a->scale;
    return tape_output(t, n, q, q->at.cols);
}

struct value *tape_add(struct tape *t, struct value *a, struct value *b)
{
    assert(t->failed || (a->at.rows == b->at.rows && a->at.cols == b->at.cols));
    return made(t, append(t, TAPE_ADD, a, b, a->at.cols));
}

struct value *tape_times(struct tape *t, struct value *x, float c)
{
    struct node *n = append(t, TAPE_TIMES, x, NULL, x->at.cols);
    if (n) n->c = c;
    return made(t, n);
}

struct value *tape_scale(struct tape *t, struct value *x, const struct weight *w)
{
    if (!weight_exists(w)) return x;
    struct node *n = append(t, TAPE_SCALE, x, NULL, x->at.cols);
    if (n) n->w = w;
    return made(t, n);
}

struct value *tape_softcap(struct tape *t, struct value *x, float c)
{
    if (c == 0) return x;
    struct node *n = append(t, TAPE_SOFTCAP, x, NULL, x->at.cols);
    if (n) n->c = c;
    return made(t, n);
}

struct value *tape_gelu_mul(struct tape *t, struct value *a, struct value *b)
{
    assert(t->failed || (a->at.rows == b->at.rows && a->at.cols == b->at.cols));
    return made(t, append(t, TAPE_GELU_MUL, a, b, a->at.cols));
}

struct chosen tape_route(struct tape *t, struct value *scores, uint32_t n_used)
{
    struct node *n = append(t, TAPE_ROUTE, scores, NULL, n_used);
    struct value *weights = n ? tape_output(t, n, scores, n_used) : &t->nothing;
    return (struct chosen) { made(t, n), weights };
}

struct value *tape_experts(struct tape *t, struct value *x, struct chosen by,
                           const struct experts *e)
{
    struct value *in[] = { x, by.ids, by.weights };
    if (t->failed || x->at.rows == 0) return &t->nothing;
    struct node *n = tape_append(t, TAPE_EXPERTS, in, 3);
    if (!n) return &t->nothing;
    n->with.experts = *e;
    return tape_output(t, n, x, e->down->rows);
}

struct head_loss tape_head_loss(struct tape *t, struct value *x, const struct weight *head,
                                struct value *targets, float cap, float weight)
{
    struct value *in[] = { x, targets };
    struct node *n = tape_append(t, TAPE_HEAD_LOSS, in, 2);
    if (!n) return (struct head_loss) { &t->nothing, &t->nothing };
    n->w = head;
    n->c = cap;
    n->with.weight = weight;
    struct value *loss = tape_output(t, n, x, 1);
    struct value *dx = tape_output(t, n, x, x->at.cols);
    return (struct head_loss) { loss, dx };
}

void tape_checkpoint(struct tape *t)
{
    t->segment++;
}

struct value *tape_add_bias(struct tape *t, struct value *x, const struct weight *b)
{
    assert(weight_exists(b) && (!x->at.rows || b->cols == x->at.cols));
    struct node *n = append(t, TAPE_ADD_BIAS, x, NULL, x->at.cols);
    if (n) n->w = b;
    return made(t, n);
}

struct value *tape_clamp(struct tape *t, struct value *x, float low, float high)
{
    struct node *n = append(t, TAPE_CLAMP, x, NULL, x->at.cols);
    if (n) n->with.clamp.low = low, n->with.clamp.high = high;
    return made(t, n);
}

struct value *tape_layer_norm(struct tape *t, struct value *x, const struct weight *w,
                              const struct weight *b, float eps)
{
    assert(!weight_exists(w) || !x->at.rows || w->cols == x->at.cols);
    assert(!weight_exists(b) || !x->at.rows || b->cols == x->at.cols);
    struct node *n = append(t, TAPE_LAYER_NORM, x, NULL, x->at.cols);
    if (n) n->w = w, n->with.bias = b, n->c = eps;
    return made(t, n);
}

struct value *tape_angles_2d(struct tape *t, const struct rope *rope, struct value *xy)
{
    assert(t->failed || !xy->at.rows || xy->at.cols == 2);
    struct node *n = append(t, TAPE_ANGLES_2D, xy, NULL, 4 * rope->n_pair);
    if (n) n->with.rope = rope;
    return made(t, n);
}

struct value *tape_rope_2d(struct tape *t, struct value *x, struct value *angles, uint32_t size)
{
    assert(t->failed || (size % 4 == 0 && x->at.cols % size == 0));
    assert(t->failed || !x->at.rows || angles->row0 == x->row0);
    struct node *n = append(t, TAPE_ROPE_2D, x, angles, x->at.cols);
    if (n) n->n = size;
    return made(t, n);
}

/* A result whose number of rows is not that of x. */
static struct value *resized(struct tape *t, struct node *n, uint32_t rows)
{
    if (!n) return &t->nothing;
    n->out[0]->at.rows = rows;
    n->out[0]->fixed = true;
    return n->out[0];
}

struct value *tape_unfold(struct tape *t, struct value *x, const struct conv *c)
{
    assert(t->failed || (c->width && x->at.rows % c->width == 0));
    uint32_t rows = conv_count(&c->x, c->width) * conv_count(&c->y, x->at.rows / c->width);
    if (rows == 0) return &t->nothing;
    struct node *n = append(t, TAPE_UNFOLD, x, NULL, c->x.k * c->y.k * x->at.cols);
    if (n) n->with.conv = *c;
    return resized(t, n, rows);
}

struct value *tape_conv_depthwise(struct tape *t, struct value *x, const struct weight *w)
{
    assert(weight_exists(w) && (!x->at.rows || w->rows == x->at.cols));
    struct node *n = append(t, TAPE_CONV_DEPTHWISE, x, NULL, x->at.cols);
    if (n) n->w = w;
    return made(t, n);
}

struct value *tape_pool(struct tape *t, struct value *x, uint32_t width, uint32_t k)
{
    assert(t->failed || (k && width % k == 0 && x->at.rows % (width * k) == 0));
    struct node *n = append(t, TAPE_POOL, x, NULL, x->at.cols);
    if (n) n->with.conv.width = width, n->n = k;
    return resized(t, n, x->at.rows / (k * k));
}

struct canvas_rows tape_canvas_head(struct tape *t, struct value *x, const struct canvas_head *h)
{
    struct node *n = append(t, TAPE_CANVAS_HEAD, x, NULL, h->table->cols);
    if (!n) return (struct canvas_rows) { &t->nothing, &t->nothing, &t->nothing };
    n->with.head = *h;
    struct value *entropy = tape_output(t, n, x, 1);
    struct value *picks = tape_output(t, n, x, 2);
    return (struct canvas_rows) { made(t, n), entropy, picks };
}

void tape_canvas_step(struct tape *t, const struct canvas_head *h, struct canvas_rows rows)
{
    struct value *in[] = { rows.entropy, rows.picks };
    if (t->failed || rows.picks->at.rows == 0) return;
    struct node *n = tape_append(t, TAPE_CANVAS_STEP, in, 2);
    if (n) n->with.head = *h;
}

struct value *tape_tap(struct tape *t, const char *name, int layer, struct value *x)
{
    if (!t->taps || x->at.rows == 0) return x;
    x->pinned = true;
    x->tap = name;
    x->layer = layer;
    return x;
}

void tape_result(struct tape *t, struct value *x, const struct tensor *own)
{
    if (x->at.rows == 0) return;
    assert(own->cols == x->at.cols && !x->own);
    (void)t;
    x->own = own;
    x->pinned = true;
}

/* ---- passes ---- */

/* Does it do something by itself: write a cache or a canvas, sum an adapter's gradients, or make
 * what is pinned? */
static bool acts_alone(const struct node *n)
{
    bool alone = n->op == TAPE_KV_WRITE || n->op == TAPE_CANVAS_STEP;
    if (n->op == TAPE_LINEAR_BWD) alone = weight_learns(n->w);
    if (n->op == TAPE_EXPERTS_BWD) alone = experts_learn(&n->with.experts);
    for (int i = 0; i < NODE_OUT && n->out[i]; i++) alone = alone || n->out[i]->pinned;
    return alone;
}

/* Does a node that is read itself read what n makes? Those come after n. */
static bool has_readers(const struct node *n)
{
    for (int i = 0; i < NODE_OUT && n->out[i]; i++)
        for (const struct use *u = n->out[i]->uses; u; u = u->next)
            if (u->node->read) return true;
    return false;
}

/* The uses by nodes that are gone leave the lists. */
static void drop_uses(struct value *x)
{
    struct use **at = &x->uses;
    while (*at) {
        if ((*at)->node->read) at = &(*at)->next;
        else *at = (*at)->next;
    }
}

void tape_finish(struct tape *t)
{
    struct node *kept = NULL;
    for (struct node *n = t->end; n; n = n->before) {
        n->read = acts_alone(n) || has_readers(n);
        if (!n->read) continue;
        n->next = kept;
        if (!kept) t->end = n;
        kept = n;
    }
    t->nodes = kept;
    t->n_nodes = 0;
    if (!kept) t->end = NULL;
    for (struct node *n = kept, *before = NULL; n; before = n, n = n->next) {
        n->before = before;
        n->number = t->n_nodes++;
    }
    for (struct value *v = t->values; v; v = v->next) drop_uses(v);
}
