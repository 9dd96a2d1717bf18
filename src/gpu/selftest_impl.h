/* selftest_impl.h - a small bench: one op with inputs of its own, on one of two backends.
 *
 * The same case gives the same inputs on both. On the probe nothing is allocated or computed: the
 * ops are only counted, to find out which pipelines the case would run.
 */
#ifndef BEZEL_GPU_SELFTEST_IMPL_H
#define BEZEL_GPU_SELFTEST_IMPL_H

#include "base/rng.h"
#include "gpu/draw.h"
#include "gpu/fuse.h"
#include "gpu/selftest.h"

enum { SELFTEST_POS = 20, SELFTEST_ROWS = 70 }; /* position of row 0; rows at most */
enum { SELFTEST_FAR = 4096 };                   /* of cases that say so: positions at most */
/* Position of a row with attention: it sees so many positions, more than a tile has, in one split.
 */
enum { SELFTEST_LATER = 70 };

#define SELFTEST_EPS 1e-6f

enum stage_place { STAGE_PROBE, STAGE_CPU, STAGE_GPU };
enum stage_kind { STAGE_F32, STAGE_F16, STAGE_I32, STAGE_INT8_PLANES, STAGE_F32_PLANES };

struct stage_weight {
    struct weight w;
    struct source src;
    uint8_t *bytes;
    struct gpu_weight probe;
    struct gpu_part part;
};

struct stage_output {
    struct tensor t;
    enum stage_kind kind;
};

/* Random numbers of a format near a size, as blocks that tensors and matrices are made of. Encoders
 * look for the best scale, which takes them longer than all else here: so there are few, and a
 * matrix has runs of them from any place. */
struct stage_blocks {
    const struct quant_format *f;
    float size;
    uint8_t *bytes;
};

struct stage_supply {
    struct stage_blocks *blocks;
    uint32_t n, cap;
};

struct stage {
    struct run run;
    enum stage_place place;
    struct rng rng;
    struct stage_supply *supply;
    struct upload *upload;
    const struct rope *rope;
    struct tape *tape;                /* of the case, where it has one */
    struct value *ready;              /* of stage_keep_ready; or NULL */
    struct tensor tensors[24], other; /* the latter in the memory of one of the former */
    struct stage_weight weights[12];  /* of a product, a router and its experts */
    struct stage_output results[4];
    uint32_t n_tensors, n_weights, n_results;
    struct gpu_draw draw;
};

struct test_case {
    void (*run)(struct stage *s, const struct test_case *c);
    uint32_t rows, cols, out, format;
    uint32_t n_head, n_kv, n_ff;
    uint32_t n_mat;         /* matrices; 0: the most; experts */
    uint32_t top_k;         /* experts that are chosen */
    uint32_t tiling;        /* of a product or of attention, see struct gpu_ops */
    uint32_t attend_tiling; /* of attention after such products */
    uint32_t step;          /* of a draw: a mask allows every so-many-th token; 0: there is none */
    float temperature;
    bool half, split, plain;
    bool both; /* the sum of two branches ends a block */
    bool wide; /* the residual counts as one of many columns, see struct gpu_ops */
    bool far;  /* as where a history may become long */
};

/* n random numbers near `size`, as bytes; false when memory is short. */
bool stage_fill(struct stage *s, const struct quant_format *f, uint8_t *to, size_t n, float size);
void stage_supply_free(struct stage_supply *y);

/* A tensor of random numbers: normal ones, or whole ones below `below`. */
struct tensor *stage_tensor(struct stage *s, uint32_t rows, uint32_t cols, enum stage_kind kind,
                            uint32_t below);
/* n_mat matrices of random weights near `size`. */
struct weight *stage_weight(struct stage *s, uint32_t format, uint32_t cols, uint32_t rows,
                            uint32_t n_mat, float size);
struct weight *stage_absent(struct stage *s);
/* Ops that follow use this tiling. */
void stage_set_tiling(struct stage *s, uint32_t tiling);
void stage_result(struct stage *s, const struct tensor *t, enum stage_kind kind);

/* x as the blocks of a file, repacked to the parts of y as a load does. */
void stage_repack(struct stage *s, struct tensor *y, const struct tensor *x,
                  const struct quant_format *f, uint32_t rows, uint32_t cols);

static inline struct tensor *stage_rows(struct stage *s, const struct test_case *c, uint32_t cols)
{
    return stage_tensor(s, c->rows, cols, STAGE_F32, 0);
}

/* Weights of a size that keeps W x near 1. */
struct weight *stage_matrix(struct stage *s, const struct test_case *c, uint32_t cols,
                            uint32_t rows, uint32_t n_mat);

static inline struct weight *stage_vector(struct stage *s, uint32_t n, float size)
{
    return stage_weight(s, QUANT_F32, n, 1, 1, size);
}

/* A tape of c->rows rows. Its nodes are plain: the C loops run one after the other, and a GPU what
 * its rules of fusion make of them. */
struct tape *stage_tape(struct stage *s, const struct test_case *c);
/* A random input of the tape; donated: it may be overwritten. */
struct value *stage_input(struct stage *s, const struct test_case *c, uint32_t cols);
struct value *stage_donated(struct stage *s, const struct test_case *c, uint32_t cols);
/* x is a result of the tape, and of the case. Returns where it will be. */
struct tensor *stage_keep(struct stage *s, struct value *x, enum stage_kind kind);
/* The same, and x as products read it where the group that makes it leaves it ready. One a case. */
struct tensor *stage_keep_ready(struct stage *s, struct value *x);
/* Run the tape; row 0 is at position `pos`. A GPU fuses by the rules up to `last`, of which there
 * must be a group. */
void stage_run(struct stage *s, enum gpu_rule last, uint32_t pos);

/* The residual: (x + rms_norm(branch)) * scale, and where c->both of the sum of two branches. It
 * begins the tape, and is a result. */
struct value *selftest_residual(struct stage *s, const struct test_case *c, bool scaled);

/* Offer a case; false when memory is short. */
bool selftest_pick(struct selftest *t, const struct test_case *c);

/* Has the model a kernel with this in its name? */
bool selftest_uses(const struct selftest *t, const char *part_of_name);
bool selftest_uses_format(const struct selftest *t, uint32_t format); /* enum gpu_shape */

/* One row of attention, as selftest_attention.c has it; all cases of it. */
void selftest_attend(struct stage *s, const struct test_case *c);
bool selftest_pick_attention(struct selftest *t, bool half);

/* A router and its experts beside the product of a ready row; all cases of experts. */
void selftest_linear_router(struct stage *s, const struct test_case *c);
bool selftest_pick_experts(struct selftest *t, uint32_t format);

/* Offer the cases that draw; and all others, small ones first. */
bool selftest_pick_draws(struct selftest *t);
bool selftest_pick_all(struct selftest *t);

#endif
