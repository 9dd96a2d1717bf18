/* Tests of base/pool.h. Run under a thread sanitizer too: most of what can go wrong is a race. */
#include <stdatomic.h>
#include <time.h>

#include "base/mem.h"
#include "base/pool.h"
#include "check.h"

#define MAX_TASKS 5000u

struct job {
    uint32_t n_tasks, n_workers;
    atomic_uint bad; /* calls with a task or worker out of range, or a shared worker */
    atomic_bool begun;
    atomic_uint busy[POOL_MAX_THREADS];
    uint8_t count[MAX_TASKS]; /* plain bytes: each must be written by one task only */
    uint64_t sum[MAX_TASKS];
};

static struct job job;

static void note(void *ctx, uint32_t task, uint32_t worker)
{
    struct job *j = ctx;
    if (task >= j->n_tasks || worker >= j->n_workers) {
        j->bad++;
        return;
    }
    if (atomic_fetch_add(&j->busy[worker], 1) != 0) j->bad++;
    j->count[task]++;
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= task % 97; i++) sum += (uint64_t)i * task;
    j->sum[task] = sum;
    atomic_fetch_sub(&j->busy[worker], 1);
}

/* Runs n tasks and says whether each ran exactly once and everything it wrote is visible. */
static int run_is_right(struct pool *p, uint32_t n)
{
    memset(&job, 0, sizeof job);
    job.n_tasks = n;
    job.n_workers = pool_size(p);
    pool_run(p, note, &job, n);
    if (job.bad) return 0;
    for (uint32_t t = 0; t < MAX_TASKS; t++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i <= t % 97; i++) sum += (uint64_t)i * t;
        if (job.count[t] != (t < n) || job.sum[t] != (t < n ? sum : 0)) return 0;
    }
    return 1;
}

static void rest(long ns)
{
    struct timespec t = { 0, ns };
    nanosleep(&t, NULL);
}

/* A worker takes long over its task, and the caller does not leave before one has begun: so the
 * caller ends up waiting. */
static void slow_workers(void *ctx, uint32_t task, uint32_t worker)
{
    struct job *j = ctx;
    if (worker != 0) {
        j->begun = true;
        rest(3000000);
    }
    while (j->n_workers > 1 && !j->begun) rest(1000);
    j->count[task]++;
}

struct tally {
    uint64_t by_worker[POOL_MAX_THREADS][8]; /* a cache line each; no atomics: workers are alone */
};

static void tally_up(void *ctx, uint32_t task, uint32_t worker)
{
    struct tally *t = ctx;
    t->by_worker[worker][0] += task;
}

int main(void)
{
    TEST("every task runs exactly once, for any number of threads and tasks")
    {
        static const unsigned threads[] = { 1, 2, 3, 4, 7 };
        static const uint32_t tasks[] = { 0, 1, 2, 3, 5, 64, 1000, MAX_TASKS };
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            struct pool *p = NULL;
            CHECK(pool_open(&p, threads[i]));
#ifndef BZ_NO_THREADS
            CHECK(pool_size(p) == threads[i]);
#else
            CHECK(pool_size(p) == 1);
#endif
            for (size_t k = 0; k < sizeof tasks / sizeof *tasks; k++)
                CHECK_MSG(run_is_right(p, tasks[k]), "%u threads, %u tasks", threads[i], tasks[k]);
            pool_close(p);
        }
    }

    TEST("a NULL pool is the caller alone")
    {
        CHECK(pool_size(NULL) == 1);
        CHECK(run_is_right(NULL, 100));
        pool_close(NULL);
    }

    TEST("zero threads asks for one per processor, and too many are capped")
    {
        struct pool *p = NULL;
        CHECK(pool_open(&p, 0));
        CHECK(pool_size(p) >= 1 && pool_size(p) <= POOL_MAX_THREADS);
        pool_close(p);
        CHECK(pool_open(&p, 1000000));
        CHECK(pool_size(p) >= 1 && pool_size(p) <= POOL_MAX_THREADS);
        CHECK(run_is_right(p, 300));
        pool_close(p);
    }

    TEST("thousands of tiny runs in a row neither lose nor repeat a task")
    {
        struct pool *p = NULL;
        CHECK(pool_open(&p, 4));
        static struct tally t;
        uint64_t want = 0, got = 0;
        for (uint32_t i = 0; i < 20000; i++) {
            uint32_t n = 2 + i % 7;
            pool_run(p, tally_up, &t, n);
            want += (uint64_t)n * (n - 1) / 2;
        }
        for (uint32_t w = 0; w < POOL_MAX_THREADS; w++) got += t.by_worker[w][0];
        CHECK(got == want);
        pool_close(p);
    }

    TEST("workers that have gone to sleep wake up again")
    {
        struct pool *p = NULL;
        CHECK(pool_open(&p, 3));
        for (int i = 0; i < 40; i++) {
            rest(i % 4 * 40000); /* shorter and longer than the workers spin */
            CHECK(run_is_right(p, 50));
        }
        rest(2000000);
        CHECK(run_is_right(p, 50));
        pool_close(p);
    }

    TEST("a caller that has to wait long for the last task is woken")
    {
        struct pool *p = NULL;
        CHECK(pool_open(&p, 3));
        for (int i = 0; i < 5; i++) {
            memset(&job, 0, sizeof job);
            job.n_workers = pool_size(p);
            pool_run(p, slow_workers, &job, 200);
            int once = 0;
            for (uint32_t t = 0; t < 200; t++) once += job.count[t] == 1;
            CHECK(once == 200);
        }
        pool_close(p);
    }

    TEST("opening and closing at once, with workers in any state, neither hangs nor leaks")
    {
        int64_t live = mem_live();
        for (int i = 0; i < 100; i++) {
            struct pool *p = NULL;
            CHECK(pool_open(&p, 3));
            if (i % 3 == 1) pool_run(p, note, &job, 0);
            if (i % 3 == 2) CHECK(run_is_right(p, 10));
            if (i % 10 == 9) rest(100000);
            pool_close(p);
        }
        CHECK(mem_live() == live);
    }

    TEST("a failed allocation is reported and leaves the pointer alone")
    {
        struct pool *p = NULL;
        int64_t live = mem_live();
        mem_fail_at(1);
        CHECK(!pool_open(&p, 4));
        mem_fail_at(0);
        CHECK(p == NULL);
        CHECK(mem_live() == live);
    }
    return check_done();
}
