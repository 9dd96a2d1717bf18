/* test_tape.c - tapes: a network of one's own, memory by liveness, groups.
 *
 * The first test has a network that is no Gemma, from its maths to its numbers on the CPU and its
 * dispatches on a GPU. A tower and a canvas are in test_members.c.
 */
#include "gpu/fuse.h"
#include "gpu/null_host.h"
#include "gpu/ops_gpu.h"
#include "gpu/profile.h"
#include "tape_fixture.h"

/* ---- the toy member: the next of V words, by a gated layer over the last word's embedding ---- */

enum { V = 40, D = 32, FF = 48, ROWS = 5, N_OUT = 2 };

struct toy {
    const struct weight *table, *norm, *gate, *up, *down, *post, *out;
};

/* x = table[id] * 3
 * x += rms(down(gelu(gate h) * up h))   with h = rms(x)
 * y = 5 tanh(table rms(x) / 5)
 */
static struct value *toy_forward(struct tape *t, const struct toy *m, struct value *ids,
                                 uint32_t n_out)
{
    struct value *x = tape_embed(t, m->table, ids, 3);
    struct value *h = tape_rms_norm(t, x, m->norm);
    struct value *gate = tape_linear(t, h, m->gate);
    struct value *up = tape_linear(t, h, m->up);
    h = tape_gelu_mul(t, gate, up);
    h = tape_linear(t, h, m->down);
    h = tape_rms_norm(t, h, m->post);
    x = tape_add(t, x, h);
    tape_tap(t, "x", -1, x);
    x = tape_rows(t, x, x->at.rows - n_out, n_out);
    x = tape_rms_norm(t, x, m->out);
    x = tape_linear(t, x, m->table);
    return tape_softcap(t, x, 5);
}

static struct toy toy_weights(struct bench *b)
{
    return (struct toy) { .table = &bench_weight(b, QUANT_Q8_0, D, V, 1)->w,
                          .norm = &bench_weight(b, QUANT_F32, D, 1, 1)->w,
                          .gate = &bench_weight(b, QUANT_Q8_0, D, FF, 1)->w,
                          .up = &bench_weight(b, QUANT_Q8_0, D, FF, 1)->w,
                          .down = &bench_weight(b, QUANT_F16, FF, D, 1)->w,
                          .post = &bench_weight(b, QUANT_F32, D, 1, 1)->w,
                          .out = &bench_weight(b, QUANT_F32, D, 1, 1)->w };
}

/* The same by loops over doubles, for one token. */
static void toy_formula(double z[V], const struct toy *m, int32_t id)
{
    double x[D], h[D], gate[FF], up[FF], b[D];
    for (uint32_t i = 0; i < D; i++) x[i] = 3 * (double)decoded(m->table)[(uint32_t)id * D + i];
    formula_norm(h, x, decoded(m->norm), D, (double)EPS);
    formula_matvec(gate, h, m->gate, 0);
    formula_matvec(up, h, m->up, 0);
    for (uint32_t i = 0; i < FF; i++) gate[i] = formula_gelu(gate[i]) * up[i];
    formula_matvec(b, gate, m->down, 0);
    formula_norm(b, b, decoded(m->post), D, (double)EPS);
    for (uint32_t i = 0; i < D; i++) x[i] += b[i];
    formula_norm(x, x, decoded(m->out), D, (double)EPS);
    formula_matvec(z, x, m->table, 0);
    for (uint32_t i = 0; i < V; i++) z[i] = 5 * tanh(z[i] / 5);
}

/* Groups that run. */
static uint32_t count_groups(const struct tape *t)
{
    uint32_t n = 0;
    for (const struct node *k = t->nodes; k; k = k->next) n += k->group->place == k;
    return n;
}

static void check_toy(const struct backend *be)
{
    struct bench b;
    struct tape t = { 0 };
    struct tape_memory m = { 0 };
    bench_open(&b, be, true, 1);
    struct toy toy = toy_weights(&b);
    struct act *ids = bench_ids(&b, ROWS, 1, V), *z = bench_blank(&b, N_OUT, V);
    begin(&t, ROWS, N_OUT);
    struct value *in = tape_input(&t, &ids->t, ROWS);
    tape_result(&t, toy_forward(&t, &toy, in, N_OUT), &z->t);
    CHECK(make_ready(&t, &m, be));
    tape_run(&t, &b.run, 0);
    CHECK_MSG(b.run.status == BZ_OK, "%s", b.run.err.text);
    bench_result(&b, &z->t, false);
    for (uint32_t i = 0; i < N_OUT; i++) {
        double want[V];
        toy_formula(want, &toy, act_id(ids, ROWS - N_OUT + i));
        for (uint32_t k = 0; k < V; k++) CHECK(fabs((double)b.got[i * V + k] - want[k]) < 1e-4);
    }
    tape_free(&t);
    tape_memory_close(&m, be);
    bench_close(&b);
}

/* Its nodes and groups on a GPU, without one. */
static void check_fused_toy(uint32_t without, bool taps, uint32_t want)
{
    struct backend gpu;
    struct bench b;
    struct bz_err err;
    struct tape t = { 0 };
    struct tape_memory m = { 0 };
    null_host_open(gpu_profile_find("nvidia"));
    CHECK(gpu_ops_open(&gpu, TIER_SUBGROUP, &err) == BZ_OK);
    ((struct gpu_ops *)gpu.ctx)->without = without;
    bench_open(&b, &gpu, true, 1);
    struct toy toy = toy_weights(&b);
    struct act *ids = bench_ids(&b, ROWS, 1, V), *z = bench_blank(&b, N_OUT, V);
    begin(&t, ROWS, N_OUT);
    t.taps = taps;
    struct value *in = tape_input(&t, &ids->t, ROWS);
    tape_result(&t, toy_forward(&t, &toy, in, N_OUT), &z->t);
    CHECK(make_ready(&t, &m, &gpu));
    CHECK(t.n_nodes == 12);
    CHECK_MSG(count_groups(&t) == want, "%u groups", count_groups(&t));
    tape_free(&t);
    tape_memory_close(&m, &gpu);
    bench_close(&b);
    gpu.close(&gpu);
    null_host_close();
}

/* ---- random tapes ---- */

enum { N_VALUES = 40, N_RESULTS = 3, COLS = 8 };

/* Every value is made of ones that came before it, of as many rows. */
static struct value *random_value(struct tape *t, struct rng *r, struct value **v, uint32_t n)
{
    struct value *a = v[rng_below(r, n)], *b = v[rng_below(r, n)];
    static const struct weight none = { 0 };
    switch (rng_below(r, 6)) {
    case 0: return tape_times(t, a, 0.75f);
    case 1: return tape_softcap(t, a, 2);
    case 2: return tape_rms_norm(t, a, &none);
    case 3: return tape_head_norm(t, a, &none, COLS / 2);
    case 4: return a->at.rows == ROWS ? tape_rows(t, a, 1, N_OUT) : tape_times(t, a, 1.5f);
    default:
        while (b->at.rows != a->at.rows || b == a) {
            if (b == a) b = tape_times(t, a, 1.25f);
            else b = v[rng_below(r, n)];
        }
        return rng_below(r, 2) ? tape_add(t, a, b) : tape_gelu_mul(t, a, b);
    }
}

/* Write a tape from a seed, run it, and put its last values into `got`. alone: every value has
 * memory of its own. */
static uint64_t run_random(const struct backend *be, uint64_t seed, bool alone, float *got)
{
    struct rng r = { seed };
    struct tape t = { 0 };
    struct tape_memory m = { 0 };
    struct value *v[N_VALUES];
    struct tensor in = { 0 }, own[N_VALUES] = { 0 };
    struct run run = { .be = be };
    begin(&t, ROWS, N_OUT);
    CHECK(tensor_alloc(be, &in, ROWS, COLS));
    for (uint32_t i = 0; i < ROWS * COLS; i++) ((float *)in.mem)[i] = (float)(i % 7) - 2.5f;
    v[0] = tape_times(&t, tape_input(&t, &in, ROWS), 1);
    for (uint32_t i = 1; i < N_VALUES; i++) v[i] = random_value(&t, &r, v, i);
    for (uint32_t i = 0; i < N_VALUES; i++) {
        if (!alone && i + N_RESULTS < N_VALUES) continue;
        CHECK(tensor_alloc(be, &own[i], ROWS, COLS));
        if (!v[i]->own) tape_result(&t, v[i], &own[i]);
    }
    CHECK(make_ready(&t, &m, be));
    tape_run(&t, &run, 0);
    for (uint32_t i = N_VALUES - N_RESULTS; i < N_VALUES; i++, got += ROWS * COLS)
        memcpy(got, v[i]->at.mem, (size_t)v[i]->at.rows * COLS * sizeof *got);
    uint64_t bytes = tape_memory_bytes(&m);
    tensor_free(be, &in);
    for (uint32_t i = 0; i < N_VALUES; i++) tensor_free(be, &own[i]);
    tape_memory_close(&m, be);
    tape_free(&t);
    return bytes;
}

/* y = 2 x and z = 3 y, both of them results. */
static void check_results_stay(const struct backend *be)
{
    struct bench b;
    bench_open(&b, be, true, 1);
    struct act *x = bench_random(&b, 2, 8), *y = bench_blank(&b, 2, 8), *z = bench_blank(&b, 2, 8);
    struct tape *t = bench_tape(&b, 2);
    struct value *v = bench_input(&b, x);
    v = tape_times(t, v, 2);
    bench_keep(&b, v, y);
    v = tape_times(t, v, 3);
    v = tape_times(t, v, 1);
    bench_keep(&b, v, z);
    CHECK(make_ready(t, &b.memory, be));
    tape_run(t, &b.run, 0);
    bench_result(&b, &y->t, false);
    bench_result(&b, &z->t, false);
    for (int i = 0; i < 16; i++)
        CHECK(b.got[i] == 2 * x->v[i] && b.got[16 + i] == 3 * (2 * x->v[i]));
    bench_close(&b);
}

static void check_random(const struct backend *be)
{
    uint64_t most = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        float shared[N_RESULTS * ROWS * COLS] = { 0 }, alone[N_RESULTS * ROWS * COLS] = { 0 };
        uint64_t bytes = run_random(be, seed, false, shared);
        run_random(be, seed, true, alone);
        CHECK_MSG(memcmp(shared, alone, sizeof shared) == 0, "seed %u", (unsigned)seed);
        if (bytes > most) most = bytes;
    }
    CHECK(most < N_VALUES * ROWS * COLS * sizeof(float) / 2);
}

/* ---- groups ---- */

static void check_groups(void)
{
    struct tape t = { 0 };
    struct tensor in = { .cols = COLS };
    struct kv kv = { 0 };
    const struct group plain = { 0 };
    begin(&t, 1, 1);
    struct value *x = tape_times(&t, tape_input(&t, &in, 1), 1);
    struct value *a = tape_times(&t, x, 2), *b = tape_times(&t, a, 3), *c = tape_add(&t, a, b);
    struct value *lost = tape_times(&t, x, 4);
    tape_kv_write(&t, &kv, x, c);
    const struct attend before = { .kv = &kv, .mask = { MASK_CAUSAL, 0 }, .n_head = 1, .scale = 1 };
    struct value *seen = tape_attend(&t, c, &before);
    tape_kv_write(&t, &kv, x, x);
    struct value *d = tape_times(&t, seen, 5);
    tape_kv_write(&t, &kv, d, d);
    tape_finish(&t);
    tape_groups(&t);
    TEST("what nobody reads is not computed")
    {
        CHECK(t.n_nodes == 9 && !lost->from->read && lost->from->op == TAPE_TIMES);
    }
    TEST("a group is refused where others read what it does not store")
    {
        struct group *parts[] = { x->from->group, a->from->group };
        CHECK(!group_join(&t, &plain, parts, 2));
        CHECK(x->from->group != a->from->group);
    }
    TEST("a group is refused where it must run before and after another")
    {
        struct group like = { 0 }, *parts[] = { a->from->group, c->from->group };
        group_add_room(&like, a);
        group_add_room(&like, c);
        CHECK(!group_join(&t, &like, parts, 2));
    }
    TEST("a group is refused where a read of a cache would pass a write")
    {
        struct group like = { 0 }, *parts[] = { seen->from->group, d->from->group };
        group_add_room(&like, d);
        struct group *g = group_join(&t, &like, parts, 2);
        CHECK(g && g->place == seen->from); /* before the write, since d only needs what is read */
        struct group *with_write[] = { g, t.end->group };
        struct group both = { 0 };
        CHECK(!group_join(&t, &both, with_write, 2));
    }
    TEST("a group runs as late as its readers allow")
    {
        struct group like = { 0 }, *parts[] = { a->from->group, b->from->group, c->from->group };
        group_add_room(&like, c);
        struct group *g = group_join(&t, &like, parts, 3);
        CHECK(g && g->n_nodes == 3 && g->place == c->from && b->from->group == g);
    }
    tape_free(&t);
}

/* ---- memory that runs out ---- */

static void check_faults(const struct backend *be)
{
    struct bench b;
    bench_open(&b, be, true, 1);
    struct toy toy = toy_weights(&b);
    struct act *ids = bench_ids(&b, ROWS, 1, V), *z = bench_blank(&b, N_OUT, V);
    int64_t live = mem_live();
    bool failed = true;
    uint64_t k = 1;
    for (; failed; k++) {
        struct tape t = { 0 };
        struct tape_memory m = { 0 };
        uint64_t before = mem_count();
        mem_fail_at(k);
        begin(&t, ROWS, N_OUT);
        struct value *in = tape_input(&t, &ids->t, ROWS);
        tape_result(&t, toy_forward(&t, &toy, in, N_OUT), &z->t);
        bool ready = make_ready(&t, &m, be);
        failed = mem_count() - before >= k;
        mem_fail_at(0);
        CHECK(ready == !failed);
        tape_free(&t);
        tape_memory_close(&m, be);
        CHECK(mem_live() == live);
    }
    CHECK(k > 4);
    bench_close(&b);
}

int main(void)
{
    struct backend cpu, fast;
    struct bz_err err;
    CHECK(cpu_open(&cpu, false, 1, &err) == BZ_OK && cpu_open(&fast, true, 2, &err) == BZ_OK);
    TEST("a member of one's own gives the numbers of its formula")
    {
        check_toy(&cpu);
        check_toy(&fast);
    }
    TEST("the rules of fusion know a member of one's own by its maths")
    {
        const uint32_t all = ~0u, norm_linears = 1u << RULE_NORM_LINEARS;
        check_fused_toy(all, false, 12);
        check_fused_toy(0, false, 8);
        check_fused_toy(norm_linears, false, 9);
        check_fused_toy(0, true, 8); /* the tap is the residual's result, which is there anyway */
    }
    TEST("values that share memory have the numbers that they have alone")
    {
        check_random(&cpu);
    }
    TEST("a result stays as it is where a later node could work in its memory")
    {
        check_results_stay(&cpu);
    }
    check_groups();
    TEST("memory that runs out ends in a tape that says so, and leaks nothing")
    {
        check_faults(&cpu);
    }
    cpu.close(&cpu);
    fast.close(&fast);
    return check_done();
}
