/* simd.h - help for plain loops: one binary for two instruction sets, and loops kept as loops.
 *
 * BZ_CLONES in front of a function makes the compiler emit it twice, for x86-64-v3 (AVX2) and for
 * the x86-64 baseline (SSE2); the loader picks one through an ifunc when the program starts. So a
 * distribution's generic build still runs the hot loops at full width. Both give the same bits: no
 * fused multiply-add is allowed (-ffp-contract=off) and no sum is reordered.
 *
 * The level is asked for by feature ("x86-64-v3") and not by model: "arch=haswell" would match
 * only that one Intel generation and would leave every AMD processor with SSE2.
 *
 * It is empty where it cannot work or has no use: other architectures, no glibc (no ifunc), a build
 * that already targets AVX2, and sanitizers and coverage, whose instrumentation of an ifunc
 * resolver would run before their own start-up.
 *
 * BZ_INLINE is for the pieces of such functions: a piece left as a function of its own would be
 * compiled for the baseline only.
 *
 * BZ_VECTOR in front of a `for` of 16 or fewer turns: compilers unroll such a loop completely
 * before the vectoriser sees it, and what is left is scalar code, five times slower in the
 * decoders. The mark forbids only the unrolling.
 */
#ifndef BEZEL_BASE_SIMD_H
#define BEZEL_BASE_SIMD_H

#include <stdint.h> /* any libc header says whether this is glibc */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||                         \
    __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer) ||              \
    __has_feature(coverage_sanitizer)
#define BZ_INSTRUMENTED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BZ_INSTRUMENTED 1
#endif

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && !defined(__AVX2__) &&       \
    !defined(BZ_INSTRUMENTED)
#define BZ_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define BZ_CLONES
#endif

#define BZ_INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#define BZ_VECTOR _Pragma("clang loop unroll(disable)")
#else
#define BZ_VECTOR _Pragma("GCC unroll 1")
#endif

#endif
