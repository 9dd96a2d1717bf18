/* adapter_plan.h - what both adapter readers share: tensors are collected as halves of targets,
 * paired and checked, and only then read.
 *
 *     plan_init -> plan_half for each tensor -> plan_check -> plan_load
 */
#ifndef BEZEL_IO_ADAPTER_PLAN_H
#define BEZEL_IO_ADAPTER_PLAN_H

#include "base/strmap.h"
#include "io/adapter.h"

/* One tensor of weights, meant as
 *     dst[expert][row][col] = src[expert * by_expert + row * by_row + col * by_col]
 * where A has rank x in of them, and B out x rank. */
struct adapter_half {
    const struct source *src; /* NULL: this half is missing */
    uint64_t offset, n_bytes;
    uint32_t format; /* quant_id */
    uint64_t n_expert, rows, cols;
    uint64_t by_expert, by_row, by_col;
};

struct adapter_item {
    const char *name;
    enum adapter_pass pass;
    struct adapter_half a, b;
    float scale;
};

struct adapter_plan {
    const char *file; /* for sentences */
    struct adapter out;
    struct adapter_item *items;
    size_t n_items;
    struct strmap by_name; /* of keys: a digit for the pass, and the name */
};

enum bz_status adapter_plan_init(struct adapter_plan *p, const char *file, uint64_t n_tensors,
                                 struct bz_err *err);

/* The strides of a half that lies in memory as it is meant. */
void adapter_half_plain(struct adapter_half *h);

enum bz_status adapter_plan_half(struct adapter_plan *p, struct str target, enum adapter_pass pass,
                                 bool is_b, const struct adapter_half *h, float scale,
                                 struct bz_err *err);

__attribute__((format(printf, 3, 4))) enum bz_status adapter_plan_warn(struct adapter_plan *p,
                                                                       struct bz_err *err,
                                                                       const char *fmt, ...);

/* Both halves there, shapes that fit, formats that can be read, and no more bytes than
 * `n_available`. */
enum bz_status adapter_plan_check(const struct adapter_plan *p, uint64_t n_available,
                                  struct bz_err *err);

/* Read everything and hand the adapter over. */
enum bz_status adapter_plan_load(struct adapter_plan *p, struct adapter *out, struct bz_err *err);

void adapter_plan_free(struct adapter_plan *p);

#endif
