/* ops_gpu_impl.h - what the files of the GPU backend share. */
#ifndef BEZEL_GPU_OPS_GPU_IMPL_H
#define BEZEL_GPU_OPS_GPU_IMPL_H

#include "gpu/fuse.h"
#include "gpu/ops_gpu.h"

#define COUNT(a) (uint32_t)(sizeof(a) / sizeof *(a))

/* The faster variant of a kernel, where the device and the tier allow it. */
#define TIERED(g, NAME)                                                                            \
    ((uint32_t)KERNEL_##NAME | ((g)->tier >= TIER_SUBGROUP ? NAME##_TIER_SUBGROUP : 0u))

/* The variant for weights of a shape (enum gpu_shape); the same of the faster variant. */
#define SHAPED(NAME, shape) ((uint32_t)KERNEL_##NAME | (uint32_t)(shape) << NAME##_FORMAT_SHIFT)

#define TIERED_SHAPED(g, NAME, shape) (TIERED(g, NAME) | SHAPED(NAME, shape))

/* How a row is made ready for products of few rows (kernels/lib/acts.wgsl): in int8 planes where
 * the device multiplies int8, else in f32 planes. Products with floats always read f32. */
#define ACTS(g, NAME) ((g)->int8 ? (uint32_t)NAME##_ACTS_INT8 : (uint32_t)NAME##_ACTS_F32)
#define READY(g, NAME, shape)                                                                      \
    (TIERED_SHAPED(g, NAME, shape) |                                                               \
     (gpu_is_codes(shape) ? ACTS(g, NAME) : (uint32_t)NAME##_ACTS_F32))

/* ---- what a rule of fusion computes ---- */

/* A layer's projections on their way to attention. */
struct heads {
    struct tensor *q;     /* rows x n_head * head_dim; NULL: keys and values only */
    struct tensor *k, *v; /* both NULL: queries only, the cache is another layer's */
    const struct weight *q_norm, *k_norm;
    const struct tensor *table;
    uint32_t n_head;
    bool v_from_k; /* the values are the raw keys; v is not read */
};

/* The residual and the norm of the next block: to = (x + rms_norm(branch) * w) * scale, norm =
 * rms_norm(to) * next_w. With two branches, rms_norm(branch) * branch_w + rms_norm(other) * other_w
 * takes the place of branch. */
struct residual {
    const struct tensor *x, *branch; /* branch NULL: nothing is added, and w is not read */
    const struct weight *w;
    const struct weight *scale;  /* absent: 1 */
    const struct weight *next_w; /* absent: the block reads `to` itself */
    struct tensor *to;           /* another tensor than x */
    struct tensor *norm;         /* where next_w exists */
    float eps;
    const struct tensor *other; /* NULL: there is one branch, and the fields below are not read */
    const struct weight *branch_w, *other_w;
    struct tensor *sum; /* scratch for the sum of both branches; undefined afterwards */
};

/* What the next block reads. */
static inline const struct tensor *residual_result(const struct residual *j)
{
    return j->next_w->fmt ? j->norm : j->to;
}

/* The weights of a router, by which the experts are chosen. */
struct router {
    const struct weight *w, *scale;
    const struct weight *norm; /* of what the experts read */
};

/* y = W h, a product that reads nothing of what the same dispatch computes beside it. */
struct product {
    struct tensor *y;
    const struct tensor *h;
    const struct weight *w;
};

static inline struct gpu_ops *ops_of(const struct run *r)
{
    return r->be->ctx;
}

/* Is this a software device, where a workgroup is best one subgroup of four lanes? Such a workgroup
 * needs no barrier. */
static inline bool of_fours(const struct gpu_ops *g)
{
    return g->tuning->software && g->tier >= TIER_SUBGROUP;
}

/* The variant of a kernel in which each thread works for itself (single_thread() of
 * kernels/lib/base.wgsl). A software device uses it unless its compiler got it wrong or a test asks
 * for a tiling. */
enum { SOFTWARE_WG = 16 };
#define SOFTWARE(NAME) ((uint32_t)KERNEL_##NAME | NAME##_TIER_SOFTWARE)

static inline bool has_software(const struct gpu_ops *g, uint32_t kernel)
{
    return g->tuning->software && !g->tiling && !recorder_bars(&g->rec, kernel);
}

/* Are the weights whole numbers with a scale for each block? */
static inline bool gpu_is_codes(enum gpu_shape shape)
{
    return shape >= GPU_Q4_0;
}

/* Does a product with W of this shape make rows ready in the form that the device reads? */
static inline bool gpu_makes_form(const struct gpu_ops *g, enum gpu_shape shape)
{
    return !g->int8 || gpu_is_codes(shape);
}

/* Threads of a workgroup that makes one sum, where `usual` are best on most devices. */
static inline float gpu_sum_wg(const struct gpu_ops *g, uint32_t usual)
{
    return (float)(usual < g->tuning->sum_wg ? usual : g->tuning->sum_wg);
}

/* Does every workgroup that reads a residual of so many columns compute it for itself? */
static inline bool gpu_is_small_hidden(const struct gpu_ops *g, uint32_t cols)
{
    return !g->wide && cols <= g->tuning->small_hidden;
}

/* The value of a profile's list for a matrix of so many rows. */
static inline uint32_t gpu_value_at(const struct gpu_step_at *list, uint32_t rows)
{
    while (rows > list->rows) list++;
    return list->value;
}

static inline struct gpu_weight *matrix_of(const struct weight *w)
{
    return w->mem;
}

static inline uint32_t rows_of_all(const struct weight *const *w, uint32_t n)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < n; i++) rows += w[i]->rows;
    return rows;
}

static inline struct gpu_binding whole(gpu_buffer b)
{
    return (struct gpu_binding) { b, 0, 0 };
}

static inline struct gpu_binding act(const struct tensor *t)
{
    uint32_t n_bytes = ((uint32_t)t->size * tensor_width(t) + 15) / 16 * 16;
    /* Views of one memory may be written by one kernel: they must not overlap. */
    return (struct gpu_binding) { gpu_of(t), t->first * (uint32_t)sizeof(float),
                                  t->first ? n_bytes : 0 };
}

/* A vector's buffer, or anything where there is none. */
static inline struct gpu_binding vector(const struct gpu_ops *g, const struct weight *w)
{
    const struct gpu_weight *gw = w && weight_exists(w) ? w->mem : NULL;
    return gw ? (struct gpu_binding) { gw->parts[0].buffer, gw->parts[0].first, 0 }
              : whole(g->unused);
}

/* Vectors that one binding reaches, and where each begins, in vec4s. one: they lie in one buffer;
 * else the kernel needs a binding for each. NULL and absent vectors may lie anywhere. */
enum { GPU_VECTORS = 3 };

struct gpu_vectors {
    struct gpu_binding all;
    uint32_t at[GPU_VECTORS];
    bool one;
};
struct gpu_vectors gpu_vectors_of(const struct gpu_ops *g, const struct weight *a,
                                  const struct weight *b, const struct weight *c);

/* Is a matrix one buffer, without adapters? */
static inline bool gpu_whole_no_lora(const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    return g->n_parts == 1 && g->adapted.n == 0;
}

static inline uint32_t divide_up(uint64_t n, uint32_t by)
{
    return (uint32_t)((n + by - 1) / by);
}

/* How a product is divided: the lanes of a row group share `rows` rows of W, at most four; a
 * workgroup of wg threads is one row group or several. */
struct row_groups {
    uint32_t wg, lanes, rows;
};

/* Row groups of four rows for a matrix of rows x cols: no more lanes than a row has units of work,
 * and more where the rows are few and long, so that the device has enough to do. */
struct row_groups gpu_row_groups_by_length(const struct gpu_ops *g, enum gpu_shape shape,
                                           uint32_t rows, uint32_t cols);

/* Rows of W that a workgroup takes. */
static inline uint32_t rows_of_workgroup(struct row_groups t)
{
    return t.rows * t.wg / t.lanes;
}

/* Row groups for a matrix of rows x cols. together: rows of a row group; 0: as many as suit the
 * matrix. */
struct row_groups gpu_row_groups(const struct gpu_ops *g, enum gpu_shape shape, uint32_t rows,
                                 uint32_t cols, uint32_t together);

/* gpu_row_groups for n_tok rows of x, with three rows a group instead of four where the busiest
 * processor then has a tenth less to do: 5,376 rows by fours are 672 workgroups, so of 132
 * processors twelve have six of them and the others five. */
struct row_groups gpu_even_row_groups(const struct gpu_ops *g, enum gpu_shape shape, uint32_t rows,
                                      uint32_t cols, uint32_t n_tok);

/* Weights that a lane takes at a time. */
static inline uint32_t gpu_unit(enum gpu_shape shape)
{
    return shape <= GPU_BF16 ? 8 : shape == GPU_Q8_0 || shape == GPU_Q8_A ? 16 : 32;
}

/* Record one dispatch with the kernel's default constants. */
void gpu_dispatch_op(struct run *r, uint32_t kernel, const void *params,
                     const struct gpu_binding *b, uint32_t n, uint32_t n_groups);

/* A tensor for values that live within one op: scratch of the plan. */
struct tensor gpu_scratch(struct run *r, int which, uint32_t rows, uint32_t cols);

/* What a kernel is told of a weight's adapters: kernels/lib/lora.wgsl. rank 0: none. */
struct gpu_lora {
    uint32_t rank, b_rows, b_scales;
    uint32_t parts; /* of which z is the sum; 0: it is whole */
    struct gpu_binding z, b;
};

struct gpu_lora gpu_lora_of(struct run *r, const struct weight *w, const struct tensor *z);

/* What a kernel is told of the adapters of one matrix among several; z: their A x, or NULL: none is
 * used. */
struct kernel_adapter gpu_adapter_of(const struct run *r, const struct weight *w,
                                     const struct tensor *z);

/* What a kernel is told of a matrix among several: kernels/lib/matvec.wgsl. */
static inline struct kernel_matrix gpu_matrix_of(const struct gpu_part *part)
{
    const struct gpu_layout *l = &part->layout;
    return (struct kernel_matrix) {
        .rows = part->rows, .scales = l->scales, .high = l->high, .d = l->d
    };
}

/* Where A x goes: what training keeps, or scratch; without adapters an empty tensor. */
struct tensor gpu_lora_room(struct run *r, const struct weight *w, uint32_t rows);

/* z = A x of all adapters of w. */
void gpu_lora_z(struct run *r, const struct tensor *z, const struct tensor *x,
                const struct weight *w);

/* y = W x + s B z, and with `by` its gelu times columns `col` ... of that. */
void gpu_linear_given(struct run *r, const struct tensor *y, const struct tensor *x,
                      const struct weight *w, const struct tensor *z, const struct tensor *by,
                      uint32_t col);

/* Rows of a matrix from `first` on, a multiple of 64 from its buffer's first: they begin where the
 * binding does. */
struct gpu_piece {
    struct gpu_binding binding;
    struct gpu_layout layout; /* with the parts' offsets from there */
};
struct gpu_piece gpu_piece_of(const struct weight *w, uint32_t first);

/* y = (W x + s B z)[first ...], n rows of W, all of which are in one buffer. */
void gpu_linear_rows(struct run *r, const struct tensor *y, const struct tensor *x,
                     const struct weight *w, const struct tensor *z, uint32_t first, uint32_t n);

/* How many stages of a tile the device has room for; see kernels/lib/matrix.wgsl. */
uint32_t gpu_matrix_buffers(const struct gpu_ops *g, const struct gpu_matrix_tile *c);

/* y = scale_by * (W x + adapters): one dispatch for each buffer of W, and one more with adapters.
 */
void gpu_adapted_matrix(struct run *r, const struct tensor *y, const struct tensor *x,
                        const struct weight *w, float scale_by);

/* Slots (choices of rows) by expert, and the tiles they are divided into: ops_gpu_experts.c. */
struct expert_tiles {
    struct tensor list;
    uint32_t n_tiles, n_slots, n_used;
};

struct expert_tiles gpu_expert_tiles(struct run *r, const struct routing *routing,
                                     uint32_t n_expert);

/* y[slot] = W_e x, where x has a row for each t, or (by_slot) for each slot. */
void gpu_tiled_matrix(struct run *r, struct tensor *y, const struct tensor *x, bool by_slot,
                      const struct expert_tiles *plan, const struct weight *w);

/* y[slot] = M_e x for n_mat matrices of rows x cols f32, rows of whole eights. */
void gpu_tiled_f32(struct run *r, const struct tensor *y, const struct tensor *x, bool by_slot,
                   const struct expert_tiles *plan, gpu_buffer m, uint32_t n_mat);

/* In how many splits a product is summed, so that its tiles fill a device that runs `units` of them
 * at a time. Each tile is `depth` steps long; a split costs `numbers` of memory, of which there are
 * `room` bytes. *cost, in steps: of the fewest splits that are about as good as any. */
uint32_t gpu_split_k(const struct gpu_tuning *by, uint32_t tiles, uint32_t units, uint32_t depth,
                     uint64_t numbers, uint64_t room, uint64_t *cost);

/* y, from row `first` on, = y + the sum of n_part tensors that lie one after the other (fresh:
 * without y); with `by` its gelu times columns `col` ... of that. */
void gpu_sum_parts(struct run *r, struct tensor *y, uint32_t first, bool fresh,
                   const struct tensor *parts, uint32_t n_part, const struct tensor *by,
                   uint32_t col);

/* z = A x of all adapters, for many rows of x. */
void gpu_lora_in(struct run *r, const struct tensor *z, const struct tensor *x,
                 const struct weight *w);

/* Does any of its adapters see only a part of x? */
bool gpu_drops(const struct weight *w);

/* op_linear_z of n weights that read the same x. All z are computed before the products, so that no
 * product waits for one. */
void gpu_linears_z(struct run *r, struct tensor *const *y, struct tensor *const *z,
                   const struct tensor *x, const struct weight *const *w, uint32_t n);

/* Are products of so many rows computed by tiles? */
bool gpu_by_tiles(const struct gpu_ops *g, uint32_t n_tok);

/* Record a kernel whose workgroup makes one sum, with `usual` threads or what gpu_sum_wg makes of
 * them. */
void gpu_dispatch_sum(struct run *r, uint32_t kernel, uint32_t wg_index, uint32_t usual,
                      const void *params, const struct gpu_binding *b, uint32_t n,
                      uint32_t n_groups);

/* x as subgroup matrices read it: a dispatch of to_halves. Where x->halves is there, the result is
 * kept in it for the next product of x. */
struct tensor gpu_halves_of(struct run *r, const struct tensor *x);

/* x with room for its halves, for several products in a row. */
static inline struct tensor gpu_keeps_halves(const struct tensor *x, struct tensor *halves)
{
    struct tensor copy = *x;
    *halves = (struct tensor) { 0 };
    copy.halves = halves;
    return copy;
}

/* ---- the router: ops_gpu_router.c ---- */

/* A routing that is still to be chosen by its scores. */
struct gpu_choice {
    struct tensor scores;
    struct routing to;
};

/* Choose by a dispatch of its own. */
void gpu_choose(struct gpu_ops *g, const struct gpu_choice *c);

/* The scores, and norm, which the experts read. beside: a product of the same dispatch, or NULL.
 * The experts are still to be chosen by *c. */
void gpu_score(struct run *r, struct gpu_choice *c, const struct routing *out, struct tensor *norm,
               const struct tensor *x, const struct router *by, float eps,
               const struct product *beside);

/* ---- rows made ready: ops_gpu_ready.c ---- */

/* Can a dispatch that writes such rows leave them ready? Products with codes read them so. */
bool gpu_makes_ready(const struct gpu_ops *g, uint32_t rows, uint32_t cols);

/* Are the matrices codes without adapters? */
static inline bool gpu_codes_no_lora(const struct weight *w)
{
    return gpu_is_codes(matrix_of(w)->shape) && matrix_of(w)->adapted.n == 0;
}

enum {
    GPU_Z_ALIGN = 64,                               /* f32: where a binding may begin */
    GPU_Z_MOST = GROUP_LINEARS * MAX_ADAPTED * 256, /* a row's z of all matrices of a stream */
};

/* x as products with codes read it: x->ready, once it was written. NULL: they read x as any other
 * product does. */
static inline const struct tensor *gpu_ready(const struct tensor *x)
{
    return x->ready && x->ready->rows ? x->ready : NULL;
}

/* Where a dispatch that writes y leaves it ready too. NULL: no product reads it so. */
const struct tensor *gpu_ready_room(const struct tensor *y);

/* Room of an op for rows made ready, and behind them for what adapters make of them. `which` is
 * SCRATCH_READY, or the other one for an op that reads rows from there. */
struct tensor gpu_ready_scratch(struct run *r, int which, uint32_t rows, uint32_t cols);

/* The places of z = A x of n matrices, behind the ready rows of x; empty ones without adapters. */
void gpu_place_z(struct tensor *z, const struct tensor *ready, const struct weight *const *w,
                 uint32_t n);

/* z = A x of a row as the sum of n rows. */
struct gpu_z_parts {
    struct tensor z;
    uint32_t n; /* 0: there is none */
};

/* y = W x + s B z where z is the sum of by->n rows, as one dispatch. False: nothing was recorded.
 */
bool gpu_linear_parts(struct run *r, const struct tensor *y, const struct tensor *x,
                      const struct weight *w, const struct gpu_z_parts *z);

/* Can the dispatch that makes x ready also make z = A x of w, in n parts? */
bool gpu_adapts_parts(const struct weight *w, uint32_t n);

/* y = W x + s B z. */
void gpu_linear_z_parts(struct run *r, const struct tensor *y, const struct tensor *x,
                        const struct weight *w, const struct gpu_z_parts *z);

/* Matrices that read one x and that one dispatch takes: of one shape, or (mixed) of the usual two
 * shapes. */
struct gpu_picked {
    uint32_t n, at[GROUP_LINEARS];
    bool mixed;
};
uint32_t gpu_pick(struct gpu_picked *some, const struct weight *const *w, uint32_t n);

/* Several linears of one x. Where x is ready, matrices of one shape are one dispatch. */
void gpu_linears(struct run *r, struct tensor *const *y, const struct tensor *x,
                 const struct weight *const *w, uint32_t n);

/* A shared row: a workgroup keeps it in its memory, and a thread computes sixteen columns of it
 * (kernels/lib/matvec.wgsl). Does it fit, and in how many vec4s? */
enum { GPU_SHARED_WG = 256 };
bool gpu_can_share_row(const struct gpu_ops *g, uint32_t cols);
uint32_t gpu_shared_row(uint32_t cols);

/* Can every workgroup of a kernel with so many buffers compute the residual for itself, and does
 * that pay? */
bool gpu_shares_residual(const struct gpu_ops *g, const struct residual *j, uint32_t n_buffers);

/* The vectors that a residual is multiplied with: w after the branch's norm, scale, and next_w. */
struct gpu_vectors gpu_residual_vectors(const struct gpu_ops *g, const struct residual *j);

/* Can the dispatch of a residual leave what the next block reads ready? */
bool gpu_residual_makes_ready(const struct gpu_ops *g, const struct residual *j);

/* The residual by a dispatch of its own, its result ready in *room; floats: as f32 too. Returns the
 * result. */
struct tensor gpu_residual_ready(struct run *r, const struct residual *j, struct tensor *room,
                                 bool floats);
/* The same for one row, ready only. Other workgroups of the dispatch prefetch the matrices that are
 * read next. False: it cannot be done, and nothing was recorded. */
bool gpu_residual_prefetch(struct run *r, const struct residual *j, struct tensor *room,
                           const struct weight *const *soon, uint32_t n_soon);

/* y[i] = W_i x + s B_i z[i], where x is ready and z lies behind it, in as few dispatches as can
 * be; z NULL: all are codes without adapters. */
void gpu_linears_ready(struct run *r, struct tensor *const *y, const struct tensor *x,
                       const struct weight *const *w, const struct tensor *z, uint32_t n);

/* The ops of these names where x is ready (z: A x of the adapters of both, or NULL), and where the
 * residual has more columns than small_hidden. False: nothing was recorded. */
bool gpu_gate_up_ready(struct run *r, struct tensor *y, const struct tensor *x,
                       const struct weight *gate_w, const struct weight *up_w,
                       const struct tensor *z);
bool gpu_wide_linears(struct run *r, const struct residual *j, struct tensor *const *y,
                      const struct weight *const *w, uint32_t n);
bool gpu_wide_linear_gelu_mul(struct run *r, const struct residual *j, struct tensor *y,
                              const struct weight *w, const struct tensor *b, uint32_t col);
bool gpu_wide_gate_up(struct run *r, const struct residual *j, struct tensor *y, struct tensor *up,
                      const struct weight *gate_w, const struct weight *up_w);

/* ---- adapters of a stream's products: ops_gpu_lora.c ---- */

/* The ops of these names where matrices have adapters; false: nothing was recorded. */
bool gpu_adapted_linears(struct run *r, const struct residual *j, struct tensor *const *y,
                         const struct weight *const *w, uint32_t n);
bool gpu_adapted_linear_gelu_mul(struct run *r, const struct residual *j, struct tensor *y,
                                 const struct weight *w, const struct tensor *b, uint32_t col);
bool gpu_adapted_gate_up(struct run *r, const struct residual *j, struct tensor *y,
                         struct tensor *up, const struct weight *gate_w, const struct weight *up_w);

/* ---- the ops of the backend, and those of the rules of fusion, each in the file that owns it
 * ---- */

extern const struct optional_ops gpu_optional; /* those of a canvas: ops_gpu_canvas.c */

void gpu_embed(struct run *r, struct tensor *y, const struct weight *table,
               const struct tensor *ids, float scale_by);
void gpu_linear_gelu_mul(struct run *r, struct tensor *y, const struct tensor *x,
                         const struct weight *w, const struct tensor *b, uint32_t col);
void gpu_linear(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w);
void gpu_gate_up(struct run *r, struct tensor *y, struct tensor *up, const struct tensor *x,
                 const struct weight *gate_w, const struct weight *up_w);
void gpu_norm_sum(struct run *r, struct tensor *y, const struct tensor *a, const struct weight *a_w,
                  const struct tensor *b, const struct weight *b_w, float eps);
void gpu_residual_norm(struct run *r, const struct residual *j);
void gpu_norm_linears(struct run *r, const struct residual *j, struct tensor *const *y,
                      const struct weight *const *w, uint32_t n);
void gpu_residual_linear_gelu(struct run *r, const struct residual *j, struct tensor *y,
                              const struct weight *w, const struct tensor *b, uint32_t col);
void gpu_norm_gate_up(struct run *r, const struct residual *j, struct tensor *y, struct tensor *up,
                      const struct weight *gate_w, const struct weight *up_w);
void gpu_kv_write(struct run *r, struct kv *kv, const struct tensor *k, const struct tensor *v,
                  uint32_t pos);
void gpu_heads_write(struct run *r, struct kv *kv, const struct heads *h, uint32_t pos, float eps);
void gpu_attention(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                   uint32_t n_head, uint32_t window, uint32_t pos);
void gpu_attend_linear(struct run *r, struct tensor *y, struct tensor *o, struct kv *kv,
                       const struct heads *h, uint32_t window, uint32_t pos, float eps,
                       const struct weight *w);
void gpu_attend(struct run *r, struct tensor *y, struct kv *kv, const struct heads *h,
                uint32_t window, uint32_t pos, float eps);
void gpu_head_norm_rope(struct run *r, struct tensor *x, const struct weight *w,
                        const struct tensor *table, uint32_t n_head, float eps);
void gpu_rms_norm(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w,
                  float eps);
void gpu_add_norm(struct run *r, struct tensor *x, const struct tensor *branch,
                  const struct weight *w, float eps);
void gpu_gelu_mul(struct run *r, struct tensor *x, const struct tensor *b, uint32_t col);
void gpu_router(struct run *r, struct routing *out, struct tensor *norm, const struct tensor *x,
                const struct router *by, float eps);
void gpu_route(struct run *r, struct routing *out, const struct tensor *scores);
void gpu_linear_router(struct run *r, struct tensor *y, const struct tensor *h,
                       const struct weight *w, struct routing *out, struct tensor *norm,
                       const struct tensor *x, const struct router *by, float eps);
void gpu_experts(struct run *r, struct tensor *y, const struct tensor *x,
                 const struct routing *routing, const struct experts *e);
void gpu_router_experts(struct run *r, struct tensor *y, struct routing *out, struct tensor *norm,
                        const struct tensor *x, const struct router *by, float eps,
                        const struct experts *e, const struct product *beside);

#endif
