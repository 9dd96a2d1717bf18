/* ops_gpu_linear.c - matrix products: rows of a table, one matrix or two, with their adapters. */
#include <string.h>

#include "gpu/ops_gpu_impl.h"

bool gpu_by_tiles(const struct gpu_ops *g, uint32_t n_tok)
{
    return n_tok >= g->tuning->matmul_from;
}

/* The first tile that the device can run, that is at least half full, and of which there are enough
 * workgroups. */
static struct gpu_tile tile_of(const struct gpu_ops *g, uint32_t rows, uint32_t n_tok)
{
    const struct gpu_tile *tiles = g->tuning->tiles;
    for (uint32_t i = g->tiling && g->tiling <= GPU_TILES ? g->tiling - 1 : 0; i + 1 < GPU_TILES;
         i++) {
        uint32_t groups = divide_up(rows, tiles[i].rows) * divide_up(n_tok, tiles[i].toks);
        bool large = n_tok > tiles[i].toks / 2 && groups >= tiles[i].enough;
        if (tiles[i].wg <= g->rec.limits.max_invocations && (g->tiling || large)) return tiles[i];
    }
    return tiles[GPU_TILES - 1];
}

/* ---- splits ---- */

static uint64_t split_cost(const struct gpu_tuning *by, uint32_t n, uint32_t tiles, uint32_t units,
                           uint32_t depth, uint64_t numbers)
{
    uint64_t turns = divide_up((uint64_t)tiles * n, units);
    return turns * divide_up(depth, n) + (n > 1 ? n * numbers / by->split_sums + 20 : 0);
}

uint32_t gpu_split_k(const struct gpu_tuning *by, uint32_t tiles, uint32_t units, uint32_t depth,
                     uint64_t numbers, uint64_t room, uint64_t *cost)
{
    uint64_t best = UINT64_MAX, most = room / sizeof(float) / numbers;
    uint32_t n = 1;
    if (most > depth / by->split_steps) most = depth / by->split_steps;
    for (uint32_t i = 1; i == 1 || i <= most; i++) {
        *cost = split_cost(by, i, tiles, units, depth, numbers);
        if (*cost < best) best = *cost;
    }
    while ((*cost = split_cost(by, n, tiles, units, depth, numbers)) > best + best / 25) n++;
    return n;
}

/* ---- subgroup matrices ---- */

static uint32_t matrix_kernel(enum gpu_shape shape)
{
    return SHAPED(MATMUL, shape) | MATMUL_TIER_MATRIX;
}

/* A product by subgroup matrices: its tile, and in how many splits of the columns, which are summed
 * afterwards. */
struct matrix_plan {
    struct gpu_matrix_tile tile;
    uint32_t buffers, splits, groups;
};

uint32_t gpu_matrix_buffers(const struct gpu_ops *g, const struct gpu_matrix_tile *c)
{
    uint32_t unit = 32 * 5 * 16, most = g->rec.limits.max_workgroup_bytes;
    uint32_t stage = (c->rows + c->toks) / 32 * unit, end = c->wg / 32 * unit;
    if (c->wg > g->rec.limits.max_invocations || stage > most || end > most) return 0;
    return 2 * stage <= most ? 2 : 1;
}

static uint64_t matrix_cost(const struct gpu_tuning *by, const struct gpu_matrix_tile *c,
                            uint32_t rows, uint32_t n_tok, uint32_t steps, uint32_t n)
{
    uint64_t groups = (uint64_t)divide_up(rows, c->rows) * divide_up(n_tok, c->toks) * n;
    uint64_t turns = 4 * (uint64_t)divide_up(groups, by->processors);
    uint64_t sums = n > 1 ? by->matrix_sum + (uint64_t)n * rows * n_tok / by->matrix_sums : 0;
    if (turns < c->busy) turns = c->busy;
    return turns * (divide_up(steps, n) + by->matrix_ends) * c->cost + 400 * sums;
}

/* The tile and splits of least cost. can_split: splits are possible. */
static struct matrix_plan matrix_plan(const struct gpu_ops *g, uint32_t rows, uint32_t cols,
                                      uint32_t n_tok, bool can_split)
{
    struct matrix_plan best = { 0 };
    uint64_t least = UINT64_MAX, room = g->parts_room / sizeof(float) / rows / n_tok;
    uint32_t steps = divide_up(cols, 32), most = steps / g->tuning->matrix_split_steps;
    if (most > room) most = (uint32_t)room;
    if (!can_split || !most) most = 1;
    for (uint32_t i = 0; i < GPU_MATRIX_TILES; i++) {
        const struct gpu_matrix_tile *c = &g->tuning->matrix_tiles[i];
        uint32_t buffers = gpu_matrix_buffers(g, c);
        uint32_t groups = divide_up(rows, c->rows) * divide_up(n_tok, c->toks);
        if (!buffers) continue;
        if (g->tiling == i + 1)
            return (struct matrix_plan) { *c, buffers,
                                          can_split && g->tiling == GPU_TILING_SPLITS ? 3 : 1,
                                          groups };
        for (uint32_t n = 1; n <= most; n++) {
            uint64_t cost = matrix_cost(g->tuning, c, rows, n_tok, steps, n);
            if (cost >= least) continue;
            least = cost;
            best = (struct matrix_plan) { *c, buffers, n, groups };
        }
    }
    return best;
}

struct tensor gpu_halves_of(struct run *r, const struct tensor *x)
{
    if (x->halves && x->halves->size) return *x->halves;
    struct tensor h = gpu_scratch(r, SCRATCH_HALVES, x->rows, 16 * divide_up(x->cols, 32) + 4);
    struct to_halves_params p = { .rows = x->rows, .cols = x->cols, .x_stride = x->cols };
    struct gpu_binding bind[] = { act(x), act(&h) };
    gpu_dispatch_op(r, KERNEL_TO_HALVES, &p, bind, COUNT(bind), x->rows);
    if (x->halves) *x->halves = h;
    return h;
}

void gpu_embed(struct run *r, struct tensor *y, const struct weight *table,
               const struct tensor *ids, float scale_by)
{
    const struct gpu_weight *g = table->mem;
    for (uint32_t i = 0; i < g->n_parts && !g->away; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct embed_params p = { .cols = table->cols,
                                  .rows = part->rows,
                                  .row0 = part->row0,
                                  .n_tok = ids->rows,
                                  .y_stride = y->cols,
                                  .scales = part->layout.scales,
                                  .high = part->layout.high,
                                  .d = part->layout.d,
                                  .scale = scale_by };
        struct gpu_binding bind[] = { whole(part->buffer), act(ids), act(y) };
        gpu_dispatch_op(r, SHAPED(EMBED, g->shape), &p, bind, COUNT(bind),
                        divide_up((uint64_t)ids->rows * divide_up(table->cols, 8), 64));
    }
}

struct row_groups gpu_row_groups_by_length(const struct gpu_ops *g, enum gpu_shape shape,
                                           uint32_t rows, uint32_t cols)
{
    if (of_fours(g)) return (struct row_groups) { 4, 4, 4 };
    uint32_t units = divide_up(cols, gpu_unit(shape)), lanes = 1;
    uint32_t most = gpu_value_at(g->tuning->slot_lanes, rows);
    while (lanes < units && lanes < most) lanes *= 2;
    return (struct row_groups) { lanes < 64 ? 64 : lanes, lanes, 4 };
}

/* Rows of a matrix in one buffer. */
struct block {
    gpu_buffer buffer;
    enum gpu_shape shape;
    struct gpu_layout layout;
    uint32_t cols, row0, rows;
    bool whole;     /* it is all of the matrix */
    uint32_t first; /* bytes of the buffer before it */
};

/* What becomes of a product: scale times it, then its gelu times columns `col` ... of `by`. */
struct finish {
    float scale;
    const struct tensor *by; /* NULL: no gelu */
    uint32_t col;
};

/* In how many splits the columns are summed. Splits pay where rows are long and results few, as in
 * a down projection, and where tiles would leave the device half empty at the end. */
static uint32_t product_splits(const struct gpu_ops *g, const struct block *w, uint32_t n_tok,
                               const struct finish *f)
{
    bool plain = f->scale == 1 && w->whole && w->rows % 4 == 0;
    const struct gpu_tuning *by = g->tuning;
    struct gpu_tile usual = tile_of(g, w->rows, n_tok), large = by->tiles[0];
    uint64_t cost, steps = divide_up(w->rows, usual.rows) * divide_up(n_tok, usual.toks);
    if (!plain || large.wg > g->rec.limits.max_invocations) return 1;
    if (g->tiling) return g->tiling == GPU_TILING_SPLITS ? 3 : 1;
    if (w->cols < by->split_cols || n_tok <= large.toks / 2) return 1;
    uint32_t tiles = divide_up(w->rows, large.rows) * divide_up(n_tok, large.toks);
    uint32_t n = gpu_split_k(by, tiles, by->processors, w->cols, (uint64_t)n_tok * w->rows,
                             g->parts_room, &cost);
    steps = divide_up(steps, by->processors) * w->cols * usual.rows * usual.toks / (128 * 128) *
            usual.cost / 100;
    return cost < steps ? n : 1;
}

/* Many rows of x: tiles of W and x. */
static void tiles_product(struct run *r, const struct block *w, const struct linear_params *p,
                          const struct gpu_binding *bind, uint32_t n, bool gelu)
{
    struct gpu_ops *g = ops_of(r);
    uint32_t software = SOFTWARE(MATMUL) | SHAPED(MATMUL, w->shape);
    if (has_software(g, software)) {
        struct gpu_constant by = { MATMUL_GELU, gelu };
        uint64_t threads = (uint64_t)divide_up(w->rows, 8) * divide_up(p->n_tok, 8);
        record_dispatch(&g->rec, software, &by, 1, p, bind, n, divide_up(threads, SOFTWARE_WG));
        return;
    }
    struct gpu_tile tile = p->n_split > 1 ? g->tuning->tiles[0] : tile_of(g, w->rows, p->n_tok);
    struct gpu_constant set[] = { { MATMUL_ROWS, (float)tile.rows },
                                  { MATMUL_TOKS, (float)tile.toks },
                                  { MATMUL_WG, (float)tile.wg },
                                  { MATMUL_GELU, gelu },
                                  { MATMUL_LORA, p->rank > 0 } };
    record_dispatch(&g->rec, SHAPED(MATMUL, w->shape), set, COUNT(set), p, bind, n,
                    divide_up(w->rows, tile.rows) * divide_up(p->n_tok, tile.toks) * p->n_split);
}

/* The same by subgroup matrices, where there are enough tiles for the device. F32 weights are left
 * to tiles, since halves would lose their precision. False: nothing was recorded. */
static bool matrices_product(struct run *r, const struct tensor *y, const struct tensor *x,
                             const struct block *w, struct linear_params p,
                             const struct gpu_binding *bindings, const struct finish *f)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_binding bind[6];
    bool can = g->tier == TIER_MATRIX && w->shape != GPU_F32 && x->rows > 32 &&
               !recorder_bars(&g->rec, matrix_kernel(w->shape));
    bool can_split = w->whole && w->rows % 4 == 0 && w->rows == y->cols && f->scale == 1;
    if (!can) return false;
    struct matrix_plan plan = matrix_plan(g, w->rows, w->cols, x->rows, can_split);
    if (!g->tiling && plan.groups * plan.splits < g->tuning->matrix_enough) return false;
    struct tensor halves = gpu_halves_of(r, x), sum = *y, parts;
    memcpy(bind, bindings, sizeof bind);
    bind[0] = act(&halves);
    p.n_split = plan.splits;
    if (plan.splits > 1) {
        parts = gpu_scratch(r, SCRATCH_PARTS, plan.splits * x->rows, y->cols);
        bind[5] = act(&parts);
    }
    struct gpu_constant set[] = { { MATMUL_ROWS, (float)plan.tile.rows },
                                  { MATMUL_TOKS, (float)plan.tile.toks },
                                  { MATMUL_WG, (float)plan.tile.wg },
                                  { MATMUL_BUFFERS, (float)plan.buffers },
                                  { MATMUL_GELU, f->by && plan.splits == 1 } };
    record_dispatch(&g->rec, matrix_kernel(w->shape), set, COUNT(set), &p, bind, COUNT(bind),
                    plan.groups * plan.splits);
    if (plan.splits > 1) gpu_sum_parts(r, &sum, 0, true, &parts, plan.splits, f->by, f->col);
    return true;
}

/* One row of x or a few: lanes share the rows of W. The first binding is x. */
static void row_product(struct run *r, const struct block *w, const struct linear_params *p,
                        struct gpu_binding *bind, uint32_t n, const struct tensor *ready, bool gelu)
{
    struct gpu_ops *g = ops_of(r);
    struct row_groups t = gpu_even_row_groups(g, w->shape, w->rows, w->cols, p->n_tok);
    _Static_assert(
        LINEAR_WG == (int)LINEAR_NO_LORA_WG && LINEAR_LANES == (int)LINEAR_NO_LORA_LANES &&
            LINEAR_R == (int)LINEAR_NO_LORA_R && sizeof *p == sizeof(struct linear_no_lora_params),
        "both are product linear of lib/matvec");
    struct gpu_constant constants[] = { { LINEAR_WG, (float)t.wg },
                                        { LINEAR_LANES, (float)t.lanes },
                                        { LINEAR_R, (float)t.rows },
                                        { LINEAR_GELU, gelu },
                                        { LINEAR_LORA, p->z_parts ? 2 : p->rank > 0 } };
    bool no_lora = !gelu && !p->rank;
    uint32_t kernel =
        no_lora ? TIERED_SHAPED(g, LINEAR_NO_LORA, w->shape) : TIERED_SHAPED(g, LINEAR, w->shape);
    if (ready && gpu_is_codes(w->shape)) {
        kernel |= no_lora ? ACTS(g, LINEAR_NO_LORA) : ACTS(g, LINEAR);
        bind[0] = act(ready);
    }
    struct gpu_binding few[] = { bind[0], bind[1], bind[n - 1] };
    record_dispatch(&g->rec, kernel, constants, COUNT(constants) - (no_lora ? 2 : 0), p,
                    no_lora ? few : bind, no_lora ? COUNT(few) : n,
                    divide_up(w->rows, rows_of_workgroup(t)) * p->n_tok);
}

/* y = W x + s B z, then `finish`, for the rows of one buffer. */
static void block_product(struct run *r, const struct tensor *y, const struct tensor *x,
                          const struct block *w, const struct gpu_lora *lo, const struct finish *f)
{
    struct gpu_ops *g = ops_of(r);
    struct linear_params p = { .cols = w->cols,
                               .rows = w->rows,
                               .row0 = w->row0,
                               .n_tok = x->rows,
                               .x_stride = x->cols,
                               .y_stride = y->cols,
                               .scales = w->layout.scales,
                               .high = w->layout.high,
                               .d = w->layout.d,
                               .rank = lo->rank,
                               .b_rows = lo->b_rows,
                               .b_scales = lo->b_scales,
                               .z_parts = lo->parts,
                               .by_stride = f->by ? f->by->cols : 0,
                               .by_col = f->col,
                               .scale = f->scale,
                               .n_split = 1 };
    _Static_assert(sizeof(struct linear_params) == sizeof(struct matmul_params),
                   "both are product linear of lib/matvec");
    struct gpu_binding bind[] = {
        act(x), { w->buffer, w->first, 0 }, lo->z, lo->b, f->by ? act(f->by) : whole(g->unused),
        act(y)
    };
    if (matrices_product(r, y, x, w, p, bind, f)) return;
    if (gpu_by_tiles(g, x->rows)) {
        struct tensor sum = *y, parts;
        p.n_split = product_splits(g, w, x->rows, f);
        if (p.n_split > 1) {
            parts = gpu_scratch(r, SCRATCH_PARTS, p.n_split * x->rows, y->cols);
            bind[5] = act(&parts);
        }
        tiles_product(r, w, &p, bind, COUNT(bind), f->by && p.n_split == 1);
        if (p.n_split > 1) gpu_sum_parts(r, &sum, 0, true, &parts, p.n_split, f->by, f->col);
        return;
    }
    row_product(r, w, &p, bind, COUNT(bind), gpu_ready(x), f->by != NULL);
}

struct gpu_lora gpu_lora_of(struct run *r, const struct weight *w, const struct tensor *z)
{
    const struct gpu_adapted *d = &((const struct gpu_weight *)w->mem)->adapted;
    struct gpu_binding none = whole(ops_of(r)->unused);
    if (!d->rank) return (struct gpu_lora) { .z = none, .b = none };
    return (struct gpu_lora) { .rank = d->rank,
                               .b_rows = w->rows,
                               .b_scales = gpu_adapted_scales(d, w, r->canvas),
                               .z = act(z),
                               .b = whole(d->b) };
}

struct tensor gpu_lora_room(struct run *r, const struct weight *w, uint32_t rows)
{
    uint32_t rank = ((const struct gpu_weight *)w->mem)->adapted.rank;
    if (!rank) return (struct tensor) { 0 };
    return gpu_scratch(r, SCRATCH_THIRD, rows, rank);
}

void gpu_lora_z(struct run *r, const struct tensor *z, const struct tensor *x,
                const struct weight *w)
{
    const struct gpu_adapted *d = &((const struct gpu_weight *)w->mem)->adapted;
    const struct gpu_lora none = { .z = whole(ops_of(r)->unused), .b = whole(ops_of(r)->unused) };
    const struct block a = { .buffer = d->a, .shape = GPU_F32, .cols = w->cols, .rows = d->rank };
    const struct finish as_it_is = { .scale = 1 };
    if (!d->rank) return;
    if (gpu_drops(w)) gpu_lora_in(r, z, x, w);
    else block_product(r, z, x, &a, &none, &as_it_is);
}

/* The same for all buffers; parts: z is the sum of so many rows of it. */
static void after_adapters(struct run *r, const struct tensor *y, const struct tensor *x,
                           const struct weight *w, const struct tensor *z, uint32_t parts,
                           const struct finish *f)
{
    const struct gpu_weight *g = w->mem;
    struct tensor halves, in = x->halves ? *x : gpu_keeps_halves(x, &halves);
    struct gpu_lora lora = gpu_lora_of(r, w, z);
    lora.parts = parts;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct block b = { part->buffer, g->shape,   part->layout,    w->cols,
                           part->row0,   part->rows, g->n_parts == 1, 0 };
        block_product(r, y, &in, &b, &lora, f);
    }
}

struct gpu_piece gpu_piece_of(const struct weight *w, uint32_t first)
{
    const struct gpu_part *part = matrix_of(w)->parts;
    while (first - part->row0 >= part->rows) part++;
    struct gpu_piece p = { .binding = whole(part->buffer), .layout = part->layout };
    p.binding.offset = gpu_layout_from(&p.layout, w->cols, first - part->row0);
    return p;
}

void gpu_linear_rows(struct run *r, const struct tensor *y, const struct tensor *x,
                     const struct weight *w, const struct tensor *z, uint32_t first, uint32_t n)
{
    const struct finish as_it_is = { .scale = 1 };
    struct gpu_piece p = gpu_piece_of(w, first);
    struct gpu_lora lora = gpu_lora_of(r, w, z);
    struct block b = { .buffer = p.binding.buffer,
                       .shape = matrix_of(w)->shape,
                       .layout = p.layout,
                       .cols = w->cols,
                       .rows = n,
                       .first = p.binding.offset };
    if (lora.rank) {
        lora.b.offset = first * (uint32_t)sizeof(float);
        lora.b_scales -= first;
    }
    block_product(r, y, x, &b, &lora, &as_it_is);
}

static void adapted_matrix(struct run *r, const struct tensor *y, const struct tensor *x,
                           const struct weight *w, const struct finish *f)
{
    struct tensor z = gpu_lora_room(r, w, x->rows);
    gpu_lora_z(r, &z, x, w);
    after_adapters(r, y, x, w, &z, 0, f);
}

void gpu_linear_z_parts(struct run *r, const struct tensor *y, const struct tensor *x,
                        const struct weight *w, const struct gpu_z_parts *z)
{
    const struct finish as_it_is = { .scale = 1 };
    if (!gpu_linear_parts(r, y, x, w, z)) after_adapters(r, y, x, w, &z->z, z->n, &as_it_is);
}

void gpu_linear_given(struct run *r, const struct tensor *y, const struct tensor *x,
                      const struct weight *w, const struct tensor *z, const struct tensor *by,
                      uint32_t col)
{
    const struct finish f = { .scale = 1, .by = by, .col = col };
    after_adapters(r, y, x, w, z, 0, &f);
}

void gpu_linears_z(struct run *r, struct tensor *const *y, struct tensor *const *z,
                   const struct tensor *x, const struct weight *const *w, uint32_t n)
{
    const struct finish as_it_is = { .scale = 1 };
    bool many = x->cols % 4 == 0 && gpu_by_tiles(ops_of(r), x->rows);
    for (uint32_t i = 0; i < n; i++) (many ? gpu_lora_in : gpu_lora_z)(r, z[i], x, w[i]);
    struct tensor halves, in = gpu_keeps_halves(x, &halves);
    for (uint32_t i = 0; i < n; i++) after_adapters(r, y[i], &in, w[i], z[i], 0, &as_it_is);
}

void gpu_adapted_matrix(struct run *r, const struct tensor *y, const struct tensor *x,
                        const struct weight *w, float scale_by)
{
    struct finish f = { .scale = scale_by };
    adapted_matrix(r, y, x, w, &f);
}

void gpu_linear_gelu_mul(struct run *r, struct tensor *y, const struct tensor *x,
                         const struct weight *w, const struct tensor *b, uint32_t col)
{
    struct finish f = { .scale = 1, .by = b, .col = col };
    adapted_matrix(r, y, x, w, &f);
}

void gpu_linear(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w)
{
    gpu_adapted_matrix(r, y, x, w, 1);
}

/* Both products in one dispatch where one kernel can read both matrices. */
void gpu_gate_up(struct run *r, struct tensor *y, struct tensor *up, const struct tensor *x,
                 const struct weight *gate_w, const struct weight *up_w)
{
    struct gpu_ops *g = ops_of(r);
    if (gpu_gate_up_ready(r, y, x, gate_w, up_w, NULL)) return;
    const struct gpu_weight *a = gate_w->mem, *b = up_w->mem;
    bool alike = a->shape == b->shape && a->n_parts == 1 && b->n_parts == 1;
    if (!alike || a->adapted.n || b->adapted.n || gpu_by_tiles(g, x->rows)) {
        struct tensor halves, in = gpu_keeps_halves(x, &halves);
        gpu_linear(r, up, &in, up_w);
        gpu_linear_gelu_mul(r, y, &in, gate_w, up, 0);
        return;
    }
    const struct gpu_layout *l = &a->parts[0].layout;
    struct gate_up_params p = { .cols = gate_w->cols,
                                .rows = gate_w->rows,
                                .n_tok = x->rows,
                                .x_stride = x->cols,
                                .y_stride = y->cols,
                                .scales = l->scales,
                                .high = l->high,
                                .d = l->d };
    struct gpu_binding bind[] = { act(x), whole(a->parts[0].buffer), whole(b->parts[0].buffer),
                                  act(y), whole(g->unread[0]) };
    struct row_groups t = gpu_row_groups(g, a->shape, p.rows, p.cols, 2);
    struct gpu_constant constants[] = { { GATE_UP_WG, (float)t.wg },
                                        { GATE_UP_LANES, (float)t.lanes },
                                        { GATE_UP_R, (float)t.rows } };
    record_dispatch(&g->rec, TIERED_SHAPED(g, GATE_UP, a->shape), constants, COUNT(constants), &p,
                    bind, COUNT(bind), divide_up(p.rows, rows_of_workgroup(t)) * x->rows);
}
