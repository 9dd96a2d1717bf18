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
    plan_free(&r->plan);
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
    assert(n <= PLAN_CONSTANTS);
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

void record_queued(struct recorder *r, uint32_t group)
{
    for (uint32_t i = 0; i < r->n_pipelines; i++) {
        struct pipeline_slot *s = &r->pipelines[i];
        if (s->queued && s->queued <= group && !r->kernels[s->kernel].barred) make_pipeline(r, s);
    }
}

gpu_pipeline record_pipeline(struct recorder *r, uint32_t kernel)
{
    return find_pipeline(r, kernel, NULL, 0);
}

/* ---- walks ---- */

void record_compile(struct recorder *r, uint8_t group, bool now)
{
    for (uint32_t i = 0; i < r->plan.n; i++) {
        const struct dispatch *d = &r->plan.list[i];
        struct pipeline_slot *s =
            slot_of(r, d->kernel, plan_constants(&r->plan, d), d->n_constants);
        if (s && group && (!s->queued || group < s->queued)) s->queued = group;
        if (now) make_pipeline(r, s);
    }
}

/* The slot of a dispatch; NULL: it is not in the list. */
static const struct pipeline_slot *slot_in_list(const struct recorder *r, const struct dispatch *d)
{
    uint32_t at = find_slot(r, d->kernel, plan_constants(&r->plan, d), d->n_constants);
    return at < r->n_pipelines ? &r->pipelines[at] : NULL;
}

uint32_t record_awaits(const struct recorder *r, uint32_t first, uint32_t last)
{
    uint32_t group = 0;
    for (uint32_t i = 0; i < r->plan.n; i++) {
        const struct pipeline_slot *s = slot_in_list(r, &r->plan.list[i]);
        if (s && !s->validated && s->queued > group && s->queued >= first && s->queued <= last)
            group = s->queued;
    }
    return group;
}

struct record_trace record_trace(const struct recorder *r)
{
    struct record_trace t = { 0 };
    for (uint32_t i = 0; i < r->plan.n; i++) {
        const struct pipeline_slot *s = slot_in_list(r, &r->plan.list[i]);
        t.queued = t.queued || (s && !s->pipeline);
        if (!s || t.n == sizeof t.slot / sizeof *t.slot) t.unknown = true;
        else t.slot[t.n++] = (uint32_t)(s - r->pipelines);
    }
    return t;
}

/* ---- a program ---- */

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
    plan_begin(&r->plan);
}

void record_dispatch(struct recorder *r, uint32_t kernel, const struct gpu_constant *constants,
                     uint32_t n_constants, const void *params, const struct gpu_binding *bindings,
                     uint32_t n_bindings, uint32_t n_groups)
{
    uint32_t number = kernel_family(kernel)->processors;
    struct gpu_constant all[PLAN_CONSTANTS];
    if (recorder_bars(r, kernel)) kernel = kernel_plain(kernel);
    if (number) {
        assert(n_constants < PLAN_CONSTANTS);
        memcpy(all, constants, n_constants * sizeof *all);
        all[n_constants++] = (struct gpu_constant) { number - 1, (float)r->processors };
        constants = all;
    }
    plan_dispatch(&r->plan, kernel, constants, n_constants, params, bindings, n_bindings, n_groups);
}

/* A dispatch of the plan becomes one of the program. */
static bool put_dispatch(struct recorder *r, const struct dispatch *d, const gpu_buffer *scratch)
{
    const struct kernel_family *k = kernel_family(d->kernel);
    gpu_pipeline pipeline =
        find_pipeline(r, d->kernel, plan_constants(&r->plan, d), d->n_constants);
    const struct gpu_binding *bindings = plan_bindings(&r->plan, d);
    struct gpu_binding all[WGSL_MAX_BINDINGS];
    uint32_t n = 0;
    if (!pipeline || !put_params(r, plan_params(&r->plan, d), k->params_bytes, &all[n++]) ||
        !grow((void **)&r->now.groups, r->now.n_groups, &r->now.cap_groups, sizeof *r->now.groups))
        return false;
    if (k->uses_step) all[n++] = (struct gpu_binding) { r->step, 0, STEP_BYTES };
    for (uint32_t i = 0; i < d->n_bindings; i++, n++) {
        all[n] = bindings[i];
        if (plan_is_scratch(all[n].buffer)) all[n].buffer = scratch[all[n].buffer - PLAN_SCRATCH];
    }
    gpu_group group = gpu_group_new(pipeline, all, n);
    r->now.groups[r->now.n_groups++] = group;
    /* Past the limit of one dimension the workgroups spread over two: lib/base.wgsl. */
    uint32_t x = d->n_groups, y = 1, most = r->limits.max_workgroups;
    if (x > most) {
        y = (d->n_groups + most - 1) / most;
        x = (d->n_groups + y - 1) / y;
    }
    gpu_dispatch(pipeline, group, x, y, 1);
    return true;
}

static void put_copies(const struct gpu_plan *p, bool first)
{
    for (uint32_t i = 0; i < p->n_copies; i++) {
        const struct plan_copy *c = &p->copies[i];
        if (c->first == first) gpu_copy(c->from, c->from_at, c->to, c->to_at, c->n);
    }
}

struct recorded record_program(struct recorder *r, const gpu_buffer *scratch)
{
    struct gpu_plan *p = &r->plan;
    if (p->status) return (struct recorded) { 0 };
    uint32_t next_part = RECORD_PART;
    r->n_slices = r->n_written = 0;
    gpu_program_begin();
    put_copies(p, true);
    for (uint32_t i = 0; i < p->n && !p->status; i++) {
        if (!put_dispatch(r, &p->list[i], scratch)) p->status = BZ_ERR_MEMORY;
        if (i + 1 < next_part) continue;
        next_part = 2 * (i + 1) + RECORD_PART;
        write_slices(r);
        gpu_program_part();
    }
    put_copies(p, false);
    leave_chunk(r);
    r->now.program = gpu_program_end();
    struct recorded done = r->now;
    r->now = (struct recorded) { 0 };
    if (p->status) recorded_free(&done);
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
