/* mem.h - every allocation of the core goes through here.
 *
 * One door means that a test can make any single allocation fail (mem_fail_at) and that sizes from
 * files meet checked arithmetic before they meet malloc.
 */
#ifndef BEZEL_BASE_MEM_H
#define BEZEL_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory, or NULL. n * size is checked. A request of 0 bytes gives a valid pointer. */
void *mem_alloc(size_t n, size_t size);

/* Resize to n * size bytes; new bytes are not zeroed. On failure returns NULL and p stays valid. */
void *mem_grow(void *p, size_t n, size_t size);

void mem_free(void *p);

/* A NUL-ended copy of n bytes, or NULL. */
char *mem_copy_str(const char *p, size_t n);

/* Tests only: the k-th allocation from now (1 = the next) fails, once. 0 switches it off. */
void mem_fail_at(uint64_t k);

/* Tests only: allocations made since the start of the process, and those not yet freed. */
uint64_t mem_count(void);
int64_t mem_live(void);

/* Checked arithmetic: false on overflow, and then *out is untouched. */
static inline bool size_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool size_add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/* An arena: many small allocations with one lifetime. Zeroed; freed together. */
struct arena {
    struct arena_block *head, *spare;
};

/* Zeroed, aligned to 16 bytes, or NULL. */
void *arena_alloc(struct arena *a, size_t n, size_t size);
char *arena_copy_str(struct arena *a, const char *p, size_t n);
void arena_free(struct arena *a);

/* Forget every allocation, and keep the memory for the next ones. */
void arena_reset(struct arena *a);

#endif
