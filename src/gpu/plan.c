#include "gpu/plan.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

void plan_begin(struct gpu_plan *p)
{
    p->n = p->n_copies = p->n_words = 0;
    memset(p->scratch, 0, sizeof p->scratch);
    p->label = (struct plan_label) { 0 };
    p->status = BZ_OK;
}

void plan_free(struct gpu_plan *p)
{
    mem_free(p->list);
    mem_free(p->copies);
    mem_free(p->words);
    *p = (struct gpu_plan) { 0 };
}

/* Room for n more in a list of which `used` are. False: memory is short. */
static bool grow(struct gpu_plan *p, void **list, uint32_t used, uint32_t n, uint32_t *cap,
                 size_t size)
{
    if (p->status || used + n <= *cap) return p->status == BZ_OK;
    uint32_t wanted = *cap ? 2 * *cap : 256;
    while (wanted < used + n) wanted *= 2;
    void *grown = mem_grow(*list, wanted, size);
    if (!grown) {
        p->status = BZ_ERR_MEMORY;
        return false;
    }
    *list = grown;
    *cap = wanted;
    return true;
}

static void put_words(struct gpu_plan *p, const void *from, uint32_t n_bytes)
{
    assert(n_bytes % sizeof *p->words == 0);
    uint32_t n = n_bytes / (uint32_t)sizeof *p->words;
    if (!n || !grow(p, (void **)&p->words, p->n_words, n, &p->cap_words, sizeof *p->words)) return;
    memcpy(p->words + p->n_words, from, n_bytes);
    p->n_words += n;
}

void plan_dispatch(struct gpu_plan *p, uint32_t kernel, const struct gpu_constant *constants,
                   uint32_t n_constants, const void *params, const struct gpu_binding *bindings,
                   uint32_t n_bindings, uint32_t n_groups)
{
    if (n_groups == 0 || !grow(p, (void **)&p->list, p->n, 1, &p->cap, sizeof *p->list)) return;
    assert(n_constants <= PLAN_CONSTANTS);
    assert(1 + kernel_family(kernel)->uses_step + n_bindings <= WGSL_MAX_BINDINGS);
    p->list[p->n++] = (struct dispatch) { .kernel = kernel,
                                          .n_groups = n_groups,
                                          .n_constants = n_constants,
                                          .n_bindings = n_bindings,
                                          .at = p->n_words,
                                          .label = p->label };
    put_words(p, constants, n_constants * (uint32_t)sizeof *constants);
    put_words(p, bindings, n_bindings * (uint32_t)sizeof *bindings);
    put_words(p, params, kernel_family(kernel)->params_bytes);
}

void plan_copy(struct gpu_plan *p, gpu_buffer from, uint32_t from_at, gpu_buffer to, uint32_t to_at,
               uint32_t n)
{
    if (!grow(p, (void **)&p->copies, p->n_copies, 1, &p->cap_copies, sizeof *p->copies)) return;
    p->copies[p->n_copies++] = (struct plan_copy) { from, to, from_at, to_at, n, p->n == 0 };
}
