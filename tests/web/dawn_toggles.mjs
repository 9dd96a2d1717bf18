// dawn_toggles - what tests ask of Dawn, in Node and in Chromium.

/** Chromium's software driver zeroes workgroup memory with a store for each of its words, which takes its compiler ten times as
 *  long as the kernel around them. With this toggle off Dawn writes a loop, as it does for drivers that do not zero it. */
export const ZEROED_BY_DRIVER = 'use_vulkan_zero_initialize_workgroup_memory_extension';

/** The same for Chromium's command line. */
export const zeroedByLoop = `--disable-dawn-features=${ZEROED_BY_DRIVER}`;
