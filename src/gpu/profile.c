/* profile.c - the tables of profile.h. The limits are those that Chrome and Dawn give on such
 * devices. */
#include "gpu/profile.h"

#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Measured on an H200. */
static const struct gpu_tuning large = {
    .units = 132,
    .sum_wg = 256,
    .shares_rows = true,

    .matmul_from = 8,
    .enough_lanes = 64 << 10,
    .long_units = 96,
    .four_rows_from = 4096,
    .two_rows_past = { 512, 1024 },
    .gate_up_four_from = 8192,
    .gate_up_lanes = 16,
    .slot_lanes = { { 4096, 256 }, { 32768, 64 }, { UINT32_MAX, 16 } },

    .held_lanes = 96 << 10,
    .held_rows = { { 512, 1 }, { 4096, 2 }, { UINT32_MAX, 4 } },
    .held_pair = { { 8192, 1 }, { 12288, 2 }, { UINT32_MAX, 4 } },
    .narrow_stream = 4096,
    .prefetch_groups = 8,
    .lora_groups = 64,

    .split_rows = 4,
    .split_keys = 32,
    .split_most = 132,
    .split_groups = 256,
    .merged_splits = 8,
    .merge_lanes = { 64, 32 },
    .merge_one_row = 2048,
    .single_keys = 128,
    .wide_attend_wg = 512,

    .tiles = { { 128, 128, 256, 160 },
               { 64, 64, 256, 160 },
               { 64, 32, 256, 160 },
               { 32, 32, 256, 0 } },
    .split_steps = 128,
    .split_cols = 2048,
    .split_sums = 54000,
    .parts_bytes = 64 * MIB,
    .matrix_tiles = { { 128, 256, 512, 190, 3 },
                      { 128, 128, 256, 100, 6 },
                      { 64, 128, 256, 60, 6 },
                      { 64, 64, 128, 34, 12 },
                      { 128, 128, 128, 110, 8 },
                      { 64, 128, 128, 55, 10 },
                      { 128, 256, 256, 220, 4 } },
    .matrix_enough = 96,
    .matrix_ends = 5,
    .matrix_sum = 8,
    .matrix_sums = 300000,
    .matrix_split_steps = 8,

    .group_from = 4,
    .group_from_fours = 4,
    .readers_choose = 2,
    .score_lanes = 128,

    .argmax_parts = 64,
    .bwd_tile = 128,
    .heads_apart = 264,
    .lora_grad_lanes = 8,
    .lora_grad_groups = 32,
};

/* Measured on two cores with SwiftShader: a workgroup's threads run one after the other there, and
 * each barrier costs some microseconds for every four of them. Work of few threads is never split.
 */
static const struct gpu_tuning software = {
    .units = 132,
    .sum_wg = 16,
    .lone = true,

    .matmul_from = 4,
    .enough_lanes = 64 << 10,
    .long_units = 96,
    .four_rows_from = 4096,
    .two_rows_past = { 512, 1024 },
    .slot_lanes = { { 4096, 256 }, { 32768, 64 }, { UINT32_MAX, 16 } },

    .split_rows = 4,
    .split_keys = 32,
    .split_most = 132,
    .split_groups = 256,
    .wide_attend_wg = 512,

    .tiles = { { 128, 128, 256, 1 }, { 64, 64, 256, 1 }, { 64, 32, 256, 1 }, { 32, 32, 256, 0 } },
    .split_steps = UINT32_MAX,
    .split_cols = 2048,
    .split_sums = 54000,
    .parts_bytes = 64 * MIB,
    .matrix_tiles = { { 128, 256, 512, 190, 3 },
                      { 128, 128, 256, 100, 6 },
                      { 64, 128, 256, 60, 6 },
                      { 64, 64, 128, 34, 12 },
                      { 128, 128, 128, 110, 8 },
                      { 64, 128, 128, 55, 10 },
                      { 128, 256, 256, 220, 4 } },
    .matrix_enough = 0,
    .matrix_ends = 5,
    .matrix_sum = 8,
    .matrix_sums = 300000,
    .matrix_split_steps = 8,

    .group_from = 4,
    .group_from_fours = 64,
    .readers_choose = 2,
    .score_lanes = 4,

    .argmax_parts = 8,
    .bwd_tile = 64,
    .heads_apart = 0,
    .lora_grad_lanes = 16,
    .lora_grad_groups = 1,
};

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
        .has_packed_dot = 1 },
      &large },
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
        .has_timestamps = 1 },
      &large },
    { "spec",
      "the least that WebGPU promises",
      { .max_buffer = 256 * MIB,
        .max_binding = 128 * MIB,
        .max_workgroups = 65535,
        .max_invocations = 256,
        .max_workgroup_bytes = 16 * KIB,
        .max_storage_buffers = 8,
        .uniform_align = 256,
        .storage_align = 256 },
      &large },
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
        .has_packed_dot = 1 },
      &software },
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
