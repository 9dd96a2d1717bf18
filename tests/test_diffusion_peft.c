/* PEFT adapters of DiffusionGemma. Its classes have a module of a layer twice, once for each pass,
 * with one weight; PEFT learns something of its own for each. So the two parts must act apart, as
 * one adapter acts if both are alike, and be told from one another by who merges.
 */
#include "adapter_fixture.h"
#include "cli/cli.h"
#include "cli/inspect.h"
#include "engine.h"
#include "model_fixture.h"

#define MODEL "tests/golden/model_canvas16.gguf"
enum { N_PREFIX = 30, RANK = 4 };

#define CLOSE 2e-4 /* of logits, as in test_session.c */

/* Modules of a layer, as transformers names them, and the tensors of which they are. */
static const char *const modules[][2] = {
    { "self_attn.q_proj", "attn_q" },
    { "self_attn.k_proj", "attn_k" },
    { "self_attn.v_proj", "attn_v" },
    { "self_attn.o_proj", "attn_output" },
    { "mlp.gate_proj", "ffn_gate" },
    { "mlp.up_proj", "ffn_up" },
    { "mlp.down_proj", "ffn_down" },
    { "router.proj", "ffn_gate_inp" },
    { "experts.base_layer", "ffn_gate_up_exps" }, /* of two parameters the first wraps inside */
    { "experts", "ffn_down_exps" },
};

static const char *const outer[][2] = {
    { "self_conditioning.gate_proj", "self_cond_gate.weight" },
    { "self_conditioning.up_proj", "self_cond_up.weight" },
    { "self_conditioning.down_proj", "self_cond_down.weight" },
};

#define EXPERTS                                                                                    \
    ",\"peft_version\":\"0.19.0\",\"target_parameters\":[\"experts.gate_up_proj\","                \
    "\"experts.down_proj\"]"

/* ---- a folder ---- */

/* One pair, whose numbers follow from the seed and the tensor. */
static void put_module(struct st_file *f, const char *path, const struct weight *w, uint64_t seed,
                       float b_size)
{
    char name[200];
    size_t wide = (size_t)RANK * w->n_mat;
    struct rng r = { seed + w->offset };
    float *a = malloc(wide * w->cols * sizeof *a), *b = malloc(wide * w->rows * sizeof *b);
    for (size_t i = 0; i < wide * w->cols; i++) a[i] = 2 * rng_unit(rng_next(&r)) - 1;
    for (size_t i = 0; i < wide * w->rows; i++) b[i] = b_size * (2 * rng_unit(rng_next(&r)) - 1);
    snprintf(name, sizeof name, "base_model.model.%s.lora_A.weight", path);
    put_tensor(f, name, "F32", wide, w->cols, a);
    snprintf(name, sizeof name, "base_model.model.%s.lora_B.weight", path);
    put_tensor(f, name, "F32", w->rows, wide, b);
    free(a);
    free(b);
}

/* Every linear of the layers below `prefix`. */
static void put_layers(struct st_file *f, bz_engine *e, const char *prefix, uint64_t seed,
                       float b_size)
{
    for (uint32_t il = 0; il < e->model.config.n_layer; il++)
        for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
            char path[128], tensor[64];
            struct weight *w;
            struct bz_err err;
            snprintf(tensor, sizeof tensor, "blk.%u.%s.weight", il, modules[i][1]);
            if (model_find_adaptable(&e->model, str_of(tensor), &w, &err)) {
                CHECK(i == 2); /* global layers have no values of their own */
                continue;
            }
            snprintf(path, sizeof path, "%s%u.%s", prefix, il, modules[i][0]);
            put_module(f, path, w, seed, b_size);
        }
}

static void put_outer(struct st_file *f, bz_engine *e, const char *prefix, uint64_t seed,
                      float b_size)
{
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
        char path[128];
        struct weight *w = NULL;
        struct bz_err err;
        CHECK(model_find_adaptable(&e->model, str_of(outer[i][1]), &w, &err) == BZ_OK);
        snprintf(path, sizeof path, "%s%s", prefix, outer[i][0]);
        put_module(f, path, w, seed, b_size);
    }
}

static int add_folder(bz_engine *e, struct st_file *f)
{
    struct bz_err err = { "" };
    int id = 0;
    write_peft(f, CONFIG(EXPERTS));
    CHECK_MSG(bz_adapter_add(e, dir, 1, &id, &err) == BZ_OK, "%s", err.text);
    return id;
}

/* Both passes, each with its seed; seed 0: none. */
static int add_passes(bz_engine *e, uint64_t encoder, uint64_t decoder, float b_size)
{
    struct st_file f = { 0 };
    if (encoder) put_layers(&f, e, "model.encoder.language_model.layers.", encoder, b_size);
    if (decoder) put_layers(&f, e, "model.decoder.layers.", decoder, b_size);
    if (decoder) put_outer(&f, e, "model.decoder.", decoder, b_size);
    return add_folder(e, &f);
}

/* ---- what it does ---- */

static void take_text(bz_session *s)
{
    int32_t *ids = random_ids(s->engine, N_PREFIX, 5);
    bz_session_truncate(s, 0, NULL, NULL);
    feed_pieces(s, ids, N_PREFIX, N_PREFIX);
    free(ids);
}

/* Logits of a canvas after the session's text, where the step before has thought of it: n x
 * n_vocab, to be freed. */
static float *canvas_logits(bz_session *s)
{
    const struct model *m = &s->engine->model;
    struct run r = { .be = &s->engine->backend };
    uint32_t n = s->acts.canvas.n, n_vocab = m->config.n_vocab;
    size_t n_soft = (size_t)n * m->config.n_embd;
    float *z = malloc((size_t)n * n_vocab * sizeof *z), *soft = malloc(n_soft * sizeof *soft);
    int32_t *canvas = random_ids(s->engine, n, 6);
    struct rng random = { 9 };
    for (size_t i = 0; i < n_soft; i++) soft[i] = 2 * rng_unit(rng_next(&random)) - 1;
    op_write(&r, &s->acts.canvas.ids, 0, canvas, n);
    s->acts.soft.rows = n;
    op_write(&r, &s->acts.soft, 0, soft, n);
    model_canvas_rows(&r, m, &s->acts);
    for (uint32_t t = 0; t < n; t++) {
        model_logits(&r, m, &s->acts, t, 1);
        op_read(&r, &s->acts.logits, 0, z + (size_t)t * n_vocab, 1);
    }
    CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
    free(soft);
    free(canvas);
    return z;
}

static float *text_and_canvas(bz_session *s)
{
    take_text(s);
    return canvas_logits(s);
}

static size_t n_logits(const bz_session *s)
{
    return (size_t)s->acts.canvas.n * s->engine->model.config.n_vocab;
}

static void remove_adapter(bz_engine *e, int id)
{
    struct bz_err err;
    CHECK(bz_adapter_remove(e, id, &err) == BZ_OK);
}

/* ---- tests ---- */

struct seen {
    int n, n_text, n_canvas, n_always;
};

static void count_adapters(void *ctx, const char *name, struct weight *w)
{
    struct seen *s = ctx;
    (void)name;
    s->n++;
    for (const struct lora *l = w->lora; l; l = l->next) {
        s->n_text += l->pass == LORA_TEXT;
        s->n_canvas += l->pass == LORA_CANVAS;
        s->n_always += l->pass == LORA_ALWAYS;
    }
}

static struct seen count(bz_engine *e)
{
    struct seen s = { 0 };
    model_each_adaptable(&e->model, &s, count_adapters);
    return s;
}

/* How often `bezel inspect` says a word of the folder. */
static int says(const char *word, bool json)
{
    struct adapter a = { 0 };
    struct inspect x;
    struct buf b = { 0 };
    struct bz_err err = { "" };
    int n = 0;
    CHECK_MSG(adapter_open_file(&a, dir, &err) == BZ_OK, "%s", err.text);
    inspect_peft(&x, &a, dir);
    (json ? inspect_put_json : inspect_put_text)(&b, &x, (struct inspect_wish) { 0 });
    buf_putc(&b, 0);
    for (const char *at = b.data; (at = strstr(at, word)); at++) n++;
    buf_free(&b);
    inspect_close(&x);
    return n;
}

static void check_names(bz_engine *e)
{
    struct st_file f = { 0 };
    const struct model *m = &e->model;
    int id = add_passes(e, 1, 2, 1);
    struct seen s = count(e);
    CHECK(s.n > 20 && s.n_text == s.n && s.n_canvas == s.n && s.n_always == 0);
    CHECK(m->self_gate.lora && m->self_up.lora && m->self_down.lora);
    CHECK(says(", encoder\n", false) == s.n && says(", decoder\n", false) == s.n);
    CHECK(says("\"pass\":\"encoder\"", true) == s.n && says("\"pass\":\"decoder\"", true) == s.n);
    remove_adapter(e, id);
    put_layers(&f, e, "encoder.language_model.layers.", 1, 1); /* the model below that class */
    put_layers(&f, e, "decoder.layers.", 2, 1);
    put_outer(&f, e, "decoder.", 2, 1);
    id = add_folder(e, &f);
    s = count(e);
    CHECK(s.n_text == s.n && s.n_canvas == s.n && s.n_always == 0 && m->self_gate.lora);
    remove_adapter(e, id);
    put_layers(&f, e, "model.layers.", 1, 1);
    id = add_folder(e, &f);
    s = count(e);
    CHECK(s.n_always == s.n && s.n_text == 0 && s.n_canvas == 0);
    remove_adapter(e, id);
}

static void check_zero(bz_engine *e)
{
    bz_session *s = open_session(e, 64, 16);
    float *base = text_and_canvas(s);
    int id = add_passes(e, 1, 2, 0);
    float *zero = text_and_canvas(s);
    CHECK(same_floats(zero, base, n_logits(s)));
    remove_adapter(e, id);
    id = add_passes(e, 1, 2, 0.2f);
    float *other = text_and_canvas(s);
    CHECK(largest_difference(other, base, n_logits(s)) > 0.1);
    struct bz_err err;
    CHECK(bz_adapter_scale(e, id, 0, &err) == BZ_OK);
    free(other);
    other = text_and_canvas(s);
    CHECK(same_floats(other, base, n_logits(s)));
    remove_adapter(e, id);
    free(base);
    free(zero);
    free(other);
    bz_session_close(s);
}

/* Two passes with adapters of their own give what two adapters give that act always, of which the
 * second takes the first one's place when the text is read. */
static void check_apart(bz_engine *e)
{
    bz_session *s = open_session(e, 64, 16);
    int id = add_passes(e, 1, 2, 0.2f);
    float *got = text_and_canvas(s);
    remove_adapter(e, id);
    struct st_file f = { 0 };
    put_layers(&f, e, "model.layers.", 1, 0.2f);
    id = add_folder(e, &f);
    take_text(s);
    float *with_first = canvas_logits(s);
    remove_adapter(e, id);
    put_layers(&f, e, "model.layers.", 2, 0.2f);
    put_outer(&f, e, "model.decoder.", 2, 0.2f);
    id = add_folder(e, &f);
    float *want = canvas_logits(s);
    CHECK(largest_difference(got, want, n_logits(s)) < CLOSE);
    CHECK(largest_difference(got, with_first, n_logits(s)) > 0.1);
    remove_adapter(e, id);
    free(got);
    free(want);
    free(with_first);
    bz_session_close(s);
}

static bool all_floats(void *ctx, struct str name, const uint64_t ne[4], float *v)
{
    (void)ctx, (void)name, (void)ne, (void)v;
    return true;
}

/* Of parts that are alike there is one adapter, and it can be merged: the merged model gives the
 * adapter's logits. */
static void check_merged(enum bz_backend backend)
{
    struct tmp_path whole = tmp_path("whole.gguf"), merged = tmp_path("merged.gguf");
    copy_model(MODEL, whole.z, &(struct model_edit) { .change = all_floats });
    bz_engine *e = open_engine(whole.z, backend);
    bz_session *s = open_session(e, 64, 16);
    float *base = text_and_canvas(s);
    int id = add_passes(e, 3, 3, 0.2f);
    struct seen n = count(e);
    CHECK(n.n_always == n.n && n.n_text == 0 && n.n_canvas == 0);
    float *want = text_and_canvas(s);
    remove_adapter(e, id);
    char *args[] = { "merge", whole.z, dir, merged.z, NULL };
    fflush(stdout);
    CHECK(cmd_merge(4, args) == CLI_OK);
    bz_engine *other = open_engine(merged.z, backend);
    bz_session *t = open_session(other, 64, 16);
    float *got = text_and_canvas(t);
    CHECK_MSG(largest_difference(got, want, n_logits(s)) < CLOSE, "off by %g",
              largest_difference(got, want, n_logits(s)));
    CHECK(largest_difference(got, base, n_logits(s)) > 0.1);
    free(base);
    free(got);
    free(want);
    bz_session_close(s);
    bz_session_close(t);
    bz_engine_close(e);
    bz_engine_close(other);
    unlink(whole.z);
    unlink(merged.z);
}

static void check_refused(bz_engine *e)
{
    struct tmp_path merged = tmp_path("merged.gguf");
    struct bz_err err = { "" };
    struct st_file f = { 0 };
    char *args[] = { "merge", MODEL, dir, merged.z, NULL };
    int id;
    remove_adapter(e, add_passes(e, 1, 2, 1));
    CHECK(cmd_merge(4, args) == CLI_FAILED);
    CHECK(access(merged.z, F_OK) != 0);
    bz_engine *text = open_engine("tests/golden/model_moe.gguf", BZ_BACKEND_CPU);
    put_layers(&f, text, "model.decoder.layers.", 1, 1);
    write_peft(&f, CONFIG(EXPERTS));
    CHECK(bz_adapter_add(text, dir, 1, &id, &err) == BZ_ERR_FORMAT);
    CHECK_MSG(strstr(err.text, "for a diffusion model"), "%s", err.text);
    bz_engine_close(text);
}

int main(void)
{
    int64_t live = mem_live();
    adapter_files_open();
    bz_engine *e = open_engine(MODEL, BZ_BACKEND_REFERENCE);
    bz_engine *fast = open_engine(MODEL, BZ_BACKEND_CPU);
    TEST("every module of DiffusionGemma's classes finds its linear, in its pass")
    check_names(fast);
    TEST("an adapter that adds nothing changes nothing, nor does one of no strength")
    {
        check_zero(e);
        check_zero(fast);
    }
    TEST("what is learned of a pass acts in that pass alone")
    {
        check_apart(e);
        check_apart(fast);
    }
    TEST("what is alike in both passes acts as when it is merged")
    {
        check_merged(BZ_BACKEND_REFERENCE);
        check_merged(BZ_BACKEND_CPU);
    }
    TEST("passes that differ cannot be merged, and are not for other models") check_refused(fast);
    bz_engine_close(e);
    bz_engine_close(fast);
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    adapter_files_close();
    return check_done();
}
