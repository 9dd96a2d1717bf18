// dawn_toggles - what tests ask of Dawn, in Node and in Chromium.

/** Chromium's software driver is asked to zero workgroup memory, most likely with a store for each
 *  of its words: its compiler takes some five times as long then (four cases of the op table in
 *  Node, 11.7 and 2.5 s of CPU time). With this toggle off Dawn writes a loop, as it does for
 *  drivers that cannot be asked. */
export const ZEROED_BY_DRIVER = 'use_vulkan_zero_initialize_workgroup_memory_extension';

/** The same for Chromium's command line. */
export const zeroedByLoop = `--disable-dawn-features=${ZEROED_BY_DRIVER}`;
