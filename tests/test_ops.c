/* test_ops.c - every op, on the native backends.
 *
 * Each case of ops_cases.h runs on three backends with the same random inputs:
 *
 *     the case's formula (double)  ~  the reference  ~  the fast backend, 1 and 3 threads
 *
 * and with weights that are mapped or that must be read. How the bytes arrive and how many threads
 * share the work must not change a single bit.
 */
#include "ops_cases.h"

/* ---- running it ---- */

static struct backend reference, fast1, fast3;

/* like: the case's first bench, or NULL for that one itself. */
static void run_one(struct bench *b, const struct backend *be, bool mapped,
                    const struct nth_case *n, const struct bench *like)
{
    bench_open(b, be, mapped, n->c.seed);
    b->like = like;
    b->wants_formula = be == &reference && mapped;
    n->op->run(b, &n->c);
    CHECK_MSG(b->run.status == BZ_OK, "%s: %s", n->op->name, b->run.err.text);
}

/* The other ways to run a case must give what the first one gave, to the bit. */
static void same_bits(const struct bench *want, const struct backend *be, bool mapped,
                      const struct nth_case *n)
{
    struct bench b;
    run_one(&b, be, mapped, n, want);
    CHECK_MSG(b.n_got == want->n_got && memcmp(b.got, want->got, b.n_got * sizeof *b.got) == 0,
              "%s %s (%s): %s, %s", be->name, n->op->name, n->c.why, mapped ? "mapped" : "read",
              be == &fast3 ? "3 threads" : "1 thread");
    bench_close(&b);
}

static void run_case(const struct nth_case *n)
{
    struct bench ref, fast;
    const struct op_case *c = &n->c;
    const char *op = n->op->name, *format = quant_find(c->format)->name;
    run_one(&ref, &reference, true, n, NULL);
    double e = case_nmse(&ref, ref.formula), *wide = widen(ref.got, ref.n_got);
    CHECK_MSG(ref.n_got > 0 && e <= c->nmse, "reference %s %s (%s): nmse %g > %g", op, format,
              c->why, e, c->nmse);
    same_bits(&ref, &reference, false, n);

    run_one(&fast, &fast1, true, n, &ref);
    e = case_nmse(&fast, wide);
    CHECK_MSG(e <= c->nmse, "fast %s %s (%s): nmse %g > %g", op, format, c->why, e, c->nmse);
    same_bits(&fast, &fast1, false, n);
    same_bits(&fast, &fast3, true, n);
    same_bits(&fast, &fast3, false, n);
    free(wide);
    bench_close(&ref);
    bench_close(&fast);
}

static void run_table(void)
{
    struct nth_case n;
    for (size_t i = 0; (n = nth_case(ops, COUNT(ops), i)).op; i++) run_case(&n);
}

static void check_seeds(void)
{
    enum { MAX_SEED = 4096 };
    static const char *taken[MAX_SEED];
    for (size_t k = 0; k < COUNT(ops); k++)
        for (size_t i = 0; i < ops[k].n_cases; i++) {
            const struct op_case *c = &ops[k].cases[i];
            CHECK_MSG(c->seed < MAX_SEED && !taken[c->seed], "%s (%s): seed %u", ops[k].name,
                      c->why, c->seed);
            if (c->seed < MAX_SEED) taken[c->seed] = c->why;
        }
}

int main(void)
{
    struct bz_err err;
    int64_t live = mem_live();
    CHECK(cpu_open(&reference, false, 1, &err) == BZ_OK);
    CHECK(cpu_open(&fast1, true, 1, &err) == BZ_OK);
    CHECK(cpu_open(&fast3, true, 3, &err) == BZ_OK);
    struct optional_ops fast = cpu_optional;
    fast.attend_masked = cpu_canvas_fast.attend_masked;
    fast.canvas_head = cpu_canvas_fast.canvas_head;
    reference.optional = &cpu_optional;
    fast1.optional = fast3.optional = &fast;

    TEST("every case has a seed of its own")
    {
        check_seeds();
    }
    TEST("formula, reference and fast backend agree on every op")
    {
        run_table();
    }
    cpu_close(&reference);
    cpu_close(&fast1);
    cpu_close(&fast3);
    TEST("nothing is left allocated")
    {
        CHECK(mem_live() == live);
    }
    return check_done();
}
