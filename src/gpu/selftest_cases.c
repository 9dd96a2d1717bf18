/* selftest_cases.c - the cases of the self-test: every op, in the shapes that choose its pipelines.
 */
#include "gpu/ops_gpu_impl.h"
#include "gpu/selftest_impl.h"

/* One format for each shape of weights that kernels know, in the order of enum gpu_shape. */
static const uint32_t shapes[N_GPU_SHAPES] = {
    QUANT_F32,  QUANT_F16,  QUANT_BF16, QUANT_Q4_0, QUANT_Q5_0,
    QUANT_Q8_0, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K, QUANT_Q4_1, /* which becomes q8_a */
};

/* Few sizes, since each has a supply of its own. */
struct weight *stage_matrix(struct stage *s, const struct test_case *c, uint32_t cols,
                            uint32_t rows, uint32_t n_mat)
{
    float size = 1;
    for (uint32_t n = 1; n < cols; n *= 4) size /= 2;
    return stage_weight(s, c->format, cols, rows, n_mat, size);
}

/* ---- one function an op ---- */

static void run_embed(struct stage *s, const struct test_case *c)
{
    struct tensor *ids = stage_tensor(s, c->rows, 1, STAGE_I32, c->out);
    struct tensor *y = stage_rows(s, c, c->cols);
    op_embed(&s->run, y, stage_matrix(s, c, c->cols, c->out, 1), ids, 3.25f);
    stage_result(s, y, STAGE_F32);
}

static void run_linear(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols), *y = stage_rows(s, c, c->out);
    op_linear(&s->run, y, x, stage_matrix(s, c, c->cols, c->out, 1));
    stage_result(s, y, STAGE_F32);
}

static void run_rms_norm(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols), *y = stage_rows(s, c, c->cols);
    op_rms_norm(&s->run, y, x, stage_vector(s, c->cols, 1), SELFTEST_EPS);
    stage_result(s, y, STAGE_F32);
}

static struct value *normed_input(struct stage *s, const struct test_case *c)
{
    struct value *x = stage_input(s, c, c->cols);
    return tape_rms_norm(s->tape, x, stage_vector(s, c->cols, 1));
}

static void run_norm_sum(struct stage *s, const struct test_case *c)
{
    struct tape *t = stage_tape(s, c);
    struct value *a = normed_input(s, c), *b = normed_input(s, c);
    stage_keep(s, tape_add(t, a, b), STAGE_F32);
    stage_run(s, RULE_NORM_SUM, SELFTEST_POS);
}

/* Two branches in one memory, as a model's lie. */
static struct value *sum_of_branches(struct stage *s, const struct test_case *c)
{
    struct tape *t = s->tape;
    struct tensor *first = stage_tensor(s, 2 * c->rows, c->cols, STAGE_F32, 0);
    first->rows = c->rows;
    s->other = *first;
    s->other.size /= 2;
    s->run.be->view(&s->other, first, c->rows * c->cols);
    struct value *a = tape_input(t, &s->other, c->rows), *b = tape_input(t, first, c->rows);
    a = tape_rms_norm(t, a, stage_vector(s, c->cols, 1));
    b = tape_rms_norm(t, b, stage_vector(s, c->cols, 1));
    return tape_add(t, a, b);
}

struct value *selftest_residual(struct stage *s, const struct test_case *c, bool scaled)
{
    struct tape *t = s->tape;
    struct value *x = stage_input(s, c, c->cols);
    struct value *b = c->both ? sum_of_branches(s, c) : stage_input(s, c, c->cols);
    b = tape_rms_norm(t, b, stage_vector(s, c->cols, 1));
    x = tape_add(t, x, b);
    if (scaled) x = tape_scale(t, x, stage_vector(s, 1, 1));
    stage_keep(s, x, STAGE_F32);
    return x;
}

/* The residual and its norm, which the next block reads. */
static struct value *residual_norm(struct stage *s, const struct test_case *c, bool scaled)
{
    struct value *x = selftest_residual(s, c, scaled);
    return tape_rms_norm(s->tape, x, stage_vector(s, c->cols, 1));
}

static void run_residual_norm(struct stage *s, const struct test_case *c)
{
    stage_tape(s, c);
    struct value *h = residual_norm(s, c, true);
    stage_keep_ready(s, h);
    stage_run(s, RULE_RESIDUAL_NORM, SELFTEST_POS);
}

/* The last residual and its norm, then the head. */
static void run_residual_norm_then_linear(struct stage *s, const struct test_case *c)
{
    struct tape *t = stage_tape(s, c);
    struct value *h = residual_norm(s, c, true);
    h = tape_linear(t, h, stage_matrix(s, c, c->cols, c->out, 1));
    stage_keep(s, h, STAGE_F32);
    stage_run(s, RULE_RESIDUAL_NORM, SELFTEST_POS);
}

static void run_norm_linears(struct stage *s, const struct test_case *c)
{
    struct tape *t = stage_tape(s, c);
    struct value *h = residual_norm(s, c, true);
    uint32_t n = c->n_mat ? c->n_mat : GROUP_LINEARS;
    for (uint32_t i = 0; i < n; i++) {
        struct test_case of = *c;
        if (c->split && i == GROUP_LINEARS - 1) of.format = QUANT_Q6_K;
        struct value *y = tape_linear(t, h, stage_matrix(s, &of, c->cols, c->out, 1));
        stage_keep(s, y, STAGE_F32);
    }
    stage_run(s, RULE_NORM_LINEARS, SELFTEST_POS);
}

/* gelu(W x) * b of the last columns of an input. */
static struct value *linear_gelu(struct stage *s, const struct test_case *c, struct value *x)
{
    struct tape *t = s->tape;
    struct value *b = stage_input(s, c, 2 * c->out);
    b = tape_cols(t, b, c->out, c->out);
    x = tape_linear(t, x, stage_matrix(s, c, c->cols, c->out, 1));
    return tape_gelu_mul(t, x, b);
}

static void run_residual_linear_gelu(struct stage *s, const struct test_case *c)
{
    stage_tape(s, c);
    struct value *x = selftest_residual(s, c, false);
    stage_keep(s, linear_gelu(s, c, x), STAGE_F32);
    stage_run(s, RULE_RESIDUAL_LINEAR_GELU, SELFTEST_POS);
}

static struct value *gate_up(struct stage *s, const struct test_case *c, struct value *x)
{
    struct tape *t = s->tape;
    struct value *gate = tape_linear(t, x, stage_matrix(s, c, c->cols, c->out, 1));
    struct value *up = tape_linear(t, x, stage_matrix(s, c, c->cols, c->out, 1));
    return tape_gelu_mul(t, gate, up);
}

static void run_norm_gate_up(struct stage *s, const struct test_case *c)
{
    stage_tape(s, c);
    struct value *h = residual_norm(s, c, false);
    stage_keep_ready(s, gate_up(s, c, h));
    stage_run(s, RULE_NORM_GATE_UP, SELFTEST_POS);
}

static void run_rope_table(struct stage *s, const struct test_case *c)
{
    struct tensor *table = stage_rows(s, c, 2 * s->rope->n_pair);
    op_rope_table(&s->run, table, s->rope, SELFTEST_POS);
    stage_result(s, table, STAGE_F32);
}

/* In place, as a model's heads are. */
static void run_norm_rope(struct stage *s, const struct test_case *c)
{
    struct tape *t = stage_tape(s, c);
    struct tensor *own = stage_rows(s, c, c->n_head * c->cols);
    struct value *x = tape_input(t, own, c->rows), *angles = stage_input(s, c, c->cols);
    x = tape_head_norm(t, x, stage_vector(s, c->cols, 1), c->cols);
    x = tape_rope(t, x, angles, c->cols);
    tape_result(t, x, own);
    stage_result(s, own, STAGE_F32);
    stage_run(s, RULE_NORM_ROPE, SELFTEST_POS);
}

static void run_linear_gelu(struct stage *s, const struct test_case *c)
{
    stage_tape(s, c);
    struct value *x = stage_input(s, c, c->cols);
    stage_keep(s, linear_gelu(s, c, x), STAGE_F32);
    stage_run(s, RULE_LINEAR_GELU, SELFTEST_POS);
}

static void run_gate_up(struct stage *s, const struct test_case *c)
{
    stage_tape(s, c);
    struct value *x = stage_input(s, c, c->cols);
    stage_keep(s, gate_up(s, c, x), STAGE_F32);
    stage_run(s, RULE_GATE_UP, SELFTEST_POS);
}

static void run_gelu_mul(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols), *b = stage_rows(s, c, 2 * c->cols);
    op_gelu_mul(&s->run, x, b, c->cols);
    stage_result(s, x, STAGE_F32);
}

static void run_add(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols), *b = stage_rows(s, c, c->cols);
    op_add(&s->run, x, b);
    stage_result(s, x, STAGE_F32);
}

static void run_times(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols);
    op_times(&s->run, x, 0.7f);
    stage_result(s, x, STAGE_F32);
}

static void run_softcap(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols);
    op_softcap(&s->run, x, 0.7f);
    stage_result(s, x, STAGE_F32);
}

static void run_scale(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols);
    op_scale(&s->run, x, stage_vector(s, 1, 1));
    stage_result(s, x, STAGE_F32);
}

static void run_copy_rows(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_tensor(s, c->rows + 2, c->cols, STAGE_F32, 0);
    struct tensor *y = stage_rows(s, c, c->cols);
    op_copy_rows(&s->run, y, x, 2);
    stage_result(s, y, STAGE_F32);
}

/* ---- all of them ---- */

/* Blocks of three parts, one of them half a u32. Numbers, so that each unit that is moved counts.
 */
static void run_repack_blocks(struct stage *s, const struct test_case *c)
{
    const struct quant_format *f = quant_find(c->format);
    struct gpu_layout layout;
    gpu_layout_of(f, c->rows, c->cols, &layout);
    uint32_t n_from = c->rows * (uint32_t)quant_row_bytes(f, c->cols) / 2;
    struct tensor *x = stage_tensor(s, 1, n_from, STAGE_F16, 0);
    struct tensor *y = stage_tensor(s, 1, (uint32_t)layout.bytes / 2, STAGE_F16, 0);
    stage_repack(s, y, x, f, c->rows, c->cols);
    stage_result(s, y, STAGE_F16);
}

/* Blocks whose bits change places. The values are whole numbers, since any bits may come together.
 */
static void run_repack_bits(struct stage *s, const struct test_case *c)
{
    const struct quant_format *f = quant_find(c->format);
    struct gpu_layout layout;
    gpu_layout_of(f, c->rows, c->cols, &layout);
    uint32_t n_from = c->rows * (uint32_t)quant_row_bytes(f, c->cols) / 4;
    struct tensor *x = stage_tensor(s, 1, n_from, STAGE_I32, INT32_MAX);
    struct tensor *y = stage_tensor(s, 1, (uint32_t)layout.bytes / 4, STAGE_I32, 1);
    stage_repack(s, y, x, f, c->rows, c->cols);
    stage_result(s, y, STAGE_I32);
}

static const struct test_case simple[] = {
    { run_repack_blocks, .rows = 2, .cols = 5 * 32, .format = QUANT_Q5_0 },
    { run_repack_bits, .rows = 2, .cols = 5 * 256, .format = QUANT_Q4_K },
    { run_repack_bits, .rows = 2, .cols = 5 * 256, .format = QUANT_Q6_K },
    { run_rms_norm, .rows = 2, .cols = 320 },
    { run_norm_sum, .rows = 2, .cols = 320 },
    { run_norm_sum, .rows = 2, .cols = 2560 },
    { run_norm_sum, .rows = 2, .cols = 5376 },
    { run_norm_sum, .rows = 2, .cols = 8196 },
    { run_residual_norm, .rows = 2, .cols = 320 },
    { run_residual_norm, .rows = 2, .cols = 2560 },
    { run_residual_norm, .rows = 2, .cols = 5376 },
    { run_residual_norm, .rows = 2, .cols = 8196 },
    { run_rope_table, .rows = 2 },
    { run_norm_rope, .rows = 2, .cols = 64, .n_head = 3 },
    { run_gelu_mul, .rows = 2, .cols = 64 },
    { run_add, .rows = 2, .cols = 64 },
    { run_scale, .rows = 2, .cols = 64 },
    { run_times, .rows = 2, .cols = 64 },
    { run_softcap, .rows = 2, .cols = 64 },
    { run_copy_rows, .rows = 2, .cols = 64 },
};

/* Products whose workgroups compute the residual, of one matrix to three, and those that merge
 * attention's splits; in every number of rows of a row group. See SHARED_STEP in ops_gpu_residual.c
 * for the columns. */
static bool pick_shared(struct selftest *t, uint32_t format)
{
    bool ok = true;
    for (uint32_t cols = 1024; cols <= 4096; cols += 1024) {
        struct test_case attend = { selftest_attend, .rows = 1, .cols = 256, .n_kv = 1, .out = 9 };
        attend.n_head = cols / attend.cols;
        attend.format = format;
        ok = ok && selftest_pick(t, &attend);
        attend.plain = true;
        ok = ok && selftest_pick(t, &attend);
        for (uint32_t tiling = 1; tiling <= 3; tiling++) {
            struct test_case c = { run_norm_linears, .rows = 1, .cols = cols, .out = 9 };
            c.format = format;
            c.tiling = tiling;
            for (uint32_t k = 0; k < 2 * (GROUP_LINEARS + 1); k++) {
                c.both = k & 1;
                c.n_mat = k / 2;
                c.split = c.n_mat == 0;
                ok = ok && selftest_pick(t, &c);
            }
            c.both = false;
            c.run = run_residual_linear_gelu;
            ok = ok && selftest_pick(t, &c);
            c.run = run_norm_gate_up;
            c.out = 32; /* whole runs of sixteen */
            ok = ok && selftest_pick(t, &c);
        }
    }
    return ok;
}

/* Products of rows with more columns than workgroups keep: a dispatch of its own computes the
 * residual before them, or each head of attention is one split. */
static bool pick_wide(struct selftest *t, uint32_t format, uint32_t tiling)
{
    static const uint32_t dims[] = { 32, 48, 64, 128, 256, 512 };
    enum { STREAM = 5376, HEADS = 4608 };
    struct test_case c = { run_norm_linears, .rows = 1, .cols = STREAM, .out = 32, .n_mat = 1 };
    c.format = format;
    c.tiling = tiling;
    bool ok = selftest_pick(t, &c);
    for (size_t i = 0; i < 2 * sizeof dims / sizeof *dims; i++) {
        struct test_case a = { selftest_attend, .rows = 1, .cols = dims[i / 2], .n_kv = 1 };
        a.n_head = HEADS / a.cols;
        a.out = 32;
        a.format = format;
        a.tiling = tiling;
        a.half = i & 1;
        ok = ok && selftest_pick(t, &a);
    }
    return ok;
}

/* Products of ready rows, in every number of rows of a row group; the lanes follow from the length.
 * A case of its own makes the rows ready, by whichever kernel the model has for that. */
static bool pick_ready(struct selftest *t, uint32_t format)
{
    uint32_t block = quant_find(format)->block;
    bool ok = true;
    for (uint32_t tiling = 1; tiling <= GPU_TILING_THREE; tiling++) {
        for (uint32_t cols = block < 32 ? 32 : block; cols <= 4096; cols *= 2) {
            struct test_case c = { run_residual_norm_then_linear, .rows = 1, .cols = cols,
                                   .out = 32 };
            c.format = format;
            c.tiling = tiling;
            c.wide = true;
            ok = ok && selftest_pick(t, &c);
            c.run = selftest_linear_router, ok = ok && selftest_pick(t, &c);
            c.run = run_residual_linear_gelu, ok = ok && selftest_pick(t, &c);
            c.run = run_norm_linears;
            for (c.n_mat = 1; c.n_mat <= GROUP_LINEARS; c.n_mat++) ok = ok && selftest_pick(t, &c);
            c.n_mat = 0;
            c.split = true;
            ok = ok && selftest_pick(t, &c);
            c.run = run_norm_gate_up;
            ok = ok && selftest_pick(t, &c);
            struct test_case a = { selftest_attend, .rows = 1, .cols = 256, .n_kv = 1, .out = 32 };
            a.format = format;
            a.n_head = cols / a.cols;
            a.tiling = tiling;
            a.attend_tiling = 1;
            a.split = true;
            for (uint32_t k = 0; a.n_head && k < 2; k++) {
                a.plain = k == 0; /* a prompt that is the first may have these alone */
                ok = ok && selftest_pick(t, &a);
            }
        }
        ok = ok && pick_wide(t, format, tiling);
    }
    return ok;
}

/* Rows of every length from one unit of work a lane to 128 of them and more, since the lanes follow
 * from it; and past the tiles of the matrix product. */
static bool pick_matrices(struct selftest *t, uint32_t format)
{
    uint32_t block = quant_find(format)->block;
    struct test_case embed = { run_embed, .rows = 3, .cols = 256, .out = 7, .format = format };
    bool ok = selftest_pick(t, &embed);
    for (uint32_t cols = block < 8 ? 8 : block; cols <= 8192; cols *= 2) {
        struct test_case c = { run_gate_up, .rows = 1, .cols = cols, .out = 9, .format = format };
        ok = ok && selftest_pick(t, &c);
        for (c.tiling = 1; c.tiling <= GPU_TILING_THREE;
             c.tiling++) { /* rows of a row group, see gpu_row_groups */
            c.run = run_linear;
            ok = ok && selftest_pick(t, &c);
            c.run = run_linear_gelu;
            ok = ok && selftest_pick(t, &c);
        }
    }
    ok = ok && pick_shared(t, format) && pick_ready(t, format);
    struct test_case product = { run_linear, .cols = 256, .out = 70, .format = format };
    for (uint32_t i = 0; i < 2 * (GPU_TILINGS + 1); i++) {
        product.tiling = i / 2; /* 0: by its shape, and on a software device no tiles */
        product.out = product.tiling == GPU_TILING_SPLITS ? 72 : 70; /* splits are of whole vec4s */
        product.rows = i & 1 ? 24 : SELFTEST_ROWS; /* too few for subgroup matrices */
        product.run = run_linear;
        ok = ok && selftest_pick(t, &product);
        product.run = run_linear_gelu;
        ok = ok && selftest_pick(t, &product);
    }
    return ok;
}

bool selftest_pick_all(struct selftest *t)
{
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof simple / sizeof *simple; i++)
        ok = selftest_pick(t, &simple[i]);
    ok = ok && selftest_pick_attention(t, false) && selftest_pick_attention(t, true);
    for (uint32_t i = 0; ok && i < N_GPU_SHAPES; i++)
        if (selftest_uses_format(t, i))
            ok = pick_matrices(t, shapes[i]) && selftest_pick_experts(t, shapes[i]);
    return ok;
}
