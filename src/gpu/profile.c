/* profile.c - the tables of profile.h. The limits are those that Chrome and Dawn give on such
 * devices. */
#include "gpu/profile.h"

#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Measured on an H200. */
static const struct gpu_tuning large = {
    .processors = 132,
    .sum_wg = 256,
    .shared_rows_pay = true,

    .matmul_from = 8,
    .enough_lanes = 64 << 10,
    .long_units = 96,
    .four_rows_from = 4096,
    .two_rows_past = { 512, 1024 },
    .gate_up_four_from = 8192,
    .gate_up_lanes = 16,
    .slot_lanes = { { 4096, 256 }, { 32768, 64 }, { UINT32_MAX, 16 } },

    .shared_lanes = 96 << 10,
    .shared_rows = { { 512, 1 }, { 4096, 2 }, { UINT32_MAX, 4 } },
    .shared_pair = { { 8192, 1 }, { 12288, 2 }, { UINT32_MAX, 4 } },
    .small_hidden = 4096,
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

    .tiles = { { 128, 128, 256, 160, 100 },
               { 64, 64, 256, 160, 117 },
               { 64, 32, 256, 160, 148 },
               { 32, 32, 256, 0, 216 } },
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
    .expert_wg = 128,
    .readers_choose = 2,
    .score_lanes = 128,

    .canvas_bytes = 16 * MIB,

    .argmax_parts = 64,
    .bwd_tile = 128,
    .separate_heads = 264,
    .lora_grad_lanes = 8,
    .lora_grad_groups = 32,
};

/* Measured on two cores with SwiftShader: a workgroup's threads run one after the other there, and
 * each barrier costs some microseconds for every four of them. Work of few threads is never split.
 */
static const struct gpu_tuning software = {
    .processors = 132,
    .sum_wg = 16,
    .software = true,

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

    .tiles = { { 128, 128, 256, 1, 100 },
               { 64, 64, 256, 1, 100 },
               { 64, 32, 256, 1, 100 },
               { 32, 32, 256, 0, 100 } },
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
    .expert_wg = 64,
    .readers_choose = 2,
    .score_lanes = 4,

    .canvas_bytes = 16 * MIB,

    .argmax_parts = 8,
    .bwd_tile = 64,
    .separate_heads = 0,
    .lora_grad_lanes = 16,
    .lora_grad_groups = 1,
};

/* What a graphics card has at least, by Chrome. */
#define CARD                                                                                       \
    .max_buffer = UINT32_MAX, .max_binding = INT32_MAX, .max_workgroups = 65535,                   \
    .max_invocations = 1024, .max_workgroup_bytes = 32 * KIB, .max_storage_buffers = 10,           \
    .uniform_align = 256, .storage_align = 256, .has_f16 = 1, .has_timestamps = 1,                 \
    .has_packed_dot = 1

/* Only nvidia and software were measured. The others have the numbers of the former, and what is
 * known of their hardware. */
static const struct gpu_profile profiles[] = {
    { .name = "nvidia",
      .about = "an NVIDIA GPU under Vulkan; measured: H200",
      .adapter = { .vendor = "nvidia", .architecture = "hopper" },
      .limits = { .max_buffer = UINT32_MAX,
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
      .int8 = true,
      .matrix = true,
      .tuning = &large },
    { .name = "apple",
      .about = "an Apple GPU: f32, as int8 products are emulated; not measured",
      .adapter = { .vendor = "apple", .architecture = "metal-3" },
      .limits = { CARD, .subgroup_min = 4, .subgroup_max = 64 },
      .tuning = &large },
    { .name = "intel",
      .about = "an Intel GPU, Xe or later; not measured",
      .adapter = { .vendor = "intel", .architecture = "xe-lpg" },
      .limits = { CARD, .subgroup_min = 8, .subgroup_max = 32 },
      .int8 = true,
      .tuning = &large },
    { .name = "amd",
      .about = "an AMD GPU with RDNA; not measured",
      .adapter = { .vendor = "amd", .architecture = "rdna-3" },
      .limits = { CARD, .subgroup_min = 32, .subgroup_max = 64 },
      .int8 = true,
      .tuning = &large },
    { .name = "adreno",
      .about = "a Qualcomm Adreno GPU; not measured",
      .adapter = { .vendor = "qualcomm", .architecture = "adreno-7xx" },
      .limits = { CARD, .subgroup_min = 64, .subgroup_max = 128 },
      .int8 = true,
      .tuning = &large },
    { .name = "spec",
      .about = "any other GPU, here with the least that WebGPU promises: f32; not measured",
      .limits = { .max_buffer = 256 * MIB,
                  .max_binding = 128 * MIB,
                  .max_workgroups = 65535,
                  .max_invocations = 256,
                  .max_workgroup_bytes = 16 * KIB,
                  .max_storage_buffers = 8,
                  .uniform_align = 256,
                  .storage_align = 256 },
      .tuning = &large },
    { .name = "software",
      .about = "a CPU as a GPU; measured: SwiftShader",
      .adapter = { .vendor = "google", .architecture = "swiftshader" },
      .limits = { .max_buffer = 1024 * MIB,
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
      .tuning = &software },
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

/* Architectures begin so, in the names of Chrome; the first line that fits. What no line has is
 * `spec`: older ones, which lack packed integer products or emulate them, and ARM's. */
static const struct {
    const char *vendor, *architecture, *profile;
} known[] = {
    { "nvidia", "fermi", "spec" },      { "nvidia", "kepler", "spec" },
    { "nvidia", "maxwell", "spec" },    { "nvidia", "", "nvidia" },
    { "apple", "", "apple" },           { "intel", "gen-12", "intel" },
    { "intel", "xe", "intel" },         { "amd", "rdna", "amd" },
    { "qualcomm", "adreno", "adreno" },
};

const struct gpu_profile *gpu_profile_of(const struct gpu_adapter *a, const struct gpu_limits *l)
{
    const struct gpu_profile *named = gpu_profile_find(a->profile);
    if (named) return named;
    /* Subgroups of four lanes are those of a CPU's vectors. */
    if (l->subgroup_min == 4 && l->subgroup_max == 4) return gpu_profile_find("software");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(a->vendor, known[i].vendor) == 0 &&
            strncmp(a->architecture, known[i].architecture, strlen(known[i].architecture)) == 0)
            return gpu_profile_find(known[i].profile);
    return gpu_profile_find("spec");
}
