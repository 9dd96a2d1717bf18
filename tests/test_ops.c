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
static void run_one(struct bench *b, const struct backend *be, bool mapped, const struct op_case *c,
                    uint64_t seed, const struct bench *like)
{
    bench_open(b, be, mapped, seed);
    b->like = like;
    b->wants_formula = be == &reference && mapped;
    run_case_on(b, c);
    CHECK_MSG(b->run.status == BZ_OK, "%s: %s", c->op, b->run.err.text);
}

/* The other ways to run a case must give what the first one gave, to the bit. */
static void same_bits(const struct bench *want, const struct backend *be, bool mapped,
                      const struct op_case *c, uint64_t seed)
{
    struct bench b;
    run_one(&b, be, mapped, c, seed, want);
    CHECK_MSG(b.n_got == want->n_got && memcmp(b.got, want->got, b.n_got * sizeof *b.got) == 0,
              "%s %s (%s): %s, %s", be->name, c->op, c->why, mapped ? "mapped" : "read",
              be == &fast3 ? "3 threads" : "1 thread");
    bench_close(&b);
}

static void run_case(const struct op_case *c, uint64_t seed)
{
    struct bench ref, fast;
    const char *format = quant_find(c->format)->name;
    run_one(&ref, &reference, true, c, seed, NULL);
    double e = nmse_f64(ref.got, ref.formula, ref.n_got);
    CHECK_MSG(ref.n_got > 0 && e <= c->nmse, "reference %s %s (%s): nmse %g > %g", c->op, format,
              c->why, e, c->nmse);
    same_bits(&ref, &reference, false, c, seed);

    run_one(&fast, &fast1, true, c, seed, &ref);
    e = nmse(fast.got, ref.got, ref.n_got);
    CHECK_MSG(e <= c->nmse, "fast %s %s (%s): nmse %g > %g", c->op, format, c->why, e, c->nmse);
    same_bits(&fast, &fast1, false, c, seed);
    same_bits(&fast, &fast3, true, c, seed);
    same_bits(&fast, &fast3, false, c, seed);
    bench_close(&ref);
    bench_close(&fast);
}

static void run_table(void)
{
    struct op_case c;
    size_t line;
    for (size_t i = 0; nth_case(i, &c, &line); i++) run_case(&c, line);
}

int main(void)
{
    struct bz_err err;
    int64_t live = mem_live();
    CHECK(cpu_open(&reference, false, 1, &err) == BZ_OK);
    CHECK(cpu_open(&fast1, true, 1, &err) == BZ_OK);
    CHECK(cpu_open(&fast3, true, 3, &err) == BZ_OK);

    TEST("every case of the table names an op, and every op has a case")
    {
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            size_t n = 0;
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                n += strcmp(cases[i].op, ops[k].name) == 0;
            CHECK_MSG(n > 0, "%s", ops[k].name);
        }
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            size_t n = 0;
            for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
                n += strcmp(cases[i].op, ops[k].name) == 0;
            CHECK_MSG(n == 1, "%s", cases[i].op);
        }
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
