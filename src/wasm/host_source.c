/* host_source.c - a struct source whose bytes the host brings. */
#include "wasm/host.h"

#include <inttypes.h>

#include "base/mem.h"

/* The number of a source is its context: nothing is allocated. */
static enum bz_status read_host(void *ctx, uint64_t offset, void *dst, size_t n, struct bz_err *err)
{
    if (host_read((uint32_t)(uintptr_t)ctx, (double)offset, dst, (uint32_t)n) == 0) return BZ_OK;
    return fail(err, BZ_ERR_IO, "cannot read %zu bytes at byte %" PRIu64, n, offset);
}

enum bz_status host_source_open(struct source *out, uint32_t id, const char *name, size_t n_name,
                                uint64_t size, struct bz_err *err)
{
    char *copy = mem_copy_str(name, n_name);
    if (!copy) return fail_memory(err, n_name + 1);
    *out = (struct source) {
        .name = copy, .size = size, .ctx = (void *)(uintptr_t)id, .read = read_host
    };
    return BZ_OK;
}
