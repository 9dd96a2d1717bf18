/* null_host.c - the functions of gpu.h for a device that only remembers. Handles are places in
 * tables, counted from 1. */
#include "gpu/null_host.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

struct null_buffer {
    uint32_t n_bytes;
    uint8_t *bytes; /* of parameter blocks alone */
    bool alive;
};

struct null_pipeline {
    uint32_t kernel, n_constants;
    struct gpu_constant constants[NULL_CONSTANTS];
};

struct null_group {
    struct gpu_binding bindings[NULL_BINDINGS];
    uint32_t n;
};

struct null_program {
    struct null_dispatch *dispatches;
    uint32_t n, cap;
};

static struct {
    struct gpu_profile profile;
    bool open, failed;
    struct null_buffer *buffers;
    struct null_pipeline *pipelines;
    struct null_group *groups;
    struct null_program *programs;
    uint32_t n_buffers, n_pipelines, n_groups, n_programs;
    uint32_t cap_buffers, cap_pipelines, cap_groups, cap_programs;
    uint64_t n_bytes;
} host;

/* The next place of a table, zeroed; 0 when memory is short. */
static uint32_t take_place(void *table, uint32_t *n, uint32_t *cap, size_t size)
{
    if (*n == *cap) {
        uint32_t wanted = *cap ? 2 * *cap : 64;
        void *p = mem_grow(*(void **)table, wanted, size);
        if (!p) {
            host.failed = true;
            return 0;
        }
        *(void **)table = p;
        *cap = wanted;
    }
    memset(*(char **)table + *n * size, 0, size);
    return ++*n;
}

void null_host_open(const struct gpu_profile *profile)
{
    null_host_close();
    host.profile = *profile;
    host.open = true;
}

void null_host_close(void)
{
    for (uint32_t i = 0; i < host.n_buffers; i++) mem_free(host.buffers[i].bytes);
    for (uint32_t i = 0; i < host.n_programs; i++) mem_free(host.programs[i].dispatches);
    mem_free(host.buffers);
    mem_free(host.pipelines);
    mem_free(host.groups);
    mem_free(host.programs);
    memset(&host, 0, sizeof host);
}

bool null_host_is_open(void)
{
    return host.open;
}

bool null_host_failed(void)
{
    return host.failed;
}

uint64_t null_host_bytes(void)
{
    return host.n_bytes;
}

uint32_t null_host_buffer_bytes(gpu_buffer b)
{
    return b ? host.buffers[b - 1].n_bytes : 0;
}

const struct null_dispatch *null_host_program(gpu_program p, uint32_t *n)
{
    *n = host.programs[p - 1].n;
    return host.programs[p - 1].dispatches;
}

const void *null_host_params(const struct null_dispatch *d, uint32_t *n)
{
    const struct gpu_binding *b = &d->bindings[0];
    *n = b->size;
    return host.buffers[b->buffer - 1].bytes + b->offset;
}

/* ---- gpu.h ---- */

void gpu_get_limits(struct gpu_limits *out)
{
    *out = host.profile.limits;
}

void gpu_get_adapter(struct gpu_adapter *out)
{
    *out = host.profile.adapter;
}

gpu_buffer gpu_buffer_new(uint32_t n_bytes, uint32_t usage)
{
    uint32_t at =
        take_place(&host.buffers, &host.n_buffers, &host.cap_buffers, sizeof *host.buffers);
    if (!at) return 0;
    struct null_buffer *b = &host.buffers[at - 1];
    *b = (struct null_buffer) { .n_bytes = n_bytes, .alive = true };
    if (usage & GPU_UNIFORM) {
        b->bytes = mem_alloc(n_bytes, 1);
        host.failed = host.failed || !b->bytes;
    }
    host.n_bytes += n_bytes;
    return at;
}

void gpu_buffer_free(gpu_buffer b)
{
    if (!b || !host.buffers[b - 1].alive) return;
    host.n_bytes -= host.buffers[b - 1].n_bytes;
    host.buffers[b - 1].alive = false;
}

void gpu_buffer_write(gpu_buffer b, uint32_t offset, const void *p, uint32_t n)
{
    if (!b) return;
    assert((uint64_t)offset + n <= host.buffers[b - 1].n_bytes);
    if (host.buffers[b - 1].bytes) memcpy(host.buffers[b - 1].bytes + offset, p, n);
}

void gpu_buffer_copy(gpu_buffer from, uint32_t from_offset, gpu_buffer to, uint32_t to_offset,
                     uint32_t n)
{
    assert((uint64_t)from_offset + n <= null_host_buffer_bytes(from));
    assert((uint64_t)to_offset + n <= null_host_buffer_bytes(to));
    (void)from, (void)from_offset, (void)to, (void)to_offset, (void)n;
}

gpu_pipeline gpu_pipeline_new(uint32_t kernel, const struct gpu_constant *c, uint32_t n)
{
    uint32_t at =
        take_place(&host.pipelines, &host.n_pipelines, &host.cap_pipelines, sizeof *host.pipelines);
    if (!at) return 0;
    struct null_pipeline *p = &host.pipelines[at - 1];
    assert(n <= NULL_CONSTANTS);
    p->kernel = kernel;
    p->n_constants = n;
    if (n) memcpy(p->constants, c, n * sizeof *c);
    return at;
}

gpu_group gpu_group_new(gpu_pipeline p, const struct gpu_binding *b, uint32_t n)
{
    (void)p;
    uint32_t at = take_place(&host.groups, &host.n_groups, &host.cap_groups, sizeof *host.groups);
    if (!at) return 0;
    assert(n <= NULL_BINDINGS);
    host.groups[at - 1].n = n;
    memcpy(host.groups[at - 1].bindings, b, n * sizeof *b);
    return at;
}

void gpu_group_free(gpu_group g)
{
    (void)g;
}

void gpu_program_begin(void)
{
    take_place(&host.programs, &host.n_programs, &host.cap_programs, sizeof *host.programs);
}

void gpu_dispatch(gpu_pipeline p, gpu_group g, uint32_t x, uint32_t y, uint32_t z)
{
    if (host.failed || !p || !g) return;
    struct null_program *to = &host.programs[host.n_programs - 1];
    uint32_t at = take_place(&to->dispatches, &to->n, &to->cap, sizeof *to->dispatches);
    if (!at) return;
    const struct null_pipeline *pipeline = &host.pipelines[p - 1];
    struct null_dispatch *d = &to->dispatches[at - 1];
    d->kernel = pipeline->kernel;
    d->n_constants = pipeline->n_constants;
    memcpy(d->constants, pipeline->constants, sizeof d->constants);
    d->n_bindings = host.groups[g - 1].n;
    memcpy(d->bindings, host.groups[g - 1].bindings, sizeof d->bindings);
    memcpy(d->groups, (const uint32_t[]) { x, y, z }, sizeof d->groups);
}

void gpu_copy(gpu_buffer from, uint32_t from_offset, gpu_buffer to, uint32_t to_offset, uint32_t n)
{
    gpu_buffer_copy(from, from_offset, to, to_offset, n);
}

void gpu_program_part(void) {}

gpu_program gpu_program_end(void)
{
    return host.failed ? 0 : host.n_programs;
}

void gpu_program_free(gpu_program p)
{
    (void)p;
}
