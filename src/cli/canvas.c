/* canvas.c - one look at a canvas: the text before it is encoded, then the canvas is decoded once,
 * and its logits are written down. For checks against other programs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli_model.h"
#include "engine.h"
#include "io/part_file.h"

struct canvas_args {
    const char *prefix, *canvas, *soft, *logits;
};

/* ---- what the step before thought ---- */

/* A file of n x n_vocab f32, and nothing else. */
static enum bz_status read_logits(const char *path, float *z, size_t n, struct bz_err *err)
{
    FILE *f = fopen(path, "rb");
    if (!f) return fail(err, BZ_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    size_t got = fread(z, sizeof *z, n, f);
    bool more = fgetc(f) != EOF;
    fclose(f);
    if (got == n && !more) return BZ_OK;
    return fail(err, BZ_ERR_FORMAT,
                "%s: a file of %zu numbers (f32) was expected, a row a position", path, n);
}

/* Logits to probabilities, one row. False: they are none. A token may be impossible, -inf. */
static bool soften(float *z, uint32_t n)
{
    double top = -INFINITY, total = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(z[i])) return false;
        top = fmax(top, (double)z[i]);
    }
    if (!isfinite(top)) return false;
    for (uint32_t i = 0; i < n; i++) total += exp((double)z[i] - top);
    for (uint32_t i = 0; i < n; i++) z[i] = (float)(exp((double)z[i] - top) / total);
    return true;
}

/* soft[i] = sqrt(d) sum over v of p_v table[v], of every row. room: for a row of the table. */
static enum bz_status expect(double *soft, const float *p, uint32_t n, const struct weight *table,
                             uint8_t *bytes, float *row, struct bz_err *err)
{
    uint32_t d = table->cols;
    size_t n_bytes = quant_row_bytes(table->fmt, d);
    memset(soft, 0, (size_t)n * d * sizeof *soft);
    for (uint32_t v = 0; v < table->rows; v++) {
        enum bz_status st =
            source_read(table->src, table->offset + (uint64_t)v * n_bytes, bytes, n_bytes, err);
        if (st) return st;
        table->fmt->decode(bytes, row, d);
        for (uint32_t t = 0; t < n; t++) {
            double weight = sqrt((double)d) * (double)p[(size_t)t * table->rows + v];
            for (uint32_t i = 0; i < d; i++) soft[(size_t)t * d + i] += weight * (double)row[i];
        }
    }
    return BZ_OK;
}

/* The session's `soft`, from the processed logits of a step. */
static enum bz_status set_soft(struct bz_session *s, const char *path, struct bz_err *err)
{
    const struct weight *table = &s->engine->model.token_embd;
    uint32_t n = s->acts.canvas.n, d = table->cols;
    size_t n_z = (size_t)n * table->rows, n_soft = (size_t)n * d;
    struct run r = { .be = &s->engine->backend };
    float *z = mem_alloc(n_z + n_soft + d, sizeof *z);
    double *soft = mem_alloc(n_soft, sizeof *soft);
    uint8_t *bytes = mem_alloc(quant_row_bytes(table->fmt, d), 1);
    enum bz_status st =
        z && soft && bytes ? read_logits(path, z, n_z, err) : fail_memory(err, n_z * sizeof *z);
    for (uint32_t t = 0; st == BZ_OK && t < n; t++)
        if (!soften(z + (size_t)t * table->rows, table->rows))
            st = fail(err, BZ_ERR_FORMAT, "%s: row %u is no row of logits: NaN or inf is in it",
                      path, t);
    if (st == BZ_OK) st = expect(soft, z, n, table, bytes, z + n_z + n_soft, err);
    for (size_t i = 0; st == BZ_OK && i < n_soft; i++) z[n_z + i] = (float)soft[i];
    if (st == BZ_OK) op_write(&r, &s->acts.soft, 0, z + n_z, n);
    mem_free(z);
    mem_free(soft);
    mem_free(bytes);
    return st;
}

/* ---- the look ---- */

static enum bz_status write_logits(struct bz_session *s, struct part_file *to, struct bz_err *err)
{
    const struct model *m = &s->engine->model;
    struct run r = { .be = &s->engine->backend };
    uint32_t n = s->acts.canvas.n;
    model_canvas_rows(&r, m, &s->acts);
    for (uint32_t at = 0; at < n && !r.status; at += LOGIT_ROWS) {
        uint32_t rows = n - at < LOGIT_ROWS ? n - at : LOGIT_ROWS;
        model_logits(&r, m, &s->acts, at, rows);
        model_check(&r, m);
        for (uint32_t i = 0; i < rows && !r.status; i++) {
            op_read(&r, &s->acts.logits, i, s->logits, 1);
            enum bz_status st =
                part_file_put(to, s->logits, m->config.n_vocab * sizeof *s->logits, err);
            if (st) return st;
        }
    }
    return r.status ? fail(err, r.status, "%s", r.err.text) : BZ_OK;
}

static enum bz_status look(const struct canvas_args *a, struct bz_session *s, const int32_t *prefix,
                           size_t n_prefix, const int32_t *canvas, size_t n_canvas,
                           struct bz_err *err)
{
    struct run r = { .be = &s->engine->backend };
    struct part_file *file = NULL;
    if (!session_diffuses(s))
        return fail(err, BZ_ERR_ARGUMENT,
                    "this model writes one token after the other; it has no "
                    "canvas");
    if (n_canvas != s->acts.canvas.n)
        return fail(err, BZ_ERR_ARGUMENT, "%zu tokens for a canvas of %u", n_canvas,
                    s->acts.canvas.n);
    enum bz_status st = bz_session_feed(s, prefix, n_prefix, 0, NULL, NULL, err);
    if (st == BZ_OK) st = session_check_ids(s, canvas, n_canvas, err);
    if (st) return st;
    op_write(&r, &s->acts.canvas.ids, 0, canvas, (uint32_t)n_canvas);
    model_forget(&r, &s->acts);
    if (a->soft) st = set_soft(s, a->soft, err);
    if (st == BZ_OK) st = part_file_open(&file, a->logits, err);
    if (st == BZ_OK) st = write_logits(s, file, err);
    if (st == BZ_OK) st = part_file_finish(file, err);
    part_file_close(file);
    return st;
}

int cmd_canvas(int argc, char **argv)
{
    struct cli_model m = CLI_MODEL_DEFAULTS;
    struct canvas_args a = { 0 };
    const char *model;
    const struct cli_option options[] = {
        { "--prefix-ids", "LIST", "tokens of the text before the canvas", CLI_STR, &a.prefix,
          NULL },
        { "--canvas-ids", "LIST", "tokens of the canvas, as many as it has", CLI_STR, &a.canvas,
          NULL },
        { "--soft-bin", "FILE",
          "logits of the step before, soft-capped and divided by its "
          "temperature",
          CLI_STR, &a.soft, NULL },
        { "--logits-bin", "FILE", "where the logits go: rows x vocabulary, f32, soft-capped",
          CLI_STR, &a.logits, NULL },
        CLI_MODEL_OPTIONS(m),
    };
    const struct cli_command c = { "canvas",
                                   "MODEL --prefix-ids LIST --canvas-ids LIST --logits-bin FILE",
                                   "The logits of a diffusion model's canvas after a text: one "
                                   "encoder pass, one decoder\npass. For checks.",
                                   options,
                                   sizeof options / sizeof *options,
                                   1,
                                   1 };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    if (!a.prefix || !a.canvas || !a.logits)
        return cli_misuse(&c, "--prefix-ids, --canvas-ids and --logits-bin are needed");
    struct bz_err err;
    int32_t *prefix = NULL, *canvas = NULL;
    size_t n_prefix = 0, n_canvas = 0;
    bz_engine *e = NULL;
    bz_session *s = NULL;
    enum bz_status st = cli_read_ids(a.prefix, &prefix, &n_prefix, &err);
    if (st == BZ_OK) st = cli_read_ids(a.canvas, &canvas, &n_canvas, &err);
    if (!m.n_context) m.n_context = n_prefix + n_canvas;
    if (st == BZ_OK) st = cli_open(&m, model, &e, &s, &err);
    if (st == BZ_OK) st = look(&a, s, prefix, n_prefix, canvas, n_canvas, &err);
    mem_free(prefix);
    mem_free(canvas);
    bz_session_close(s);
    bz_engine_close(e);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
