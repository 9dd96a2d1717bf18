/* quantize.c - `bezel quantize`: decode every weight, encode it again by a recipe.
 *
 * A tensor is a run of weights; rows are whole blocks in both formats, so the run may be cut
 * without looking at rows. Pieces of PIECE weights go to the threads, BATCH pieces at a time, and
 * the batch is written in order: the result does not depend on the number of threads.
 */
#include "cli/quantize.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/cli_model.h"
#include "cli/shipped.h"
#include "io/gguf_write.h"
#include "io/locate.h"
#include "io/quote.h"

enum {
    PIECE = 1 << 16, /* weights: a multiple of every block */
    BATCH = 64,      /* pieces: 16 MiB of F32 at most */
};

/* One thread's own memory and failure. */
struct worker {
    float *values;  /* PIECE */
    uint8_t *bytes; /* PIECE weights as stored; read, not mapped, so that memory stays bounded */
    enum bz_status status;
    struct bz_err err;
};

struct job {
    const struct gguf *g;
    struct pool *pool;
    struct worker workers[POOL_MAX_THREADS];
    uint8_t *out; /* BATCH * PIECE weights in any format */
    /* The tensor at hand. */
    const struct gguf_tensor *tensor;
    const struct quant_format *from, *to;
    uint64_t n_weights, first;  /* in all; of this batch */
    quantize_progress progress; /* may be NULL */
    void *progress_ctx;
    uint64_t done, total; /* weights */
};

/* ---- one piece ---- */

static void convert_piece(void *ctx, uint32_t task, uint32_t worker)
{
    struct job *j = ctx;
    struct worker *w = &j->workers[worker];
    const struct source *src = &j->g->sources[j->tensor->shard];
    if (w->status) return;
    uint64_t begin = j->first + (uint64_t)task * PIECE;
    size_t n = j->n_weights - begin < PIECE ? (size_t)(j->n_weights - begin) : PIECE;
    uint64_t offset = j->tensor->offset + begin / j->from->block * j->from->bytes;
    size_t n_bytes = quant_row_bytes(j->from, n);
    w->status = source_read(src, offset, w->bytes, n_bytes, &w->err);
    if (w->status) return;
    uint8_t *dst = j->out + task * quant_row_bytes(j->to, PIECE);
    j->from->decode(w->bytes, w->values, n);
    j->to->encode(w->values, dst, n);
}

static enum bz_status first_failure(const struct job *j, struct bz_err *err)
{
    for (unsigned i = 0; i < pool_size(j->pool); i++)
        if (j->workers[i].status) {
            if (err) *err = j->workers[i].err;
            return j->workers[i].status;
        }
    return BZ_OK;
}

/* ---- one tensor ---- */

static void advance(struct job *j, uint64_t n_weights)
{
    j->done += n_weights;
    if (j->progress) j->progress(j->progress_ctx, j->done, j->total);
}

static enum bz_status copy_tensor(struct job *j, struct gguf_writer *w, struct bz_err *err)
{
    const struct gguf_tensor *t = j->tensor;
    const size_t room = (size_t)BATCH * PIECE * sizeof(float);
    for (uint64_t at = 0; at < t->n_bytes;) {
        size_t n = t->n_bytes - at < room ? (size_t)(t->n_bytes - at) : room;
        enum bz_status st = source_read(&j->g->sources[t->shard], t->offset + at, j->out, n, err);
        if (st) return st;
        gguf_put_data(w, j->out, n);
        at += n;
    }
    advance(j, j->n_weights);
    return BZ_OK;
}

static enum bz_status convert_tensor(struct job *j, struct gguf_writer *w, struct bz_err *err)
{
    const uint64_t batch = (uint64_t)BATCH * PIECE;
    for (j->first = 0; j->first < j->n_weights; j->first += batch) {
        uint64_t n = j->n_weights - j->first < batch ? j->n_weights - j->first : batch;
        pool_run(j->pool, convert_piece, j, (uint32_t)((n + PIECE - 1) / PIECE));
        enum bz_status st = first_failure(j, err);
        if (st) return st;
        gguf_put_data(w, j->out, quant_row_bytes(j->to, (size_t)n));
        advance(j, n);
    }
    return BZ_OK;
}

/* ---- the file ---- */

static uint64_t count_weights(const struct gguf_tensor *t)
{
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

static void put_metadata(struct gguf_writer *w, const struct gguf *g, enum mix_id mix)
{
    const char *key = "general.file_type";
    for (uint64_t i = 0; i < g->n_kv; i++)
        if (!str_is(g->kvs[i].key, key)) gguf_put_kv(w, &g->kvs[i]);
    gguf_put_u32(w, key, mix_file_type(mix));
}

/* Decide every type before the first byte is written. */
static enum bz_status plan_types(uint32_t *types, const struct gguf *g, enum mix_id id,
                                 struct bz_err *err)
{
    struct mix mix = { .id = id };
    for (uint64_t i = 0; i < g->n_tensors; i++) mix_add(&mix, g->tensors[i].name);
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        types[i] = mix_type(&mix, t->name, t->n_dims, t->ne, t->type);
        if (types[i] == t->type) {
            if (t->n_bytes) continue;
        } else if (quant_find(t->type)) {
            continue;
        }
        return fail(err, BZ_ERR_UNSUPPORTED, "%s: tensor %s is %s, which this build does not read",
                    g->sources[t->shard].name, quote(t->name).z, quant_type_name(t->type));
    }
    return BZ_OK;
}

static enum bz_status put_tensors(struct job *j, struct gguf_writer *w, const uint32_t *types,
                                  struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    for (uint64_t i = 0; i < j->g->n_tensors && st == BZ_OK; i++) {
        const struct gguf_tensor *t = &j->g->tensors[i];
        char *name = mem_copy_str(t->name.p, t->name.n);
        if (!name) st = fail_memory(err, t->name.n);
        if (name) gguf_put_tensor(w, name, types[i], t->n_dims, t->ne);
        mem_free(name);
        j->total += count_weights(t);
    }
    for (uint64_t i = 0; i < j->g->n_tensors && st == BZ_OK; i++) {
        j->tensor = &j->g->tensors[i];
        j->n_weights = count_weights(j->tensor);
        j->from = quant_find(j->tensor->type);
        j->to = quant_find(types[i]);
        st = types[i] == j->tensor->type ? copy_tensor(j, w, err) : convert_tensor(j, w, err);
    }
    return st;
}

static void free_job(struct job *j)
{
    if (!j) return;
    for (unsigned i = 0; i < pool_size(j->pool); i++) {
        mem_free(j->workers[i].values);
        mem_free(j->workers[i].bytes);
    }
    mem_free(j->out);
    mem_free(j);
}

static struct job *make_job(const struct gguf *g, struct pool *pool)
{
    struct job *j = mem_alloc(1, sizeof *j);
    if (!j) return NULL;
    j->g = g;
    j->pool = pool;
    j->out = mem_alloc((size_t)BATCH * PIECE, sizeof(float));
    bool ok = j->out != NULL;
    for (unsigned i = 0; i < pool_size(pool); i++) {
        j->workers[i].values = mem_alloc(PIECE, sizeof(float));
        j->workers[i].bytes = mem_alloc(PIECE, sizeof(float));
        ok = ok && j->workers[i].values && j->workers[i].bytes;
    }
    if (ok) return j;
    free_job(j);
    return NULL;
}

enum bz_status quantize_file(const struct gguf *g, const char *path, enum mix_id mix,
                             struct pool *pool, quantize_progress progress, void *ctx,
                             struct bz_err *err)
{
    struct gguf_writer *w = NULL;
    uint32_t *types = mem_alloc(g->n_tensors, sizeof *types);
    struct job *j = make_job(g, pool);
    enum bz_status st = types && j ? BZ_OK : fail_memory(err, (uint64_t)BATCH * PIECE * 4);
    if (st == BZ_OK) st = plan_types(types, g, mix, err);
    if (st == BZ_OK) st = gguf_writer_open(&w, path, err);
    if (st == BZ_OK) {
        put_metadata(w, g, mix);
        j->progress = progress;
        j->progress_ctx = ctx;
        st = put_tensors(j, w, types, err);
        if (st == BZ_OK) st = source_check(g->sources, g->n_sources, err);
        if (st) gguf_writer_abort(w);
        else st = gguf_writer_finish(w, err);
    }
    mem_free(types);
    free_job(j);
    return st;
}

/* ---- the command ---- */

/* On a terminal, about ten times a second. */
static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    double *last = ctx, now = cli_now();
    if (now - *last < 0.1) return;
    *last = now;
    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " million weights", done / 1000000,
            total / 1000000);
}

static enum bz_status convert(const char *model, const char *store, const char *path,
                              enum mix_id mix, unsigned n_threads, struct bz_err *err)
{
    struct located in = { 0 };
    struct pool *pool = NULL;
    double start = cli_now(), last = start;
    bool terminal = isatty(STDERR_FILENO);
    char from[PATH_MAX];
    enum bz_status st = locate_open(&in, shipped_or(model, store, from), store, err);
    if (st) return st;
    if (!pool_open(&pool, n_threads)) st = fail_memory(err, 0);
    if (st == BZ_OK)
        st = quantize_file(&in.gguf, path, mix, pool, terminal ? show_progress : NULL, &last, err);
    if (terminal) fprintf(stderr, "\r%40s\r", "");
    struct stat info;
    if (st == BZ_OK && stat(path, &info) == 0)
        printf("%s: %s, %" PRIu64 " tensors, %.1f MB in %.1f s\n", path, mix_name(mix),
               in.gguf.n_tensors, (double)info.st_size / 1e6, cli_now() - start);
    pool_close(pool);
    locate_close(&in);
    return st;
}

int cmd_quantize(int argc, char **argv)
{
    const char *args[3], *store = NULL;
    uint64_t n_threads = 0;
    bool force = false;
    const struct cli_option options[] = {
        { "--threads", "N", "threads; default one per core", CLI_U64, &n_threads, NULL },
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &store, NULL },
        { "--force", NULL, "replace a file that exists", CLI_FLAG, &force, NULL },
    };
    const struct cli_command c = {
        "quantize",
        "IN OUT TYPE [options]",
        "Write a model again with its weights in another format.\n"
        "IN is a GGUF file or a name in the Ollama store; TYPE is one of\n" MIX_NAMES ".",
        options,
        sizeof options / sizeof *options,
        3,
        3
    };
    int code;
    enum mix_id mix;
    struct bz_err err = { "" };
    if (cli_parse(&c, argc, argv, args, &code) < 0) return code;
    cli_outlive_reader();
    if (!mix_find(args[2], &mix)) return cli_misuse(&c, "TYPE cannot be \"%s\"", args[2]);
    if (n_threads > POOL_MAX_THREADS)
        return cli_misuse(&c, "--threads can be %u at most", POOL_MAX_THREADS);
    if (!force && access(args[1], F_OK) == 0)
        return cli_misuse(&c, "%s exists; --force replaces it", args[1]);
    enum bz_status st = convert(args[0], store, args[1], mix, (unsigned)n_threads, &err);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
