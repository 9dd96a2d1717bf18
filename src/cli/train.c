/* train.c - `bezel train`: learn a LoRA adapter from conversations, on the CPU. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/cli_model.h"
#include "engine.h"
#include "io/adapter_write.h"
#include "io/part_file.h"
#include "train/trainer.h"

static volatile sig_atomic_t interrupted;
static struct sigaction at_once; /* what a second Ctrl-C does */

static void on_interrupt(int signal_number)
{
    interrupted = 1;
    sigaction(signal_number, &at_once, NULL);
}

struct train_job {
    struct cli_model model;
    const char *out, *peft, *eval, *checkpoint, *schedule;
    uint64_t rank, n_steps, n_batch, n_warmup, n_max, every, seed;
    double alpha, lr, decay, clip, epochs, eval_share, dropout;
    bool rslora, keep_all, no_packing;
    struct cli_strs targets;
    /* While it runs: */
    bz_engine *engine;
    struct dataset data, held;
    struct trainer trainer;
    size_t n_examples;
};

/* ---- files ---- */

static enum bz_status read_file(struct buf *out, const char *path, struct bz_err *err)
{
    FILE *f = fopen(path, "rb"); /* a pipe is welcome too */
    if (!f) return source_fail_open(path, errno, err);
    char piece[65536];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) buf_put(out, piece, n);
    int why = ferror(f) ? errno : 0;
    fclose(f);
    if (why) return source_fail_open(path, why, err);
    return out->failed ? fail_memory(err, out->n) : BZ_OK;
}

/* Can it be written? Found out before anything is learned, not after. */
static enum bz_status check_place(const char *path, struct bz_err *err)
{
    struct part_file *f;
    enum bz_status st = path ? part_file_open(&f, path, err) : BZ_OK;
    if (path && st == BZ_OK) part_file_close(f);
    return st;
}

/* ---- what is learned from ---- */

static enum bz_status read_data(struct dataset *out, const struct train_job *j, const char *path,
                                struct bz_err *err)
{
    struct buf text = { 0 };
    struct dataset_options o = {
        .tokenizer = j->engine->tokenizer,
        .variant = j->engine->variant == BZ_CHAT_LARGE ? CHAT_LARGE : CHAT_SMALL,
        .n_max = (uint32_t)j->n_max,
    };
    enum bz_status st = read_file(&text, path, err);
    if (st == BZ_OK) st = dataset_read(out, (struct str) { text.data, text.n }, path, &o, err);
    buf_free(&text);
    return st;
}

/* Hold back a share, then let the short ones share sequences. */
static enum bz_status arrange(struct train_job *j, struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    if (j->eval_share > 0 && !j->eval)
        st = dataset_hold_back(&j->held, &j->data, j->eval_share, err);
    j->n_examples = j->data.n;
    if (st == BZ_OK && !j->no_packing)
        st = dataset_pack(&j->data, (uint32_t)j->n_max, j->seed, err);
    return st;
}

/* ---- the run ---- */

static enum bz_status choose_options(struct train_job *j, struct train_options *o,
                                     struct bz_err *err)
{
    *o = train_defaults();
    o->adapter = (struct trainee_options) {
        .rank = j->rank > UINT32_MAX ? 0 : (uint32_t)j->rank,
        .alpha = (float)(j->alpha > 0 ? j->alpha : 2 * (double)j->rank),
        .rslora = j->rslora,
        .targets = j->targets.v,
        .n_targets = j->targets.n,
        .seed = j->seed,
    };
    o->lr = (float)j->lr;
    o->decay = (float)j->decay;
    o->dropout = (float)j->dropout;
    o->clip = (float)j->clip;
    o->n_batch = j->n_batch > 4096 ? 0 : (uint32_t)j->n_batch;
    o->n_max = dataset_longest(&j->held);
    o->keep_all = j->keep_all;
    o->worn = j->engine->n_adapters ? j->engine->worn : 0; /* a store's model may bring some */
    o->n_steps = j->n_steps ? j->n_steps > 1000000000 ? 0 : (uint32_t)j->n_steps
                            : train_steps(j->epochs, j->data.n, o->n_batch);
    o->n_warmup = j->n_warmup == UINT64_MAX ? o->n_steps / 20 : (uint32_t)j->n_warmup;
    return schedule_find(&o->schedule, str_of(j->schedule), err);
}

static enum bz_status save_checkpoint(struct train_job *j, struct bz_err *err)
{
    struct buf b = { 0 };
    enum bz_status st = trainer_save(&j->trainer, &b, err);
    if (st == BZ_OK) st = part_file_write(j->checkpoint, b.data, b.n, err);
    buf_free(&b);
    return st;
}

static enum bz_status load_checkpoint(struct train_job *j, struct bz_err *err)
{
    struct buf b = { 0 };
    if (!j->checkpoint || access(j->checkpoint, F_OK) != 0) return BZ_OK;
    enum bz_status st = read_file(&b, j->checkpoint, err);
    if (st == BZ_OK) st = trainer_load(&j->trainer, (struct str) { b.data, b.n }, err);
    if (st == BZ_OK) fprintf(stderr, "going on after step %u\n", j->trainer.step);
    buf_free(&b);
    return st;
}

static enum bz_status show_evaluation(struct train_job *j, uint32_t step, struct bz_err *err)
{
    double loss;
    if (!j->held.n) return BZ_OK;
    enum bz_status st = trainer_evaluate(&j->trainer, &j->held, &loss, err);
    if (st == BZ_OK) printf("{\"step\":%u,\"eval_loss\":%.6f}\n", step, loss);
    return st;
}

/* A full disk is no reason to stop learning: the next checkpoint may find room. */
static void try_checkpoint(struct train_job *j)
{
    struct bz_err err = { "" };
    if (save_checkpoint(j, &err))
        fprintf(stderr, "%s; the training goes on without this checkpoint\n", err.text);
}

static enum bz_status run_steps(struct train_job *j, struct bz_err *err)
{
    uint32_t n_steps = j->trainer.options.n_steps;
    enum bz_status st = show_evaluation(j, j->trainer.step, err);
    while (st == BZ_OK && j->trainer.step < n_steps && !interrupted) {
        struct train_report r;
        double start = cli_now();
        st = trainer_step(&j->trainer, &r, err);
        if (st) break;
        printf("{\"step\":%u,\"steps\":%u,\"loss\":%.6f,\"lr\":%.3g,\"grad_norm\":%.4g,\"tok_s\":%."
               "1f}\n",
               r.step, n_steps, r.loss, r.lr, r.grad_norm,
               (double)r.n_tokens / (cli_now() - start));
        fflush(stdout);
        bool due = j->every && r.step % j->every == 0;
        if (due && j->checkpoint) try_checkpoint(j);
        if (due || r.step == n_steps) st = show_evaluation(j, r.step, err);
    }
    return st;
}

/* Write the adapter to `path`. If that fails, write it beside `path` or among the temporary files,
 * so that no hours of training are lost. The status then still is the failure, and the error names
 * the place. */
static enum bz_status write_learned(const char *path, const struct buf *b, struct bz_err *err)
{
    char other[4096];
    struct bz_err again = { "" }, first;
    const char *tmp = getenv("TMPDIR");
    enum bz_status st = part_file_write(path, b->data, b->n, err);
    if (st == BZ_OK) return st;
    first = *err;
    snprintf(other, sizeof other, "%.4000s.%ld.gguf", path, (long)getpid());
    if (part_file_write(other, b->data, b->n, &again)) {
        snprintf(other, sizeof other, "%.4000s/bezel-adapter-%ld.gguf", tmp && *tmp ? tmp : "/tmp",
                 (long)getpid());
        if (part_file_write(other, b->data, b->n, &again)) return st;
    }
    return fail(err, st, "%s; what was learned is in %s", first.text, other);
}

static enum bz_status write_adapter(struct train_job *j, const char *model, struct bz_err *err)
{
    struct adapter a = { 0 };
    struct buf gguf = { 0 }, weights = { 0 }, config = { 0 };
    enum bz_status st = trainer_adapter(&j->trainer, &a, err);
    if (st == BZ_OK) st = adapter_write_gguf(&gguf, &a, err);
    if (st == BZ_OK) st = write_learned(j->out, &gguf, err);
    bool kept = st == BZ_OK;
    if (st == BZ_OK && j->peft) {
        char path[4096];
        st = adapter_write_peft(&weights, &config, &a, model, err);
        if (st == BZ_OK && mkdir(j->peft, 0777) != 0 && errno != EEXIST)
            st = fail(err, BZ_ERR_IO, "%s: %s", j->peft, strerror(errno));
        snprintf(path, sizeof path, "%.4000s/adapter_model.safetensors", j->peft);
        if (st == BZ_OK) st = part_file_write(path, weights.data, weights.n, err);
        snprintf(path, sizeof path, "%.4000s/adapter_config.json", j->peft);
        if (st == BZ_OK) st = part_file_write(path, config.data, config.n, err);
    }
    if (st == BZ_OK)
        fprintf(stderr, "%s: %zu matrices of rank %u, %.1f MB%s%s\n", j->out, a.n_targets,
                a.targets[0].rank, (double)gguf.n / 1e6, j->peft ? "; PEFT in " : "",
                j->peft ? j->peft : "");
    if (st && kept) fprintf(stderr, "%s holds what was learned\n", j->out);
    buf_free(&gguf);
    buf_free(&weights);
    buf_free(&config);
    adapter_close(&a);
    return st;
}

/* A training that fails after some steps leaves what it learned before, as one that is interrupted
 * does. Why it failed is what the user is told last. */
static void keep_learned(struct train_job *j, const char *model)
{
    struct bz_err err = { "" };
    if (!j->trainer.step) return;
    if (write_adapter(j, model, &err) == BZ_OK)
        fprintf(stderr, "%s holds what was learned up to step %u\n", j->out, j->trainer.step);
    else fprintf(stderr, "%s\n", err.text);
}

static void show_memory(struct model *m, const struct backend *be, const struct train_options *o,
                        uint32_t n_max)
{
    struct train_options kept = *o, again = *o;
    kept.keep_all = true;
    again.keep_all = false;
    fprintf(stderr, "memory beyond the model: %.1f MB with --keep-all, %.1f MB without\n",
            (double)trainer_bytes(m, be, n_max, &kept) / 1e6,
            (double)trainer_bytes(m, be, n_max, &again) / 1e6);
}

static enum bz_status train(struct train_job *j, const char *model, const char *data,
                            struct bz_err *err)
{
    struct train_options o;
    enum bz_status st = check_place(j->out, err);
    if (st == BZ_OK) st = check_place(j->checkpoint, err);
    if (st == BZ_OK) st = cli_open(&j->model, model, &j->engine, NULL, err);
    if (st == BZ_OK) st = read_data(&j->data, j, data, err);
    if (st == BZ_OK && j->eval) st = read_data(&j->held, j, j->eval, err);
    if (st == BZ_OK) st = arrange(j, err);
    if (st == BZ_OK) st = choose_options(j, &o, err);
    if (st == BZ_OK) {
        fprintf(stderr,
                "%zu examples, %" PRIu64 " tokens of which %" PRIu64
                " are learned, in %zu sequences; %u steps of %u\n",
                j->n_examples, j->data.n_tokens, j->data.n_learned, j->data.n, o.n_steps,
                o.n_batch);
        struct model *m = &j->engine->model;
        show_memory(m, &j->engine->backend, &o, dataset_longest(&j->data));
        st = trainer_open(&j->trainer, m, &j->engine->backend, &j->data, &o, err);
    }
    if (st == BZ_OK) st = load_checkpoint(j, err);
    if (st) return st;
    st = run_steps(j, err);
    if (st) {
        keep_learned(j, model);
        return st;
    }
    st = write_adapter(j, model, err);
    if (st == BZ_OK && j->checkpoint) st = save_checkpoint(j, err);
    return st;
}

static int run_command(struct train_job *j, const struct cli_option *options, size_t n_options,
                       int argc, char **argv)
{
    const struct cli_command c = {
        "train",
        "MODEL DATA.jsonl [options]",
        "Learn a LoRA adapter from conversations, one JSON object a line:\n"
        "  {\"messages\": [{\"role\": \"user\", \"content\": \"…\"}, {\"role\": \"assistant\", "
        "…}]}\n"
        "  {\"prompt\": \"…\", \"completion\": \"…\"}\n"
        "Prints one JSON object a step. Ctrl-C stops after the step and keeps what was learned.",
        options,
        n_options,
        2,
        2,
    };
    const char *args[2];
    int code;
    struct bz_err err = { "" };
    if (cli_parse(&c, argc, argv, args, &code) < 0) return code;
    if (!j->n_max || j->n_max > 1u << 20 || j->eval_share < 0 || j->eval_share > 0.5)
        return cli_misuse(&c, "--max-tokens is 1 to 1048576, --eval-share 0 to 0.5");
    cli_on_signal(SIGINT, on_interrupt, &at_once);
    cli_outlive_reader();
    enum bz_status st = train(j, args[0], args[1], &err);
    trainer_close(&j->trainer);
    dataset_free(&j->data);
    dataset_free(&j->held);
    bz_engine_close(j->engine);
    return st ? cli_fail(&c, &err) : CLI_OK;
}

int cmd_train(int argc, char **argv)
{
    struct train_job j = { .model = CLI_MODEL_DEFAULTS,
                           .out = "adapter.gguf",
                           .schedule = "cosine",
                           .rank = 16,
                           .n_batch = 1,
                           .n_warmup = UINT64_MAX,
                           .n_max = TRAIN_SEQUENCE,
                           .every = 50,
                           .lr = 2e-4,
                           .clip = 1,
                           .epochs = 3 };
    const struct cli_option options[] = {
        { "--out", "FILE", "the adapter; default adapter.gguf", CLI_STR, &j.out, NULL },
        { "--peft", "DIR", "write it in PEFT's form too", CLI_STR, &j.peft, NULL },
        { "--rank", "R", "1 to 256; default 16", CLI_U64, &j.rank, NULL },
        { "--alpha", "A", "the adapter's strength is A/R; default 2R", CLI_F64, &j.alpha, NULL },
        { "--rslora", NULL, "its strength is A/sqrt(R)", CLI_FLAG, &j.rslora, NULL },
        { "--target", "NAME",
          "part of a tensor's name (attn_q, blk.*.ffn_); may be repeated; default every "
          "dense linear",
          CLI_STRS, &j.targets, NULL },
        { "--dropout", "X", "share of the adapter's inputs left out at random; default 0", CLI_F64,
          &j.dropout, NULL },
        { "--lr", "X", "learning rate; default 2e-4", CLI_F64, &j.lr, NULL },
        { "--schedule", "NAME", "constant, linear or cosine (default)", CLI_STR, &j.schedule,
          NULL },
        { "--warmup", "N", "steps until the full rate; default a twentieth", CLI_U64, &j.n_warmup,
          NULL },
        { "--epochs", "X", "times through the data; default 3", CLI_F64, &j.epochs, NULL },
        { "--steps", "N", "steps, instead of epochs", CLI_U64, &j.n_steps, NULL },
        { "--batch-size", "N", "sequences a step; default 1", CLI_U64, &j.n_batch, NULL },
        { "--no-packing", NULL, "every example is a sequence of its own", CLI_FLAG, &j.no_packing,
          NULL },
        { "--decay", "X", "weight decay; default 0", CLI_F64, &j.decay, NULL },
        { "--clip", "X", "longest gradient; default 1, 0 for none", CLI_F64, &j.clip, NULL },
        { "--seed", "N", "same seed, same adapter", CLI_U64, &j.seed, NULL },
        { "--max-tokens", "N", "tokens of a sequence; default 512", CLI_U64, &j.n_max, NULL },
        { "--eval", "FILE", "examples that are not learned, only measured", CLI_STR, &j.eval,
          NULL },
        { "--eval-share", "X", "hold back this share of the data", CLI_F64, &j.eval_share, NULL },
        { "--checkpoint", "FILE", "saved here, and gone on from when it exists", CLI_STR,
          &j.checkpoint, NULL },
        { "--every", "N", "steps between checkpoints and measurements; default 50", CLI_U64,
          &j.every, NULL },
        { "--keep-all", NULL, "no gradient checkpointing: faster, more memory", CLI_FLAG,
          &j.keep_all, NULL },
        CLI_ENGINE_OPTIONS(j.model),
    };
    return run_command(&j, options, sizeof options / sizeof *options, argc, argv);
}
