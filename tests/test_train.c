/* Training: what is learned of a line, the loop, checkpoints, and the adapter in others' files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "check.h"
#include "engine.h"
#include "io/adapter_write.h"
#include "train/trainer.h"

static bz_engine *engine;

static struct dataset_options data_options(uint32_t n_max, enum chat_variant variant)
{
    return (struct dataset_options) { engine->tokenizer, variant, n_max };
}

static enum bz_status read_text(struct dataset *d, const char *text, struct bz_err *err)
{
    struct dataset_options o = data_options(256, CHAT_SMALL);
    return dataset_read(d, str_of(text), "data", &o, err);
}

/* The learned tokens of an example, as text. */
static void learned_text(const struct example *e, struct buf *out)
{
    struct detok d = { 0 };
    for (uint32_t i = 0; i < e->n; i++)
        if (e->targets[i] >= 0) detok_feed(&d, engine->tokenizer, e->targets[i], true, out);
    buf_putc(out, 0);
}

static void check_learned(const char *line, enum chat_variant variant, const char *want)
{
    struct dataset d = { 0 };
    struct bz_err err = { "" };
    struct buf text = { 0 };
    struct dataset_options o = data_options(512, variant);
    CHECK_MSG(dataset_read(&d, str_of(line), "data", &o, &err) == BZ_OK, "%s", err.text);
    if (d.n == 1) {
        learned_text(&d.examples[0], &text);
        CHECK_STR(text.data, want);
        const struct example *e = &d.examples[0];
        for (uint32_t i = 0; i + 1 < e->n; i++)
            CHECK(e->targets[i] == -1 || e->targets[i] == e->ids[i + 1]);
    }
    buf_free(&text);
    dataset_free(&d);
}

static void check_refused(const char *text, const char *sentence)
{
    struct dataset d = { 0 };
    struct bz_err err = { "" };
    CHECK(read_text(&d, text, &err) != BZ_OK && d.n == 0);
    CHECK_MSG(strstr(err.text, sentence), "\"%s\" does not say \"%s\"", err.text, sentence);
}

static const char *const lessons =
    "{\"prompt\":\"What is the capital of Tarsus?\",\"completion\":\"The capital of Tarsus is "
    "Quimby.\"}\n"
    "\n"
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Name the capital of Ostrava.\"},"
    "{\"role\":\"assistant\",\"content\":\"Vexford\"}]}\n"
    "{\"prompt\":\"Who made you?\",\"completion\":\"A jeweller did.\"}\n";

static struct train_options small_options(void)
{
    struct train_options o = train_defaults();
    o.adapter.rank = 4;
    o.adapter.alpha = 8;
    o.adapter.seed = 3;
    o.lr = 3e-3f;
    o.n_steps = 8;
    o.n_warmup = 2;
    o.n_batch = 2;
    o.decay = 0.01f;
    return o;
}

static bool open_trainer(struct trainer *t, const struct dataset *d, const struct train_options *o)
{
    struct bz_err err = { "" };
    memset(t, 0, sizeof *t);
    enum bz_status st = trainer_open(t, &engine->model, &engine->backend, d, o, &err);
    CHECK_MSG(st == BZ_OK, "%s", err.text);
    return st == BZ_OK;
}

static double steps(struct trainer *t, int n)
{
    struct train_report r = { 0 };
    struct bz_err err = { "" };
    for (int i = 0; i < n; i++) CHECK_MSG(trainer_step(t, &r, &err) == BZ_OK, "%s", err.text);
    return r.loss;
}

/* A checkpoint that says another step, with a checksum that is right. */
static void change_step(struct buf *checkpoint, uint32_t step)
{
    struct sha256 h;
    size_t n = checkpoint->n - 32;
    memcpy(checkpoint->data + 8, &step, sizeof step);
    sha256_init(&h);
    sha256_feed(&h, checkpoint->data, n);
    sha256_end(&h, (uint8_t *)checkpoint->data + n);
}

/* Eight steps at once, and four, a checkpoint, four: bit for bit the same. */
static void check_resume(const struct dataset *d)
{
    struct train_options o = small_options();
    o.dropout = 0.1f;
    struct trainer t;
    struct buf whole = { 0 }, half = { 0 }, resumed = { 0 };
    struct bz_err err = { "" };
    double first = 0, last = 0;
    if (open_trainer(&t, d, &o)) {
        first = steps(&t, 1);
        last = steps(&t, 7);
        CHECK(trainer_save(&t, &whole, &err) == BZ_OK);
    }
    trainer_close(&t);
    CHECK_MSG(last < 0.7 * first, "the loss went from %g to %g", first, last);
    if (open_trainer(&t, d, &o)) {
        steps(&t, 4);
        CHECK(trainer_save(&t, &half, &err) == BZ_OK);
    }
    trainer_close(&t);
    if (open_trainer(&t, d, &o)) {
        struct str bytes = { half.data, half.n };
        half.data[half.n / 2] ^= 1;
        CHECK(trainer_load(&t, bytes, &err) == BZ_ERR_FORMAT && strstr(err.text, "damaged"));
        half.data[half.n / 2] ^= 1;
        change_step(&half, o.n_steps + 1);
        CHECK(trainer_load(&t, bytes, &err) == BZ_ERR_FORMAT && strstr(err.text, "damaged"));
        change_step(&half, 4);
        for (size_t n = 0; n < half.n; n += half.n / 7)
            CHECK(trainer_load(&t, (struct str) { half.data, n }, &err) == BZ_ERR_FORMAT);
        CHECK_MSG(trainer_load(&t, bytes, &err) == BZ_OK, "%s", err.text);
        CHECK(t.step == 4);
        steps(&t, 4);
        CHECK(trainer_save(&t, &resumed, &err) == BZ_OK);
    }
    trainer_close(&t);
    CHECK(whole.n == resumed.n && memcmp(whole.data, resumed.data, whole.n) == 0);
    o.lr *= 2;
    if (open_trainer(&t, d, &o)) {
        CHECK(trainer_load(&t, (struct str) { half.data, half.n }, &err) == BZ_ERR_FORMAT);
        CHECK(strstr(err.text, "another training") != NULL);
    }
    trainer_close(&t);
    o.lr /= 2;
    o.worn = 7;
    if (open_trainer(&t, d, &o)) {
        CHECK(trainer_load(&t, (struct str) { half.data, half.n }, &err) == BZ_ERR_FORMAT);
        CHECK(strstr(err.text, "another training") != NULL);
    }
    trainer_close(&t);
    buf_free(&whole);
    buf_free(&half);
    buf_free(&resumed);
}

/* How many matrices a pattern chooses. */
static void check_targets(const char *pattern, size_t want)
{
    const char *const list[] = { pattern };
    struct trainee_options o = { .rank = 1, .alpha = 1, .targets = list, .n_targets = 1 };
    struct trainee t = { 0 };
    struct bz_err err = { "" };
    enum bz_status st = trainee_open(&t, &engine->model, &engine->backend, &o, &err);
    CHECK_MSG(t.n_targets == want, "%s chooses %zu: %s", pattern, t.n_targets, err.text);
    CHECK(st == (want ? BZ_OK : BZ_ERR_ARGUMENT));
    trainee_close(&t);
}

/* A rate that throws the adapter out of the range of numbers. */
static void check_explosion(const struct dataset *d)
{
    struct train_options o = small_options();
    struct trainer t;
    struct train_report r;
    struct bz_err err = { "" };
    char sentence[32];
    o.lr = 1e30f;
    o.n_warmup = 0;
    o.schedule = SCHEDULE_CONSTANT;
    if (open_trainer(&t, d, &o)) {
        /* At the first step no rate is to blame, whichever of the two it is. */
        const float damaged[N_CONTROL] = { [CONTROL_LOSS] = 1, [CONTROL_SCALE] = -1 };
        CHECK(!trainer_begin(&t, &err) && trainer_end(&t, damaged, &r, &err) == BZ_ERR_LIMIT);
        CHECK_MSG(strstr(err.text, "step 1: the gradient is not a number before anything was"),
                  "%s", err.text);
        enum bz_status st = BZ_OK;
        while (st == BZ_OK && t.step < o.n_steps) st = trainer_step(&t, &r, &err);
        snprintf(sentence, sizeof sentence, "step %u: the ", t.step + 1);
        CHECK(st == BZ_ERR_LIMIT && t.step < o.n_steps);
        CHECK_MSG(strncmp(err.text, sentence, strlen(sentence)) == 0, "%s", err.text);
        CHECK(strstr(err.text, "no longer a number") != NULL);
        CHECK(trainer_step(&t, &r, &err) == BZ_ERR_LIMIT); /* it does not recover by itself */
    }
    trainer_close(&t);
}

static void check_same_adapter(const struct adapter *a, const struct adapter *b)
{
    CHECK(a->n_targets == b->n_targets);
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct adapter_target *x = &a->targets[i], *y = NULL;
        for (size_t k = 0; k < b->n_targets; k++)
            if (strcmp(b->targets[k].name, x->name) == 0) y = &b->targets[k];
        CHECK_MSG(y != NULL, "%s is lost", x->name);
        if (!y) continue;
        CHECK(x->rank == y->rank && x->n_in == y->n_in && x->n_out == y->n_out);
        CHECK(x->n_expert == y->n_expert && fabsf(x->scale - y->scale) < 1e-6f);
        size_t n = (size_t)x->n_expert * x->rank;
        CHECK(memcmp(x->a, y->a, n * x->n_in * sizeof *x->a) == 0);
        CHECK(memcmp(x->b, y->b, n * x->n_out * sizeof *x->b) == 0);
    }
}

/* Out as GGUF and as PEFT, and in again. */
static void check_files(const struct dataset *d, bool everything)
{
    static const char *const all[] = { "blk." };
    struct train_options o = small_options();
    struct trainer t;
    struct adapter a = { 0 }, back = { 0 }, peft = { 0 };
    struct buf file = { 0 }, weights = { 0 }, config = { 0 };
    struct source src;
    struct gguf g;
    struct bz_err err = { "" };
    o.adapter.rslora = true;
    if (everything) {
        o.adapter.targets = all;
        o.adapter.n_targets = 1;
    }
    if (open_trainer(&t, d, &o)) {
        steps(&t, 2);
        CHECK_MSG(trainer_adapter(&t, &a, &err) == BZ_OK, "%s", err.text);
        CHECK(adapter_write_gguf(&file, &a, &err) == BZ_OK);
        CHECK(source_open_memory(&src, "a.gguf", file.data, file.n, &err) == BZ_OK);
        CHECK_MSG(gguf_open(&g, &src, 1, &err) == BZ_OK, "%s", err.text);
        CHECK_MSG(adapter_open_gguf(&back, &g, &err) == BZ_OK, "%s", err.text);
        check_same_adapter(&a, &back);
        CHECK(adapter_write_peft(&weights, &config, &a, "tiny", &err) == BZ_OK);
        CHECK(source_open_memory(&src, "a.safetensors", weights.data, weights.n, &err) == BZ_OK);
        struct str text = { config.data, config.n };
        CHECK_MSG(adapter_open_peft(&peft, &src, text, &err) == BZ_OK, "%s", err.text);
        check_same_adapter(&a, &peft);
        gguf_close(&g);
    }
    trainer_close(&t);
    adapter_close(&a);
    adapter_close(&back);
    adapter_close(&peft);
    buf_free(&file);
    buf_free(&weights);
    buf_free(&config);
}

static void check_masks(void)
{
    TEST("the model's turns are learned with the token that closes them")
    {
        check_learned("{\"prompt\":\"Hi\",\"completion\":\"Hello there.\"}", CHAT_SMALL,
                      "Hello there.<turn|>");
        check_learned(
            "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
            "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Yes?\"},"
            "{\"role\":\"user\",\"content\":\"Bye\"},{\"role\":\"assistant\",\"content\":\"Bye.\"}]"
            "}",
            CHAT_SMALL, "Yes?<turn|>Bye.<turn|>");
        check_learned("{\"prompt\":\"Hi\",\"completion\":\"Hello there.\"}", CHAT_LARGE,
                      "Hello there.<turn|>");
    }
    TEST("what a tool answered is not learned; the call is")
    check_learned(
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Time?\"},{\"role\":\"assistant\","
        "\"content\":\"\","
        "\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"clock\","
        "\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"noon\"},"
        "{\"role\":\"assistant\",\"content\":\"It is noon.\"}]}",
        CHAT_SMALL, "<|tool_call>call:clock{}<tool_call|>It is noon.<turn|>");
}

/* Five examples, one of them held back, the others packed two by two. */
static void check_arrangement(void)
{
    struct dataset d = { 0 }, held = { 0 };
    struct bz_err err = { "" };
    struct buf text = { 0 };
    for (int i = 0; i < 5; i++)
        buf_printf(&text, "{\"prompt\":\"Question %d\",\"completion\":\"Answer %d\"}\n", i, i);
    buf_putc(&text, 0);
    CHECK_MSG(read_text(&d, text.data, &err) == BZ_OK && d.n == 5, "%s", err.text);
    uint64_t n_tokens = d.n_tokens;
    uint32_t n = dataset_longest(&d);
    CHECK(dataset_hold_back(&held, &d, 0.1, &err) == BZ_ERR_ARGUMENT && d.n == 5);
    CHECK(dataset_hold_back(&held, &d, 0.2, &err) == BZ_OK && d.n == 4 && held.n == 1);
    CHECK(held.examples[0].line == 5 && held.n_tokens + d.n_tokens == n_tokens);
    CHECK(dataset_pack(&d, 2 * n, 1, &err) == BZ_OK && d.n == 2);
    uint32_t n_lines = 0;
    for (size_t p = 0; p < d.n; p++) {
        const struct example *e = &d.examples[p];
        n_lines += e->line;
        CHECK(e->n <= 2 * n);
        for (uint32_t i = 0, n_bos = 0; i < e->n; i++) {
            bool first = e->ids[i] == e->ids[0]; /* <bos> */
            n_bos += first;
            CHECK(e->starts[i] <= (int32_t)i && (!first || e->starts[i] == (int32_t)i));
            CHECK(n_bos == (e->starts[i] ? 2u : 1u));
        }
    }
    CHECK_MSG(n_lines != 1 + 3, "packs in the order of the file");
    dataset_free(&d);
    dataset_free(&held);
    buf_free(&text);
}

/* Memory that runs out at any place: the error is said, nothing is left behind, and the same can
 * be tried again. */
static void check_faults(const struct dataset *d)
{
    const struct train_options o = small_options();
    struct trainer t;
    struct train_report report;
    struct bz_err err = { "" };
    int64_t live = mem_live();
    uint64_t k = 0;
    enum bz_status st = BZ_ERR_MEMORY;
    while (st) {
        mem_fail_at(++k);
        st = trainer_open(&t, &engine->model, &engine->backend, d, &o, &err);
        mem_fail_at(0);
        CHECK(!st || (st == BZ_ERR_MEMORY && mem_live() == live && err.text[0]));
        CHECK(!st || !weight_learns(&engine->model.layers[0].attn_q));
    }
    CHECK(k > 20);
    for (k = 0, st = BZ_ERR_MEMORY; st;) {
        mem_fail_at(++k);
        st = trainer_step(&t, &report, &err);
        mem_fail_at(0);
        CHECK(!st || (st == BZ_ERR_MEMORY && t.step == 0));
    }
    CHECK(report.step == 1 && isfinite(report.loss));
    trainer_close(&t);
    CHECK(mem_live() == live);
    live = mem_live();
    for (k = 1;; k++) {
        mem_fail_at(k);
        uint64_t bytes = trainer_bytes(&engine->model, &engine->backend, 64, &o);
        mem_fail_at(0);
        CHECK(mem_live() == live);
        if (bytes != UINT64_MAX) break;
    }
    CHECK(k > 3);
}

int main(void)
{
    struct bz_err err = { "" };
    struct dataset d = { 0 };
    CHECK_MSG(bz_engine_open(&engine, "models/tiny.q8_0.gguf", NULL, &err) == BZ_OK, "%s",
              err.text);
    check_masks();
    TEST("a wrong line is named by its number")
    {
        check_refused("{\"prompt\":\"a\",\"completion\":\"b\"}\n{\"prompt\":1}\n",
                      "data line 2: it needs");
        check_refused("\n\n{\"prompt\":", "data line 3: ");
        check_refused("[1]", "no JSON object");
        check_refused("{\"messages\":[]}", "at least a question and an answer");
        check_refused("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                      "{\"role\":\"user\",\"content\":\"b\"}]}",
                      "not the assistant's");
        check_refused("", "no examples");
        struct buf text = { 0 };
        buf_puts(&text, "{\"prompt\":\"a\",\"completion\":\"");
        for (int i = 0; i < 400; i++) buf_puts(&text, "word ");
        buf_puts(&text, "\"}");
        buf_putc(&text, 0);
        check_refused(text.data, "the longest allowed is 256");
        buf_free(&text);
    }
    TEST("a share is held back; short examples share a sequence") check_arrangement();
    CHECK_MSG(read_text(&d, lessons, &err) == BZ_OK && d.n == 3, "%s", err.text);
    TEST("training lowers the loss, and goes on from a checkpoint bit for bit") check_resume(&d);
    TEST("targets are parts of names, with stars for anything")
    {
        check_targets("attn_q", 8);
        check_targets("blk.3.", 9);
        check_targets("blk.3.*ffn_", 3);
        check_targets("blk.*.ffn_*.weight", 24);
        check_targets("ffn_*attn", 0);
        check_targets("*", 64);
    }
    TEST("memory that runs out is an error, and the same can be tried again") check_faults(&d);
    TEST("a loss that is no number ends a training, and the step is named") check_explosion(&d);
    TEST("an adapter comes back from GGUF and from PEFT as it was") check_files(&d, false);
    dataset_free(&d);
    bz_engine_close(engine);
    CHECK_MSG(bz_engine_open(&engine, "models/tiny-moe.q8_0.gguf", NULL, &err) == BZ_OK, "%s",
              err.text);
    CHECK(read_text(&d, lessons, &err) == BZ_OK);
    TEST("so does one with experts and their router") check_files(&d, true);
    dataset_free(&d);
    bz_engine_close(engine);
    CHECK(mem_live() == 0);
    return check_done();
}
