/* profile.h - devices by name, as what their adapters say: for plans and tests without the device.
 */
#ifndef BEZEL_GPU_PROFILE_H
#define BEZEL_GPU_PROFILE_H

#include <stddef.h>

#include "gpu/gpu.h"

struct gpu_profile {
    const char *name, *about;
    struct gpu_limits limits;
};

/* By name; NULL: there is none. By place; NULL past the last. */
const struct gpu_profile *gpu_profile_find(const char *name);
const struct gpu_profile *gpu_profile_at(size_t i);

#endif
