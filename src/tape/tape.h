/* tape.h - a network written down before it runs.
 *
 * A model file calls the tape_* functions below. Each appends one node and returns the value that
 * the node will compute; nothing runs yet. The passes that follow read the list of nodes:
 *
 *   tape_differentiate   (training) appends the nodes that compute gradients
 *   tape_finish   drops nodes whose results nobody reads
 *   tape_groups   makes every node a group; a backend may fuse groups (struct backend.fuse)
 *   tape_place    gives each value that must exist a place in memory, by when it is read last
 *   tape_run      hands the groups to the backend, one after the other
 *
 * A tape knows no position: tape_run gets the position of the step's first row. Errors are sticky:
 * once memory is short every call returns t->nothing, and the caller looks at t->failed at the end.
 */
#ifndef BEZEL_TAPE_TAPE_H
#define BEZEL_TAPE_TAPE_H

#include "base/mem.h"
#include "ops/ops_optional.h"

enum tape_op {
#define OP(NAME, name, n_out, in_place, gradient) TAPE_##NAME,
#include "tape/ops.def"
#undef OP
    N_TAPE_OPS
};

enum { NODE_IN = 6, NODE_OUT = 3 };

struct node;
struct group;

/* A reader of a value. */
struct use {
    struct node *node;
    struct use *next;
};

/* What a node computes, or an input: rows x cols numbers. */
struct value {
    struct tensor at;         /* its shape; its memory, once tape_place has run */
    const struct tensor *own; /* memory that outlives the step, for inputs and results; or NULL */
    struct node *from;        /* NULL: an input, or room that a group asks for */
    struct value *of;         /* a view of the columns [col, col + at.cols) of this one; or NULL */
    uint32_t col;
    uint32_t row0;   /* which row of the step its first row is */
    bool leaves;     /* only rows that go on to the end of the network: at most max_out */
    bool donated;    /* `own` is free once x was read: nobody wants it after the step */
    bool fixed;      /* as many rows as it has now, however many the step has */
    bool pinned;     /* a tap or a result: it must exist, whoever reads it */
    const char *tap; /* its name, or NULL */
    int layer;       /* -1: outside of layers */
    struct use *uses;
    struct value *over;   /* computed in this one's place where that is free then */
    struct value *behind; /* lies right behind this one, in one buffer */
    struct value *ready;  /* room for at.ready, as long as this one exists; or NULL */
    uint32_t most;        /* rows at most, in any step; 0: those of the step */
    struct value *next;   /* in the tape's list */
    /* differentiate.c */
    bool learns;         /* it depends on a trained adapter */
    struct value *grad;  /* the loss's gradient by it, as far as it is summed; NULL: none yet */
    struct value *again; /* the same numbers, computed again for gradients; or NULL */
    /* place.c */
    bool placed;             /* it needs memory */
    uint32_t first, last;    /* groups between which it must exist */
    struct value *root;      /* whose memory it shares; itself where nobody's */
    uint32_t slot;           /* of the pool */
    uint64_t offset;         /* in numbers */
    struct value *same_slot; /* the next one there */
};

struct node {
    enum tape_op op;
    int layer, step;                           /* tape_at */
    uint32_t number;                           /* in the order of the tape */
    uint32_t segment;                          /* which of those that tape_checkpoint cuts */
    bool read;                                 /* somebody wants its results */
    struct value *in[NODE_IN], *out[NODE_OUT]; /* an op may leave inputs out: NULL */
    struct use use[NODE_IN];
    const struct weight *w;
    union {
        const struct rope *rope;
        struct kv *kv;
        struct experts experts;
        const struct weight *bias;
        struct {
            float low, high;
        } clamp;
        struct conv conv;
        struct canvas_head head;
        float weight; /* of a loss */
    } with;
    enum mask_kind mask;
    uint32_t n; /* size of a head; window; first row; size of a square */
    uint32_t n_head;
    float c; /* a constant factor, a cap, or an eps */
    struct group *group;
    struct node *before, *next;
    struct node *next_cache; /* the next one that reads or writes any cache */
};

enum { GROUP_NODES = 12, GROUP_ROOM = 8, GROUP_LINEARS = 3 };

/* Nodes that one call of the backend computes. */
struct group {
    struct node *nodes[GROUP_NODES]; /* in the order of the tape */
    uint32_t n_nodes;
    struct node *place;             /* runs in the turn of this one of them */
    uint32_t number;                /* among the groups that run */
    struct value *room[GROUP_ROOM]; /* must have memory: results, and what the backend writes */
    uint32_t n_room;
    /* Records the nodes as one; NULL: the one node runs as it is. */
    void (*run)(struct run *r, const struct group *g, uint32_t pos);
    uint32_t rule; /* of gpu/fuse.c; 0: none */
    /* What `run` needs to know. Each rule says which of them it sets. */
    struct value *x, *branch, *other, *to, *norm, *sum, *by, *q, *k, *v, *table, *attn;
    struct value *y[GROUP_LINEARS];
    const struct weight *w[GROUP_LINEARS];
    const struct weight *branch_w, *other_w, *post_w, *scale_w, *norm_w, *q_w, *k_w;
    const struct node *attend, *write, *route, *experts;
    uint32_t n_linears;
    bool v_from_k; /* the values are the raw keys */
    float eps;
};

struct tape {
    struct arena arena;
    struct node *nodes, *end;
    int layer, step;     /* of the nodes that come next */
    struct node *caches; /* the first of those that read or write a cache; set by tape_groups */
    struct value *values;
    uint32_t n_nodes, n_groups;
    uint32_t segment;           /* of the next node */
    struct own_kv *own_kv;      /* keys and values that are in no cache */
    float eps;                  /* of every norm */
    bool trains;                /* no cache; trained linears keep what gradients need */
    bool taps;                  /* tap() pins */
    bool failed;                /* memory was short */
    bool ready;                 /* finished, grouped and placed */
    uint32_t rows, n_out;       /* of the step */
    uint32_t max_rows, max_out; /* of any step that is placed alike */
    struct value nothing;       /* zero rows */
};

/* Start anew, in the memory of the last one. */
void tape_begin(struct tape *t, float eps, uint32_t rows, uint32_t n_out);
void tape_free(struct tape *t);

/* What follows belongs to this step of MODEL.md, in this layer (-1: outside of layers). */
void tape_at(struct tape *t, int layer, int step);

/* ---- ops: the comments give the formula of a row. Values with zero rows append nothing. ---- */

/* A value that the host, or another tape, has put into `own`: its rows [row0, row0 + rows). */
struct value *tape_input(struct tape *t, const struct tensor *own, uint32_t rows);

/* The same where nobody wants the input afterwards. */
struct value *tape_donated(struct tape *t, const struct tensor *own, uint32_t rows);

/* y = table[id] * c */
struct value *tape_embed(struct tape *t, const struct weight *table, struct value *ids, float c);

/* The rows [first, first + n) of x; x itself where that is all of them. */
struct value *tape_rows(struct tape *t, struct value *x, uint32_t first, uint32_t n);

/* The columns [col, col + n) of x: no node, and only the second argument of gelu_mul takes it. */
struct value *tape_cols(struct tape *t, struct value *x, uint32_t col, uint32_t n);

/* y = W x, and what the adapters of W add. A training tape keeps z = A x of a trained W. */
struct value *tape_linear(struct tape *t, struct value *x, const struct weight *w);

/* y = x / sqrt(mean(x^2) + eps) * w; w absent: no weight */
struct value *tape_rms_norm(struct tape *t, struct value *x, const struct weight *w);

/* The same of every head of x, each `size` numbers. */
struct value *tape_head_norm(struct tape *t, struct value *x, const struct weight *w,
                             uint32_t size);

/* The angles of n rows' positions, from row `row0` of the step on: cosines, then sines. */
struct value *tape_angles(struct tape *t, const struct rope *rope, uint32_t row0, uint32_t n);

/* Each head of x, `size` numbers, is rotated by its row's angles. */
struct value *tape_rope(struct tape *t, struct value *x, struct value *angles, uint32_t size);

/* Rows of k and v become their positions of the cache. A training tape has a whole sequence of
 * positions, and no cache: attend reads k and v themselves. */
void tape_kv_write(struct tape *t, struct kv *kv, struct value *k, struct value *v);

/* What attention reads beside its queries, and which of it a row sees: struct attention. */
struct attend {
    struct kv *kv;       /* NULL with MASK_FULL */
    struct value *k, *v; /* rows of the step; with MASK_PREFIX and MASK_FULL */
    struct value *later; /* i32: later rows of a row's span; with MASK_SPANS */
    struct mask mask;
    uint32_t n_head;
    float scale;
};

/* y = sum softmax(scale q . k_s) v_s over what the mask lets a row see */
struct value *tape_attend(struct tape *t, struct value *q, const struct attend *a);

/* y = a + b */
struct value *tape_add(struct tape *t, struct value *a, struct value *b);

/* y = c x; y = w[0] x, and x itself where w is absent */
struct value *tape_times(struct tape *t, struct value *x, float c);
struct value *tape_scale(struct tape *t, struct value *x, const struct weight *w);

/* y = c tanh(x / c); x itself where c is 0 */
struct value *tape_softcap(struct tape *t, struct value *x, float c);

/* y = gelu_tanh(a) * b */
struct value *tape_gelu_mul(struct tape *t, struct value *a, struct value *b);

/* The `n` experts with the largest of a row's scores; their weights are the softmax of those
 * scores, so they sum to 1. */
struct chosen {
    struct value *ids, *weights;
};
struct chosen tape_route(struct tape *t, struct value *scores, uint32_t n);

/* y = sum over a row's experts of weight * scale * down(gelu_tanh(gate x) * up x) */
struct value *tape_experts(struct tape *t, struct value *x, struct chosen by,
                           const struct experts *e);

/* y = x + b */
struct value *tape_add_bias(struct tape *t, struct value *x, const struct weight *b);

/* y = min(max(x, low), high) */
struct value *tape_clamp(struct tape *t, struct value *x, float low, float high);

/* y = (x - mean(x)) / sqrt(var(x) + eps) * w + b; w absent: no weight; b absent: no bias */
struct value *tape_layer_norm(struct tape *t, struct value *x, const struct weight *w,
                              const struct weight *b, float eps);

/* Angles of places in a picture, xy (i32, two a row): those of x, then those of y. rope->head_dim
 * is the size of half a head. */
struct value *tape_angles_2d(struct tape *t, const struct rope *rope, struct value *xy);

/* Each head of x, `size` numbers: its first half is rotated by the angles of x, its second half by
 * those of y. */
struct value *tape_rope_2d(struct tape *t, struct value *x, struct value *angles, uint32_t size);

/* The windows of c over a picture, one a row: linear of that is a convolution. Pictures, and the
 * order of a window's numbers, are in ops_optional.h. */
struct value *tape_unfold(struct tape *t, struct value *x, const struct conv *c);

/* y[t][c] = sum_j w[c][j] x[t - k + 1 + j][c]: each channel by itself, nothing of later rows */
struct value *tape_conv_depthwise(struct tape *t, struct value *x, const struct weight *w);

/* The means of squares of k x k points of a picture that is `width` wide. */
struct value *tape_pool(struct tape *t, struct value *x, uint32_t width, uint32_t k);

/* What a canvas's last rows become (op_canvas_head), and what becomes of the canvas by that
 * (op_canvas_step). Both use `canvas`, whose memory outlives the step: reading its ids comes before
 * canvas_step on the tape. */
struct canvas_rows {
    struct value *soft, *entropy, *picks;
};
struct canvas_rows tape_canvas_head(struct tape *t, struct value *x, const struct canvas_head *h);
void tape_canvas_step(struct tape *t, const struct canvas_head *h, struct canvas_rows rows);

/* Head, soft cap and cross-entropy in one (op_head_loss): each row's loss, and its gradient by x
 * times `weight`. targets: i32, negative where nothing is learned. */
struct head_loss {
    struct value *loss, *dx;
};
struct head_loss tape_head_loss(struct tape *t, struct value *x, const struct weight *head,
                                struct value *targets, float cap, float weight);

/* What lies between two of these may be computed again for its gradients, instead of kept. */
void tape_checkpoint(struct tape *t);

/* Show x to who watches the run; x itself. */
struct value *tape_tap(struct tape *t, const char *name, int layer, struct value *x);

/* x is a result: it is computed into `own`, and that is there when the step is over. */
void tape_result(struct tape *t, struct value *x, const struct tensor *own);

/* ---- passes ---- */

/* Append what sums the gradients of trained adapters (struct lora.grad), when dx is that of x, the
 * last value so far. keep_all: nothing is computed again. */
void tape_differentiate(struct tape *t, struct value *x, struct value *dx, bool keep_all);

void tape_finish(struct tape *t);
void tape_groups(struct tape *t);

/* ---- for gradients and fusion (struct backend.fuse) ---- */

/* A node of n_in inputs without results; NULL: memory is short. */
struct node *tape_append(struct tape *t, enum tape_op op, struct value *const *in, int n_in);
/* Its next result, which has x's rows. */
struct value *tape_output(struct tape *t, struct node *n, const struct value *x, uint32_t cols);

/* The whole of which x is a view, or x. */
static inline struct value *tape_whole(struct value *x)
{
    return x->of ? x->of : x;
}

/* y's tensor, with x's numbers in it: for an op that works in place. */
struct tensor *tape_moved(struct run *r, struct value *y, const struct value *x);

/* Room of x's rows that nobody computes: a backend writes there what it likes. */
struct value *tape_room(struct tape *t, const struct value *x, uint32_t cols);

void group_add_room(struct group *g, struct value *x);

/* Make the nodes of `parts` one group: *like, with its room and what `run` needs. Returns NULL, and
 * changes nothing, if a value that is pinned or that other groups read would have no memory, or if
 * no place in the order is after all that the group reads and before all that read it. */
struct group *group_join(struct tape *t, const struct group *like, struct group *const *parts,
                         uint32_t n_parts);

/* Memory for the values of a session's tapes. */
struct tape_slot {
    struct tensor at;
    uint64_t size;        /* in numbers */
    struct value *values; /* of the tape that was placed last */
};
struct tape_memory {
    struct tape_slot *slots;
    uint32_t n, cap;
};

/* Choose each value's slot. Where those of `m` do not suffice, slots are added or grow. */
bool tape_place(struct tape *t, struct tape_memory *m);
/* Give the values the memory of their slots. False: a slot has none of that size. */
bool tape_bind(struct tape *t, const struct tape_memory *m, const struct backend *be);

/* Allocate what slots lack; one that is too small is made anew. False: memory is short. */
bool tape_memory_open(struct tape_memory *m, const struct backend *be);
void tape_memory_close(struct tape_memory *m, const struct backend *be);
uint64_t tape_memory_bytes(const struct tape_memory *m);

/* Row 0 of the step is at position `pos`. */
void tape_run(struct tape *t, struct run *r, uint32_t pos);

#endif
