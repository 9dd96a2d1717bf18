/* test_plan.c - what a step would do on GPUs of several kinds, counted without one.
 *
 * The models have the shapes of the real ones and no weights: a plan reads none.
 */
#include "plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "cli/synth.h"
#include "engine.h"
#include "gpu/kernel.h"
#include "gpu/ops_gpu.h"
#include "gpu/wgsl.h"
#include "train/pass.h"
#include "train/trainee.h"

enum { CONTEXT = 4096, BATCH = 512 };

/* Dispatches of a token, drawing it included. A change of fusion changes them: then look at
 * `bezel plan`, measure, and write the new ones down. A device that reads rows as f32 may have a
 * tenth more than one that reads them as int8 planes, for fusion must not hang on that. */
static const struct {
    const char *size;
    uint32_t nvidia, apple, spec;
    uint32_t prompt, matrices; /* 512 tokens on nvidia, and there with subgroup matrices */
} counts[] = {
    { "e2b", 259, 259, 382, 394, 525 },  { "e4b", 309, 309, 501, 663, 737 },
    { "12b", 249, 249, 453, 619, 942 },  { "26b-a4b", 219, 219, 510, 654, 858 },
    { "31b", 428, 428, 564, 789, 1126 },
};
enum { E2B_RANK_16 = 434 };

/* Profiles with the choices of nvidia. */
static const char *const alike[] = { "intel", "amd", "adreno", NULL };
/* Those of a training pass over 512 tokens on nvidia, rank 16 on every dense linear: with layers
 * computed again, and with all of it kept. */
enum { TRAIN_ROWS = 512 };
static const struct {
    const char *size;
    uint32_t again, kept;
} passes[] = { { "e2b", 4079, 3147 }, { "26b-a4b", 4311, 3333 } };

/* The dispatches of a token on nvidia without one rule of fusion, in the order of `counts`. Savings
 * do not add up: without a rule whose groups another rule takes, the other's savings are gone
 * too. */
static const struct {
    const char *rule;
    uint32_t n[5];
} without[] = {
    { "norm_rope", { 424, 531, 593, 434, 858 } },
    { "heads_write", { 304, 381, 409, 319, 678 } },
    { "attend_heads", { 344, 417, 393, 309, 608 } },
    { "attend_linear", { 294, 351, 297, 249, 488 } },
    { "norm_sum", { 259, 309, 249, 278, 428 } },
    { "residual", { 539, 645, 537, 458, 728 } },
    { "residual_norm", { 364, 435, 393, 368, 548 } },
    { "gate_up", { 329, 393, 345, 309, 488 } },
    { "norm_gate_up", { 294, 351, 297, 249, 428 } },
    { "linear_gelu", { 329, 393, 249, 219, 428 } },
    { "residual_linear_gelu", { 294, 351, 249, 219, 428 } },
    { "router", { 259, 309, 249, 339, 428 } },
    { "linear_router", { 259, 309, 249, 249, 428 } },
    { "router_experts", { 259, 309, 249, 249, 428 } },
    { "norm_linears", { 324, 399, 385, 333, 538 } },
    { "linears_z", { 259, 309, 249, 219, 428 } }, /* of training */
    { "norm_rope_bwd", { 259, 309, 249, 219, 428 } },
    { "all", { 874, 1083, 1113, 998, 1388 } },
};

static bool make_model(const char *size, char path[64])
{
    struct synth_options o = { .size = synth_size_find(size), .seed = 1, .hollow = true };
    struct synth_plan plan = { 0 };
    struct bz_err err = { "" };
    CHECK(mix_find("q4_k_m", &o.mix));
    snprintf(path, 64, "build/tmp/plan_%s.gguf", size);
    mkdir("build", 0777);
    CHECK(mkdir("build/tmp", 0777) == 0 || errno == EEXIST);
    enum bz_status st = synth_plan_make(&plan, &o, &err);
    if (st == BZ_OK) st = synth_write(&plan, path, NULL, NULL, &err);
    synth_plan_free(&plan);
    CHECK_MSG(st == BZ_OK, "%s", err.text);
    return st == BZ_OK;
}

static bool open_plan(struct plan *p, const char *path, const struct plan_options *o)
{
    const struct bz_engine_options engine = { 0 };
    const struct bz_session_options session = { .n_context = CONTEXT, .n_batch = BATCH };
    struct bz_err err = { "" };
    *p = (struct plan) { 0 };
    enum bz_status st = plan_open(p, path, &engine, &session, o, &err);
    CHECK_MSG(st == BZ_OK, "%s: %s", path, err.text);
    return st == BZ_OK;
}

static uint64_t end_of(const struct gpu_binding *b)
{
    return b->size ? (uint64_t)b->offset + b->size : null_host_buffer_bytes(b->buffer);
}

/* What WebGPU demands: bindings are inside their buffers, and a binding that is written shares no
 * buffer with one that is read, and overlaps no other that is written. */
static bool is_valid(const struct plan_line *l)
{
    const struct gpu_binding *b = l->dispatch->bindings;
    bool ok = strlen(l->access) == l->dispatch->n_bindings;
    for (uint32_t i = 0; ok && i < l->dispatch->n_bindings; i++) {
        ok = b[i].buffer && b[i].offset % 256 == 0 && b[i].offset < end_of(&b[i]) &&
             end_of(&b[i]) <= null_host_buffer_bytes(b[i].buffer);
        for (uint32_t k = 0; ok && k < i; k++) {
            bool apart = end_of(&b[k]) <= b[i].offset || end_of(&b[i]) <= b[k].offset;
            if (b[i].buffer != b[k].buffer) continue;
            if (l->access[i] != l->access[k]) ok = false;
            else ok = l->access[i] != 'w' || apart;
        }
    }
    return ok;
}

/* Kernels that spread their workgroups over the device's processors are told how many it has. */
static void check_processors(const char *path, const struct gpu_profile *profile)
{
    struct plan p;
    uint32_t n = 0;
    if (!open_plan(&p, path, &(struct plan_options) { .profile = profile })) return;
    for (uint32_t i = 0; i < p.n; i++) {
        const struct null_dispatch *d = p.lines[i].dispatch;
        uint32_t number = kernel_family(d->kernel)->processors;
        if (!number) continue;
        const struct gpu_constant *last = &d->constants[d->n_constants - 1];
        CHECK(d->n_constants > 0 && last->index == number - 1);
        CHECK(last->value == (float)profile->tuning->processors);
        n++;
    }
    CHECK(n > 0);
    plan_close(&p);
}

static void check_valid(const struct plan *p, const char *what)
{
    for (uint32_t i = 0; i < p->n; i++)
        CHECK_MSG(is_valid(&p->lines[i]), "%s: dispatch %u, %s", what, i + 1, p->lines[i].kernel);
}

static void check_count(const char *path, const char *what, const struct plan_options *o,
                        uint32_t want)
{
    struct plan p;
    if (!open_plan(&p, path, o)) return;
    CHECK_MSG(p.n == want, "%s, %s: %u dispatches and not %u", path, what, p.n, want);
    check_valid(&p, path);
    plan_close(&p);
}

/* A prompt's products are all by subgroup matrices, or none is. */
static void check_tier(const char *path, const struct gpu_profile *profile, const char *tier,
                       bool by_matrices)
{
    struct plan p;
    const struct plan_options o = { .profile = profile, .tier = plan_tier_find(tier), .rows = 512 };
    if (!open_plan(&p, path, &o)) return;
    uint32_t n = 0;
    CHECK_STR(p.tier, tier);
    for (uint32_t i = 0; i < p.n; i++) {
        const char *kernel = p.lines[i].kernel;
        if (!strstr(kernel, "matmul[")) continue;
        CHECK_MSG((strstr(kernel, " matrix]") != NULL) == by_matrices, "%s: %s", path, kernel);
        n++;
    }
    CHECK_MSG(n > 0, "%s, %s: no product of many rows", path, tier);
    plan_close(&p);
}

/* A tier that the device lacks. */
static void check_refused(const char *path, const char *profile, const char *tier,
                          const char *sentence)
{
    struct plan p = { 0 };
    struct bz_err err = { "" };
    const struct plan_options o = { .profile = gpu_profile_find(profile),
                                    .tier = plan_tier_find(tier) };
    CHECK(plan_open(&p, path, &(struct bz_engine_options) { 0 }, &(struct bz_session_options) { 0 },
                    &o, &err) == BZ_ERR_ARGUMENT);
    CHECK_STR(err.text, sentence);
    CHECK(!null_host_is_open());
}

static void check_rules(const char *path, const struct gpu_profile *profile, size_t size)
{
    size_t n = sizeof without / sizeof *without;
    CHECK_MSG(!plan_rule_name((uint32_t)n) && plan_rule_name((uint32_t)n - 1),
              "there are other rules than these %zu", n - 1);
    for (size_t i = 0; i < n; i++) {
        uint32_t rule = plan_rule_find(without[i].rule);
        struct plan_options o = { .profile = profile, .without = rule ? 1u << rule : ~0u };
        CHECK(rule == (i + 1 < n ? i + 1 : 0));
        check_count(path, without[i].rule, &o, without[i].n[size]);
    }
}

/* What a device that calls itself so would be; its subgroups have 32 lanes. */
static const char *profile_of(const char *vendor, const char *architecture)
{
    struct gpu_adapter a = { .profile = "" };
    const struct gpu_limits l = { .subgroup_min = 32, .subgroup_max = 32 };
    snprintf(a.vendor, sizeof a.vendor, "%s", vendor);
    snprintf(a.architecture, sizeof a.architecture, "%s", architecture);
    return gpu_profile_of(&a, &l)->name;
}

static void check_profiles(void)
{
    for (size_t i = 0; gpu_profile_at(i); i++) {
        const struct gpu_profile *p = gpu_profile_at(i);
        struct gpu_adapter a = { .vendor = "nvidia" };
        snprintf(a.profile, sizeof a.profile, "%s", p->name);
        CHECK_STR(gpu_profile_of(&p->adapter, &p->limits)->name, p->name);
        CHECK_STR(gpu_profile_of(&a, &p->limits)->name, p->name);
        CHECK(!p->int8 || p->limits.has_packed_dot);
    }
    CHECK_STR(profile_of("nvidia", "turing"), "nvidia");
    CHECK_STR(profile_of("nvidia", ""), "nvidia");
    CHECK_STR(profile_of("nvidia", "kepler"), "spec");
    CHECK_STR(profile_of("intel", "gen-12lp"), "intel");
    CHECK_STR(profile_of("intel", "gen-9"), "spec");
    CHECK_STR(profile_of("amd", "rdna-2"), "amd");
    CHECK_STR(profile_of("amd", "gcn-5"), "spec");
    CHECK_STR(profile_of("qualcomm", "adreno-6xx"), "adreno");
    CHECK_STR(profile_of("arm", "valhall"), "spec");
    CHECK_STR(profile_of("", ""), "spec");
}

/* ---- training ---- */

static void check_recorded(const struct recorded *made, const char *what, uint32_t want)
{
    uint32_t n = 0;
    const struct null_dispatch *d = null_host_program(made->program, &n);
    CHECK_MSG(n == want, "%s: %u dispatches and not %u", what, n, want);
    for (uint32_t i = 0; i < n; i++) {
        struct wgsl text;
        struct bz_err err;
        if (kernel_expand(&text, d[i].kernel, &err) != BZ_OK) continue;
        struct plan_line l = { .dispatch = &d[i], .access = text.bindings };
        CHECK_MSG(is_valid(&l), "%s: dispatch %u, %.*s", what, i + 1, (int)text.name.n,
                  text.name.data);
        wgsl_free(&text);
    }
}

static void check_pass(bz_engine *e, const char *what, bool keep_all, uint32_t want)
{
    static const int32_t zeros[TRAIN_ROWS];
    const struct backend *be = &e->backend;
    struct run r = { .be = be };
    struct pass p = { 0 };
    struct bz_err err = { "" };
    uint64_t before = null_host_bytes();
    CHECK_MSG(pass_open(&p, &e->model, be, TRAIN_ROWS, keep_all, &err) == BZ_OK, "%s", err.text);
    CHECK(null_host_bytes() - before == pass_bytes(&e->model, be, TRAIN_ROWS, keep_all));
    pass_pack(&r, &p, zeros, TRAIN_ROWS);
    pass_put(&r, &p, zeros, zeros, TRAIN_ROWS);
    gpu_ops_begin(be, 0, TRAIN_ROWS);
    pass_gradients(&r, &p, TRAIN_ROWS, 1);
    struct recorded made = gpu_ops_record(be);
    CHECK_MSG(r.status == BZ_OK && made.program, "%s", r.err.text);
    check_recorded(&made, what, want);
    recorded_free(&made);
    uint64_t taken = tape_memory_bytes(&p.memory);
    for (uint32_t rows = 16; rows <= TRAIN_ROWS; rows *= 2) { /* programs of others bind it */
        gpu_ops_begin(be, 0, rows);
        pass_put(&r, &p, zeros, zeros, rows);
        pass_losses(&r, &p, rows);
        pass_gradients(&r, &p, rows, 1);
        CHECK(r.status == BZ_OK && tape_memory_bytes(&p.memory) == taken);
    }
    pass_close(&p);
}

static void check_training(const char *path, const struct gpu_profile *profile, uint32_t again,
                           uint32_t kept)
{
    const struct bz_engine_options options = { .backend = BZ_BACKEND_GPU };
    const struct trainee_options adapter = { .rank = 16, .alpha = 32 };
    struct bz_err err = { "" };
    struct trainee trainee = { 0 };
    bz_engine *e = NULL;
    null_host_open(profile);
    enum bz_status st = bz_engine_open(&e, path, &options, &err);
    if (st == BZ_OK) st = trainee_open(&trainee, &e->model, &e->backend, &adapter, &err);
    CHECK_MSG(st == BZ_OK, "%s: %s", path, err.text);
    if (st == BZ_OK) {
        check_pass(e, path, false, again);
        check_pass(e, path, true, kept);
    }
    trainee_close(&trainee);
    bz_engine_close(e);
    null_host_close();
}

int main(void)
{
    TEST("a device's profile is what it names, else that of its vendor and architecture")
    {
        check_profiles();
    }
    const struct gpu_profile *nvidia = gpu_profile_find("nvidia");
    char path[64];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        TEST("a token of each size takes the dispatches that were measured, on each kind of device")
        {
            if (!make_model(counts[i].size, path)) continue;
            check_count(path, "nvidia", &(struct plan_options) { .profile = nvidia },
                        counts[i].nvidia);
            check_count(path, "apple",
                        &(struct plan_options) { .profile = gpu_profile_find("apple") },
                        counts[i].apple);
            CHECK(10 * counts[i].apple <= 11 * counts[i].nvidia);
            for (const char *const *p = alike; *p; p++)
                check_count(path, *p, &(struct plan_options) { .profile = gpu_profile_find(*p) },
                            counts[i].nvidia);
            check_count(path, "spec",
                        &(struct plan_options) { .profile = gpu_profile_find("spec") },
                        counts[i].spec);
            check_count(path, "a prompt", &(struct plan_options) { .profile = nvidia, .rows = 512 },
                        counts[i].prompt);
        }
        TEST("a prompt is by subgroup matrices where the tier is theirs, and only there")
        {
            const uint32_t matrix = plan_tier_find("matrix");
            check_count(path, "matrices",
                        &(struct plan_options) { .profile = nvidia, .tier = matrix, .rows = 512 },
                        counts[i].matrices);
            check_count(path, "a token",
                        &(struct plan_options) { .profile = nvidia, .tier = matrix },
                        counts[i].nvidia);
            check_tier(path, nvidia, "matrix", true);
            check_tier(path, nvidia, "subgroup", false);
            check_tier(path, nvidia, "plain", false);
        }
        TEST("each rule of fusion saves the dispatches that were counted")
        {
            check_rules(path, nvidia, i);
        }
        if (i > 0) { /* the adapter's zeros of larger models take long to make */
            remove(path);
            continue;
        }
        TEST("an adapter on every linear takes the dispatches that were measured")
        {
            check_count(path, "rank 16", &(struct plan_options) { .profile = nvidia, .rank = 16 },
                        E2B_RANK_16);
            check_count(path, "rank 16, apple",
                        &(struct plan_options) { .profile = gpu_profile_find("apple"), .rank = 16 },
                        E2B_RANK_16);
        }
        TEST("kernels that want to know the device's processors are told by its profile")
        {
            check_processors(path, nvidia);
        }
        TEST("a tier that the device lacks is refused")
        {
            CHECK(!plan_tier_find("fast"));
            check_refused(path, "apple", "matrix",
                          "apple has no subgroup matrices: the subgroup and the plain tier run "
                          "there");
            check_refused(path, "spec", "subgroup",
                          "spec has no subgroups: only the plain tier runs there");
        }
        TEST("a token reads each matrix once, and of tables a row")
        {
            struct plan p;
            if (!open_plan(&p, path, &(struct plan_options) { .profile = nvidia })) continue;
            uint64_t want = bz_engine_info(p.engine).bytes_a_token;
            CHECK_MSG(100 * p.bytes > 98 * want && 100 * p.bytes < 103 * want, "%llu and not %llu",
                      (unsigned long long)p.bytes, (unsigned long long)want);
            plan_close(&p);
        }
        TEST("a step that no session has is an error, and the next plan is as before")
        {
            struct plan p = { 0 };
            struct bz_err err = { "" };
            const struct bz_session_options session = { .n_context = CONTEXT, .n_batch = 16 };
            const struct plan_options o = { .profile = nvidia, .rows = 17 };
            CHECK(plan_open(&p, path, &(struct bz_engine_options) { 0 }, &session, &o, &err) ==
                  BZ_ERR_ARGUMENT);
            CHECK_STR(err.text, "a step of 17 tokens; this session's have at most 16");
            CHECK(!null_host_is_open());
            check_count(path, "again", &(struct plan_options) { .profile = nvidia },
                        counts[i].nvidia);
        }
        remove(path);
    }
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        TEST("a training pass takes the dispatches that were counted, and the memory that was told")
        {
            if (!make_model(passes[i].size, path)) continue;
            check_training(path, nvidia, passes[i].again, passes[i].kept);
            remove(path);
        }
    }
    TEST("of a diffusion model the encoder pass is planned, without logits and drawing")
    {
        static const struct {
            const char *profile;
            uint32_t rows, n;
        } wanted[] = { { "nvidia", 1, 208 }, { "nvidia", 512, 637 }, { "spec", 512, 741 } };
        for (size_t i = 0; i < 3 && make_model("diffusion", path); i++) {
            const struct gpu_profile *profile = gpu_profile_find(wanted[i].profile);
            struct plan p;
            if (!open_plan(&p, path,
                           &(struct plan_options) { .profile = profile, .rows = wanted[i].rows }))
                continue;
            CHECK(strcmp(p.pass, "encoder") == 0);
            CHECK_MSG(p.n == wanted[i].n, "%s, %u rows: %u dispatches", wanted[i].profile,
                      wanted[i].rows, p.n);
            check_valid(&p, path);
            for (uint32_t k = 0; k < p.n; k++) /* the table is read for the tokens alone */
                CHECK(!strstr(p.lines[k].weights, "token_embd") ||
                      strncmp(p.lines[k].kernel, "embed", 5) == 0);
            plan_close(&p);
        }
        remove(path);
    }
    TEST("an adapter on every linear of a diffusion model is planned too")
    {
        struct plan p;
        const struct plan_options o = { .profile = nvidia, .rank = 4 };
        if (make_model("tiny-diffusion", path) && open_plan(&p, path, &o)) {
            CHECK(strcmp(p.pass, "encoder") == 0 && p.n > 0);
            check_valid(&p, path);
            plan_close(&p);
        }
        remove(path);
    }
    TEST("without a plan under way a native build has no GPU")
    {
        bz_engine *e = NULL;
        struct bz_err err = { "" };
        CHECK(bz_engine_open(&e, "models/tiny.q8_0.gguf",
                             &(struct bz_engine_options) { .backend = BZ_BACKEND_GPU },
                             &err) == BZ_ERR_UNSUPPORTED);
        CHECK_STR(err.text, "the GPU is driven by a WebGPU host; this is a native build");
    }
    return check_done();
}
