#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Workers grow their scratch, and a host may own several engines: the counts are atomic. */
static atomic_uint_fast64_t n_made;
static atomic_int_fast64_t n_live;
static atomic_uint_fast64_t fail_index; /* 0 = never */

void mem_fail_at(uint64_t k)
{
    fail_index = k ? n_made + k : 0;
}

uint64_t mem_count(void)
{
    return n_made;
}

int64_t mem_live(void)
{
    return n_live;
}

static bool allowed(void)
{
    uint64_t index = ++n_made;
    return fail_index == 0 || index != fail_index;
}

void *mem_alloc(size_t n, size_t size)
{
    if (!allowed()) return NULL;
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (p) n_live++;
    return p;
}

void *mem_grow(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (!allowed() || __builtin_mul_overflow(n, size, &bytes)) return NULL;
    void *q = realloc(p, bytes ? bytes : 1);
    if (q && !p) n_live++;
    return q;
}

void mem_free(void *p)
{
    if (p) n_live--;
    free(p);
}

char *mem_copy_str(const char *p, size_t n)
{
    char *s = mem_alloc(n + 1, 1);
    if (s && n) memcpy(s, p, n);
    return s;
}

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    _Alignas(16) unsigned char data[];
};

/* A spare block with room for so many bytes, taken from the list; NULL: none. */
static struct arena_block *take_spare(struct arena *a, size_t bytes)
{
    struct arena_block **at = &a->spare;
    while (*at && (*at)->cap < bytes) at = &(*at)->next;
    struct arena_block *b = *at;
    if (b) *at = b->next;
    return b;
}

static struct arena_block *new_block(const struct arena *a, size_t bytes)
{
    size_t cap = a->head ? a->head->cap * 2 : 4096;
    if (cap > (size_t)1 << 20) cap = (size_t)1 << 20;
    if (cap < bytes) cap = bytes;
    struct arena_block *b = mem_alloc(1, sizeof *b + cap);
    if (b) b->cap = cap;
    return b;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->head || a->head->cap - a->head->used < bytes) {
        struct arena_block *b = take_spare(a, bytes);
        if (!b) b = new_block(a, bytes);
        if (!b) return NULL;
        b->next = a->head;
        a->head = b;
    }
    void *p = a->head->data + a->head->used;
    a->head->used += bytes;
    return p;
}

char *arena_copy_str(struct arena *a, const char *p, size_t n)
{
    char *s = arena_alloc(a, n + 1, 1);
    if (s && n) memcpy(s, p, n);
    return s;
}

void arena_reset(struct arena *a)
{
    while (a->head) {
        struct arena_block *b = a->head;
        a->head = b->next;
        memset(b->data, 0, b->used);
        b->used = 0;
        b->next = a->spare;
        a->spare = b;
    }
}

void arena_free(struct arena *a)
{
    arena_reset(a);
    while (a->spare) {
        struct arena_block *b = a->spare;
        a->spare = b->next;
        mem_free(b);
    }
}
