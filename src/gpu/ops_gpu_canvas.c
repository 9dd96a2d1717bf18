/* ops_gpu_canvas.c - a canvas as dispatches: attention of its rows, what its last rows become, and
 * the sampler's step.
 *
 * Logits of all rows never exist as a whole. The vocabulary goes by in chunks, as keys do in flash
 * attention: a product makes the logits of a chunk, canvas_weigh makes them weights under the
 * largest logit so far, and canvas_expect adds up the chunk's rows of the table by these weights.
 */
#include "gpu/ops_gpu_impl.h"

/* ---- attention ---- */

static struct gpu_constant cols_of(const struct kv *kv)
{
    return (struct gpu_constant) { ATTENTION_TILE_COLS, (float)divide_up(kv->head_dim, 256) };
}

static void attend_masked(struct run *r, struct tensor *y, const struct tensor *q,
                          const struct attention *a, uint32_t pos)
{
    struct gpu_ops *g = ops_of(r);
    const struct kv *kv = a->kv;
    if (a->mask.kind != MASK_PREFIX) {
        run_fail(r, BZ_ERR_UNSUPPORTED, "the gpu has no kernel for this mask yet");
        return;
    }
    struct attention_tile_params p = { .rows = q->rows,
                                       .n_head = a->n_head,
                                       .n_kv_head = kv->n_kv_head,
                                       .head_dim = kv->head_dim,
                                       .n_slots = kv->k.rows,
                                       .window = a->mask.window,
                                       .pos_offset = pos - g->base_pos,
                                       .scale = a->scale };
    _Static_assert(sizeof p == sizeof(struct attention_params), "one piece");
    struct gpu_binding bind[] = { act(q), act(&kv->k), act(&kv->v), act(a->k), act(a->v), act(y) };
    uint64_t vectors = (uint64_t)q->rows * (a->n_head / kv->n_kv_head);
    if (of_fours(g)) {
        struct gpu_constant half = { ATTENTION_KV_F16, kv->k.half };
        record_dispatch(
            &g->rec, (uint32_t)KERNEL_ATTENTION | ATTENTION_TIER_SUBGROUP | ATTENTION_KEYS_PREFIX,
            &half, 1, &p, bind, COUNT(bind), divide_up(vectors, 4) * kv->n_kv_head);
        return;
    }
    struct gpu_constant constants[] = { cols_of(kv), { ATTENTION_TILE_KV_F16, kv->k.half } };
    record_dispatch(&g->rec, (uint32_t)KERNEL_ATTENTION_TILE | ATTENTION_TILE_KEYS_PREFIX,
                    constants, COUNT(constants), &p, bind, COUNT(bind),
                    divide_up(vectors, 32) * kv->n_kv_head);
}

/* ---- the head ---- */

enum {
    KNOWN_WORDS = 8, /* of a row, see canvas_weigh */
    CHUNK_UNIT = 64, /* rows of a matrix that begin where a binding may begin */
    SHARES_MOST = 8, /* of a chunk's rows */
};

/* How canvas_expect is tiled: blocks of rows x toks results, and splits of a chunk's rows. */
struct expect_tiling {
    bool by_matrices;
    struct gpu_matrix_tile tile;
    uint32_t buffers, loads, n_split, n_groups;
};

struct head_pass {
    const struct canvas_head *h;
    const struct tensor *x;
    uint32_t n_chunk;          /* tokens of a chunk at most */
    struct tensor z;           /* n x n_chunk: logits, then weights */
    struct tensor halves;      /* the weights as subgroup matrices read them */
    struct tensor known, sums; /* of canvas_weigh, of canvas_expect */
    struct tensor lora_z;      /* A x of the head's adapters */
    struct expect_tiling tiling;
};

static uint32_t expect_kernel(const struct weight *table)
{
    return SHAPED(CANVAS_EXPECT, matrix_of(table)->shape);
}

/* As many shares as fill the device twice, since each has few steps. */
static uint32_t shares_of(const struct gpu_ops *g, uint32_t tiles, uint32_t units, uint32_t n_chunk)
{
    uint32_t most = n_chunk / (4 * CHUNK_UNIT), n = divide_up(2 * units, tiles);
    if (g->tuning->split_steps == UINT32_MAX) return 1;
    if (n > SHARES_MOST) n = SHARES_MOST;
    if (n > most) n = most;
    return g->tiling ? 3 : n ? n : 1;
}

static struct expect_tiling expect_tiling(const struct gpu_ops *g, uint32_t n_tok,
                                          const struct weight *table, uint32_t n_chunk)
{
    struct expect_tiling c = { .tile = { 64, 64, 64, 0, 0 }, .loads = 4 };
    uint32_t units = g->tuning->processors, matrix = expect_kernel(table);
    bool large = n_tok > 64 && table->cols > 64;
    matrix |= CANVAS_EXPECT_TIER_MATRIX;
    c.by_matrices = g->tier == TIER_MATRIX && matrix_of(table)->shape != GPU_F32 &&
                    !recorder_bars(&g->rec, matrix);
    if (c.by_matrices) {
        c.tile = large ? (struct gpu_matrix_tile) { 128, 128, 256, 0, 0 }
                       : (struct gpu_matrix_tile) { 64, 64, 128, 0, 0 };
        c.buffers = gpu_matrix_buffers(g, &c.tile);
    } else if (large && g->tuning->bwd_tile == 128) {
        c.tile = (struct gpu_matrix_tile) { 128, 128, 256, 0, 0 };
        c.loads = 1;
    } else {
        units *= 4; /* such workgroups are small */
    }
    uint32_t tiles = divide_up(table->cols, c.tile.rows) * divide_up(n_tok, c.tile.toks);
    c.n_split = shares_of(g, tiles, units, n_chunk);
    c.n_groups = tiles * c.n_split;
    return c;
}

/* Tokens of a chunk, so that its logits are of the profile's size; whole units. */
static uint32_t chunk_of(const struct gpu_ops *g, uint32_t n_tok, uint32_t n_vocab)
{
    uint32_t most = g->tiling ? 4 * CHUNK_UNIT : g->tuning->canvas_bytes / (4 * n_tok);
    uint32_t n = most / CHUNK_UNIT * CHUNK_UNIT, all = divide_up(n_vocab, CHUNK_UNIT) * CHUNK_UNIT;
    if (!n) n = CHUNK_UNIT;
    return n < all ? n : all;
}

static void weigh(struct run *r, const struct head_pass *p, uint32_t first, uint32_t n)
{
    struct gpu_ops *g = ops_of(r);
    struct canvas_weigh_params params = {
        .rows = p->x->rows, .cols = n, .stride = p->n_chunk, .first = first, .cap = p->h->cap
    };
    struct gpu_binding bind[] = { act(&p->h->canvas->all), act(&p->z), act(&p->known),
                                  p->tiling.by_matrices ? act(&p->halves) : whole(g->unread[0]) };
    struct gpu_constant constants[] = { { CANVAS_WEIGH_WG, gpu_sum_wg(g, 256) },
                                        { CANVAS_WEIGH_HALVES, p->tiling.by_matrices } };
    record_dispatch(&g->rec, KERNEL_CANVAS_WEIGH, constants, COUNT(constants), &params, bind,
                    COUNT(bind), p->x->rows);
}

static void expect(struct run *r, const struct head_pass *p, uint32_t first, uint32_t n)
{
    struct gpu_ops *g = ops_of(r);
    const struct expect_tiling *c = &p->tiling;
    struct gpu_piece w = gpu_piece_of(p->h->table, first);
    struct canvas_expect_params params = { .cols = p->h->table->cols,
                                           .rows = n,
                                           .n_tok = p->x->rows,
                                           .x_cols = p->n_chunk,
                                           .n_split = c->n_split,
                                           .fresh = first == 0,
                                           .scales = w.layout.scales,
                                           .high = w.layout.high,
                                           .d = w.layout.d };
    struct gpu_binding bind[] = { act(c->by_matrices ? &p->halves : &p->z), w.binding,
                                  act(&p->known), act(&p->sums) };
    uint32_t kernel = expect_kernel(p->h->table);
    struct gpu_constant tile[] = { { CANVAS_EXPECT_COLS, (float)c->tile.rows },
                                   { CANVAS_EXPECT_TOKS, (float)c->tile.toks },
                                   { CANVAS_EXPECT_WG, (float)c->tile.wg },
                                   { CANVAS_EXPECT_LOADS, (float)c->loads } };
    struct gpu_constant pieces[] = { { CANVAS_EXPECT_ROWS, (float)c->tile.rows },
                                     { CANVAS_EXPECT_TOKS, (float)c->tile.toks },
                                     { CANVAS_EXPECT_WG, (float)c->tile.wg },
                                     { CANVAS_EXPECT_BUFFERS, (float)c->buffers } };
    if (c->by_matrices) kernel |= CANVAS_EXPECT_TIER_MATRIX;
    record_dispatch(&g->rec, kernel, c->by_matrices ? pieces : tile, 4, &params, bind, COUNT(bind),
                    c->n_groups);
}

/* What all chunks have made of the rows. */
static void finish_rows(struct run *r, const struct head_pass *p, struct tensor *soft,
                        struct tensor *entropy, struct tensor *picks)
{
    struct canvas_rows_params params = {
        .rows = p->x->rows, .cols = soft->cols, .n_split = p->tiling.n_split, .scale = p->h->scale
    };
    struct gpu_binding bind[] = { act(&p->known), act(&p->sums), act(soft), act(entropy),
                                  act(picks) };
    gpu_dispatch_op(r, KERNEL_CANVAS_ROWS, &params, bind, COUNT(bind),
                    divide_up((uint64_t)soft->rows * soft->cols / 4, 64));
}

/* Tokens from `first` on that are in one buffer of the matrix. */
static uint32_t left_of_part(const struct weight *w, uint32_t first)
{
    const struct gpu_weight *g = w->mem;
    uint32_t i = 0;
    while (first - g->parts[i].row0 >= g->parts[i].rows) i++;
    return g->parts[i].row0 + g->parts[i].rows - first;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void canvas_head(struct run *r, struct tensor *soft, struct tensor *entropy,
                        struct tensor *picks, const struct tensor *x, const struct canvas_head *h)
{
    struct gpu_ops *g = ops_of(r);
    struct tensor kept, in = gpu_keeps_halves(x, &kept);
    uint32_t n = x->rows, n_vocab = h->head->rows;
    struct head_pass p = { .h = h, .x = x, .n_chunk = chunk_of(g, n, n_vocab) };
    p.tiling = expect_tiling(g, n, h->table, p.n_chunk);
    p.z = gpu_scratch(r, SCRATCH_FIRST, n, p.n_chunk);
    p.known = gpu_scratch(r, SCRATCH_PLAN, n, KNOWN_WORDS);
    p.sums = gpu_scratch(r, SCRATCH_SECOND, p.tiling.n_split * n, soft->cols);
    if (p.tiling.by_matrices) p.halves = gpu_scratch(r, SCRATCH_ACT, n, p.n_chunk / 2 + 4);
    p.lora_z = gpu_lora_room(r, h->head, n);
    gpu_lora_z(r, &p.lora_z, x, h->head);
    for (uint32_t at = 0, step; at < n_vocab; at += step) {
        step = smaller(p.n_chunk, smaller(left_of_part(h->head, at), left_of_part(h->table, at)));
        gpu_linear_rows(r, &p.z, &in, h->head, &p.lora_z, at, step);
        weigh(r, &p, at, step);
        expect(r, &p, at, step);
    }
    finish_rows(r, &p, soft, entropy, picks);
}

/* ---- the step ---- */

static void canvas_step(struct run *r, struct canvas *c, const struct tensor *entropy,
                        const struct tensor *picks, uint32_t n_vocab)
{
    struct gpu_ops *g = ops_of(r);
    uint32_t at = c->all.first;
    struct tensor order = gpu_scratch(r, SCRATCH_PLAN, 2, c->n);
    struct canvas_step_params p = { .n = c->n,
                                    .n_vocab = n_vocab,
                                    .ids = c->ids.first - at,
                                    .best = c->best.first - at,
                                    .entropy = c->entropy.first - at,
                                    .accepted = c->accepted.first - at,
                                    .fixed = c->fixed.first - at,
                                    .draws = c->draws.first - at,
                                    .fresh = c->fresh.first - at };
    struct gpu_binding bind[] = { act(entropy), act(picks), act(&c->all), act(&order),
                                  whole(g->rec.step) };
    gpu_dispatch_sum(r, KERNEL_CANVAS_STEP, CANVAS_STEP_WG, 256, &p, bind, COUNT(bind), 1);
}

const struct optional_ops gpu_optional = {
    .attend_masked = attend_masked,
    .canvas_head = canvas_head,
    .canvas_step = canvas_step,
};
