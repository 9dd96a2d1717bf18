#include "gpu/record.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

enum { STEP_BYTES = 64 };

enum bz_status recorder_open(struct recorder *r, struct bz_err *err)
{
    *r = (struct recorder) { 0 };
    gpu_get_limits(&r->limits);
    r->slices = mem_alloc(RECORD_CHUNK, 1);
    if (!r->slices) return fail_memory(err, RECORD_CHUNK);
    r->step = gpu_buffer_new(STEP_BYTES, GPU_UNIFORM | GPU_STORAGE);
    return BZ_OK;
}

void recorder_close(struct recorder *r)
{
    recorded_free(&r->now);
    if (r->step) gpu_buffer_free(r->step);
    mem_free(r->slices);
    mem_free(r->kernels);
    mem_free(r->pipelines);
    *r = (struct recorder) { 0 };
}

/* Room for one more in a list; false when memory is short. */
static bool grow(void **list, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) return true;
    uint32_t wanted = *cap ? 2 * *cap : 64;
    void *p = mem_grow(*list, wanted, size);
    if (!p) return false;
    *list = p;
    *cap = wanted;
    return true;
}

/* Its place in the list, or the list's length. */
static uint32_t find_kernel(const struct recorder *r, uint32_t kernel)
{
    uint32_t i = 0;
    while (i < r->n_kernels && r->kernels[i].number != kernel) i++;
    return i;
}

/* The same, made if need be; false when memory is short. */
static bool add_kernel(struct recorder *r, uint32_t kernel, uint32_t *at)
{
    *at = find_kernel(r, kernel);
    if (*at < r->n_kernels) return true;
    if (!grow((void **)&r->kernels, r->n_kernels, &r->cap_kernels, sizeof *r->kernels))
        return false;
    r->kernels[r->n_kernels++] = (struct record_kernel) { .number = kernel };
    return true;
}

/* A pipeline's place in the list, or the list's length. */
static uint32_t find_slot(const struct recorder *r, uint32_t kernel, const struct gpu_constant *c,
                          uint32_t n)
{
    uint32_t i = 0, of = find_kernel(r, kernel);
    for (; i < r->n_pipelines; i++) {
        const struct pipeline_slot *s = &r->pipelines[i];
        if (s->kernel == of && s->n_constants == n &&
            (n == 0 || memcmp(s->constants, c, n * sizeof *c) == 0))
            break;
    }
    return i;
}

/* Its slot, made if need be; NULL when memory is short. */
static struct pipeline_slot *slot_of(struct recorder *r, uint32_t kernel,
                                     const struct gpu_constant *c, uint32_t n)
{
    assert(n <= RECORD_MAX_CONSTANTS);
    uint32_t at = find_slot(r, kernel, c, n), of;
    if (at < r->n_pipelines) return &r->pipelines[at];
    if (!add_kernel(r, kernel, &of) ||
        !grow((void **)&r->pipelines, r->n_pipelines, &r->cap_pipelines, sizeof *r->pipelines))
        return NULL;
    struct pipeline_slot *s = &r->pipelines[r->n_pipelines++];
    *s = (struct pipeline_slot) { .kernel = of, .n_constants = n };
    if (n) memcpy(s->constants, c, n * sizeof *c);
    return s;
}

static gpu_pipeline make_pipeline(const struct recorder *r, struct pipeline_slot *s)
{
    if (s && !s->pipeline)
        s->pipeline = gpu_pipeline_new(r->kernels[s->kernel].number, s->constants, s->n_constants);
    return s ? s->pipeline : 0;
}

static gpu_pipeline find_pipeline(struct recorder *r, uint32_t kernel, const struct gpu_constant *c,
                                  uint32_t n)
{
    return make_pipeline(r, slot_of(r, kernel, c, n));
}

void record_noted(struct recorder *r, uint32_t group)
{
    for (uint32_t i = 0; i < r->n_pipelines; i++) {
        struct pipeline_slot *s = &r->pipelines[i];
        if (s->noted && s->noted <= group && !r->kernels[s->kernel].barred) make_pipeline(r, s);
    }
}

gpu_pipeline record_pipeline(struct recorder *r, uint32_t kernel)
{
    return find_pipeline(r, kernel, NULL, 0);
}

/* A dispatch that only counts. */
static void count(struct recorder *r, uint32_t kernel, const struct gpu_constant *c, uint32_t n)
{
    struct record_trace *t = r->trace;
    uint32_t at = find_slot(r, kernel, c, n);
    const struct pipeline_slot *s = at < r->n_pipelines ? &r->pipelines[at] : NULL;
    if (s && !s->proven && s->noted > r->unproven && s->noted >= r->awaited[0] &&
        s->noted <= r->awaited[1])
        r->unproven = s->noted;
    if (!t) return;
    t->noted = t->noted || (s && !s->pipeline);
    if (!s || t->n == sizeof t->slot / sizeof *t->slot) t->unknown = true;
    else t->slot[t->n++] = at;
}

static void note(struct recorder *r, uint32_t kernel, const struct gpu_constant *c, uint32_t n)
{
    struct pipeline_slot *s = slot_of(r, kernel, c, n);
    if (s && r->group && (!s->noted || r->group < s->noted))
        s->noted = r->group; /* else it compiles when it is used */
}

/* The shadow of the last chunk goes to its buffer. */
static void write_slices(struct recorder *r)
{
    uint32_t from = r->n_written * RECORD_SLICE, to = r->n_slices * RECORD_SLICE;
    if (from < to)
        gpu_buffer_write(r->now.chunks[r->now.n_chunks - 1], from, r->slices + from, to - from);
    r->n_written = r->n_slices;
}

static void leave_chunk(struct recorder *r)
{
    write_slices(r);
    r->n_slices = r->n_written = 0;
}

/* The next slice, filled with a kernel's parameters. */
static bool put_params(struct recorder *r, const void *params, uint32_t n, struct gpu_binding *out)
{
    assert(n <= RECORD_SLICE);
    if (r->now.n_chunks == 0 || r->n_slices == RECORD_CHUNK / RECORD_SLICE) {
        leave_chunk(r);
        if (!grow((void **)&r->now.chunks, r->now.n_chunks, &r->now.cap_chunks,
                  sizeof *r->now.chunks))
            return false;
        r->now.chunks[r->now.n_chunks++] = gpu_buffer_new(RECORD_CHUNK, GPU_UNIFORM);
    }
    uint32_t offset = r->n_slices++ * RECORD_SLICE;
    memcpy(r->slices + offset, params, n);
    *out = (struct gpu_binding) { r->now.chunks[r->now.n_chunks - 1], offset, n };
    return true;
}

void record_begin(struct recorder *r)
{
    recorded_free(&r->now);
    r->n_slices = r->n_written = r->n_dispatches = r->unproven = 0;
    r->next_part = RECORD_PART;
    r->status = BZ_OK;
    if (r->mode == RECORD_PROGRAM) gpu_program_begin();
}

void record_dispatch(struct recorder *r, uint32_t kernel, const struct gpu_constant *constants,
                     uint32_t n_constants, const void *params, const struct gpu_binding *bindings,
                     uint32_t n_bindings, uint32_t n_groups)
{
    if (recorder_bars(r, kernel)) kernel = kernel_plain(kernel);
    const struct kernel_family *k = kernel_family(kernel);
    struct gpu_binding all[WGSL_MAX_BINDINGS];
    uint32_t n = 0;
    if (r->status || n_groups == 0) return;
    r->n_dispatches++;
    if (r->mode == RECORD_NOTHING) count(r, kernel, constants, n_constants);
    if (r->mode == RECORD_NOTES || r->mode == RECORD_PIPELINES)
        note(r, kernel, constants, n_constants);
    if (r->mode == RECORD_NOTHING || r->mode == RECORD_NOTES) return;
    gpu_pipeline pipeline = find_pipeline(r, kernel, constants, n_constants);
    if (r->mode == RECORD_PIPELINES) return;
    bool ok =
        pipeline && put_params(r, params, k->params_bytes, &all[n++]) &&
        grow((void **)&r->now.groups, r->now.n_groups, &r->now.cap_groups, sizeof *r->now.groups);
    if (!ok) {
        r->status = BZ_ERR_MEMORY;
        return;
    }
    if (k->uses_step) all[n++] = (struct gpu_binding) { r->step, 0, STEP_BYTES };
    assert(n + n_bindings <= WGSL_MAX_BINDINGS);
    memcpy(all + n, bindings, n_bindings * sizeof *bindings);
    gpu_group group = gpu_group_new(pipeline, all, n + n_bindings);
    r->now.groups[r->now.n_groups++] = group;
    /* Past the limit of one dimension the workgroups spread over two: lib/base.wgsl. */
    uint32_t x = n_groups, y = 1, most = r->limits.max_workgroups;
    if (x > most) {
        y = (n_groups + most - 1) / most;
        x = (n_groups + y - 1) / y;
    }
    gpu_dispatch(pipeline, group, x, y, 1);
    if (r->n_dispatches == r->next_part) {
        r->next_part = 2 * r->n_dispatches + RECORD_PART;
        write_slices(r);
        gpu_program_part();
    }
}

struct recorded record_end(struct recorder *r)
{
    if (r->mode != RECORD_PROGRAM) return (struct recorded) { 0 };
    leave_chunk(r);
    r->now.program = gpu_program_end();
    struct recorded done = r->now;
    r->now = (struct recorded) { 0 };
    if (r->status) recorded_free(&done);
    return done;
}

void recorded_free(struct recorded *p)
{
    if (p->program) gpu_program_free(p->program);
    for (uint32_t i = 0; i < p->n_groups; i++) gpu_group_free(p->groups[i]);
    for (uint32_t i = 0; i < p->n_chunks; i++) gpu_buffer_free(p->chunks[i]);
    mem_free(p->groups);
    mem_free(p->chunks);
    *p = (struct recorded) { 0 };
}

uint64_t recorded_bytes(uint32_t n_dispatches)
{
    const uint32_t a_chunk = RECORD_CHUNK / RECORD_SLICE;
    return (uint64_t)((n_dispatches + a_chunk - 1) / a_chunk) * RECORD_CHUNK;
}

bool recorder_bars(const struct recorder *r, uint32_t kernel)
{
    uint32_t at = r->n_barred ? find_kernel(r, kernel) : r->n_kernels;
    return at < r->n_kernels && r->kernels[at].barred;
}

bool recorder_demote(struct recorder *r, uint32_t kernel)
{
    uint32_t at;
    if (kernel_plain(kernel) == kernel || !add_kernel(r, kernel, &at) || r->kernels[at].barred)
        return false;
    r->kernels[at].barred = true;
    r->n_barred++;
    return true;
}
