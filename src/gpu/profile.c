/* profile.c - the table of profile.h. The limits are those that Chrome and Dawn give on such
 * devices. */
#include "gpu/profile.h"

#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

static const struct gpu_profile profiles[] = {
    { "nvidia",
      "an NVIDIA GPU under Vulkan (measured: H200)",
      { .max_buffer = UINT32_MAX,
        .max_binding = INT32_MAX,
        .max_workgroups = 65535,
        .max_invocations = 1024,
        .max_workgroup_bytes = 48 * KIB,
        .max_storage_buffers = 16,
        .uniform_align = 256,
        .storage_align = 256,
        .subgroup_min = 32,
        .subgroup_max = 32,
        .has_timestamps = 1,
        .has_packed_dot = 1 } },
    { "apple",
      "an Apple GPU under Metal: no packed integer products",
      { .max_buffer = UINT32_MAX,
        .max_binding = INT32_MAX,
        .max_workgroups = 65535,
        .max_invocations = 1024,
        .max_workgroup_bytes = 32 * KIB,
        .max_storage_buffers = 10,
        .uniform_align = 256,
        .storage_align = 256,
        .subgroup_min = 4,
        .subgroup_max = 64,
        .has_f16 = 1,
        .has_timestamps = 1 } },
    { "spec",
      "the least that WebGPU promises",
      { .max_buffer = 256 * MIB,
        .max_binding = 128 * MIB,
        .max_workgroups = 65535,
        .max_invocations = 256,
        .max_workgroup_bytes = 16 * KIB,
        .max_storage_buffers = 8,
        .uniform_align = 256,
        .storage_align = 256 } },
    { "software",
      "a CPU: SwiftShader, as the tests have it",
      { .max_buffer = 1024 * MIB,
        .max_binding = 1024 * MIB,
        .max_workgroups = 65535,
        .max_invocations = 256,
        .max_workgroup_bytes = 32 * KIB,
        .max_storage_buffers = 12,
        .uniform_align = 256,
        .storage_align = 256,
        .subgroup_min = 4,
        .subgroup_max = 4,
        .has_timestamps = 1,
        .has_packed_dot = 1 } },
};

const struct gpu_profile *gpu_profile_at(size_t i)
{
    return i < sizeof profiles / sizeof *profiles ? &profiles[i] : NULL;
}

const struct gpu_profile *gpu_profile_find(const char *name)
{
    for (size_t i = 0; gpu_profile_at(i); i++)
        if (strcmp(profiles[i].name, name) == 0) return &profiles[i];
    return NULL;
}
