/* pool.c - the thread pool: one word of work, claimed by compare-and-swap.
 *
 *   word = job number << 32 | tasks not yet claimed
 *
 * A worker that sees unclaimed tasks reads what the job is (fn, ctx, n_tasks) and then claims one
 * by swapping the word it saw for the same word less one. If the swap succeeds, the job that it
 * read about is still that job: its last task was open until now, so pool_run cannot have returned
 * and nobody has written the next job. A worker that comes late claims nothing and touches nothing,
 * so the caller waits for tasks only, never for a thread that is still waking up.
 *
 * A forward pass makes hundreds of short runs a token. Between them workers spin for a few
 * microseconds, which is cheaper than a sleep and a wake-up; when no work comes they sleep.
 */
#include "base/pool.h"

#include "base/mem.h"

#ifdef BZ_NO_THREADS

struct pool {
    char unused;
};

bool pool_open(struct pool **out, unsigned n_threads)
{
    (void)n_threads;
    struct pool *p = mem_alloc(1, sizeof *p);
    if (p) *out = p;
    return p != NULL;
}

void pool_run(struct pool *p, void (*fn)(void *ctx, uint32_t task, uint32_t worker), void *ctx,
              uint32_t n_tasks)
{
    (void)p;
    for (uint32_t i = 0; i < n_tasks; i++) fn(ctx, i, 0);
}

unsigned pool_size(const struct pool *p)
{
    (void)p;
    return 1;
}

void pool_close(struct pool *p)
{
    mem_free(p);
}

#else

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 30000 /* longer than the gaps inside a forward pass, shorter than a time slice */

typedef void (*task_fn)(void *ctx, uint32_t task, uint32_t worker);

struct worker {
    struct pool *pool;
    pthread_t thread;
    uint32_t index;
};

struct pool {
    _Atomic uint64_t word;
    char apart1[64]; /* the word is written by all, the job by the caller: separate cache lines */
    _Atomic(task_fn) fn;
    _Atomic(void *) ctx;
    _Atomic uint32_t n_tasks;
    char apart2[64];
    _Atomic uint32_t n_done; /* tasks of this job that have returned */
    char apart3[64];
    _Atomic uint32_t n_asleep; /* workers */
    atomic_bool caller_asleep;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards the two sleeps, nothing else */
    pthread_cond_t work, done;
    unsigned n; /* threads, with the caller */
    struct worker workers[];
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool has_work(struct pool *p)
{
    return (uint32_t)p->word != 0 || p->stop;
}

static bool is_done(struct pool *p)
{
    return p->n_done == p->n_tasks;
}

/* True as soon as the condition holds; false when the time for spinning is over. */
static bool spin(struct pool *p, bool (*holds)(struct pool *))
{
    if (holds(p)) return true;
    for (int64_t end = now_ns() + SPIN_NS; now_ns() < end;) {
        for (int i = 0; i < 16; i++) {
            if (holds(p)) return true;
            relax();
        }
    }
    return false;
}

/* Claim and run tasks until none is left. */
static void work_off(struct pool *p, uint32_t worker)
{
    uint64_t word = p->word;
    while ((uint32_t)word != 0) {
        task_fn fn = p->fn;
        void *ctx = p->ctx;
        uint32_t n_tasks = p->n_tasks;
        if (!atomic_compare_exchange_weak(&p->word, &word, word - 1)) continue;
        fn(ctx, n_tasks - (uint32_t)word, worker);
        /* From the last task's count on, the caller may return; what follows is the pool's own. */
        if (atomic_fetch_add(&p->n_done, 1) + 1 == n_tasks && p->caller_asleep) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
        word = p->word;
    }
}

/* A sleeper announces itself before it looks a last time, and the other side looks for sleepers
 * after it has changed what they wait for. Both in one total order: no wake-up is lost. */
static void sleep_for_work(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->n_asleep++;
    while (!has_work(p)) pthread_cond_wait(&p->work, &p->lock);
    p->n_asleep--;
    pthread_mutex_unlock(&p->lock);
}

static void sleep_until_done(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->caller_asleep = true;
    while (!is_done(p)) pthread_cond_wait(&p->done, &p->lock);
    p->caller_asleep = false;
    pthread_mutex_unlock(&p->lock);
}

static void wake_workers(struct pool *p)
{
    if (p->n_asleep == 0) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    while (!w->pool->stop) {
        if (!spin(w->pool, has_work)) sleep_for_work(w->pool);
        work_off(w->pool, w->index);
    }
    return NULL;
}

void pool_run(struct pool *p, task_fn fn, void *ctx, uint32_t n_tasks)
{
    if (pool_size(p) == 1 || n_tasks <= 1) {
        for (uint32_t i = 0; i < n_tasks; i++) fn(ctx, i, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n_tasks = n_tasks;
    p->n_done = 0;
    p->word = ((p->word >> 32) + 1) << 32 | n_tasks;
    wake_workers(p);
    work_off(p, 0);
    if (!spin(p, is_done)) sleep_until_done(p);
}

unsigned pool_size(const struct pool *p)
{
    return p ? p->n : 1;
}

static unsigned n_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n<1 ? 1 : n>(long) POOL_MAX_THREADS ? POOL_MAX_THREADS : (unsigned)n;
}

bool pool_open(struct pool **out, unsigned n_threads)
{
    if (n_threads == 0) n_threads = n_processors();
    if (n_threads > POOL_MAX_THREADS) n_threads = POOL_MAX_THREADS;
    struct pool *p = mem_alloc(1, sizeof *p + n_threads * sizeof p->workers[0]);
    if (!p) return false;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    for (p->n = 1; p->n < n_threads; p->n++) {
        struct worker *w = &p->workers[p->n];
        *w = (struct worker) { .pool = p, .index = p->n };
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) break;
    }
    *out = p;
    return true;
}

void pool_close(struct pool *p)
{
    if (!p) return;
    p->stop = true;
    wake_workers(p);
    for (unsigned i = 1; i < p->n; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

#endif
