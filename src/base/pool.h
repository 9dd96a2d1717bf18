/* pool.h - threads that share one loop: pool_run calls fn for every task and comes back when all
 * are done.
 *
 * Tasks are handed out in order, one at a time, so uneven tasks balance themselves; which worker
 * gets which task is chance, and results must not depend on it. One pool_run at a time, from one
 * thread, and never from inside a task.
 */
#ifndef BEZEL_BASE_POOL_H
#define BEZEL_BASE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define POOL_MAX_THREADS 256u

struct pool; /* NULL is a pool of one: the caller */

/* n_threads counts the caller; 0 asks for one per processor. Threads that the system refuses are
 * done without (see pool_size). False when memory is short; then *out is untouched. */
bool pool_open(struct pool **out, unsigned n_threads);

/* fn(ctx, task, worker) for every task in [0, n_tasks); worker is in [0, pool_size) and no two
 * calls that run at the same time share one. */
void pool_run(struct pool *p, void (*fn)(void *ctx, uint32_t task, uint32_t worker), void *ctx,
              uint32_t n_tasks);

unsigned pool_size(const struct pool *p);

void pool_close(struct pool *p);

#endif
