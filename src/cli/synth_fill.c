/* synth_fill.c - random weights at the speed of memory.
 *
 * A chunk is first filled with random bits, and then the few bytes of each block that may not be
 * arbitrary are put right: scales. Quants are used as they fall, so they are uniform; what the
 * scales have to be for a wanted standard deviation follows from the second moment of that:
 *
 *     value = d * s * q      E[value^2] = E[d^2] E[s^2] E[q^2]      (independent, mean 0)
 *
 * d comes from a table of 256 halves around the wanted size, picked by the random bits that lay in
 * its place. Formats whose quants are not symmetric around 0 get a random sign of d or s.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "base/simd.h"
#include "cli/synth.h"

/* ---- random bits ---- */

enum { LANES = 8 };

static inline uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

/* Eight xoroshiro128++ generators (Blackman and Vigna) side by side: shifts and additions only,
 * which vectors have, and no multiplication of 64 bits, which they have not. */
BZ_CLONES static void fill_bits(uint64_t seed, uint8_t *dst, size_t n_bytes)
{
    uint64_t a[LANES], b[LANES], out[LANES];
    for (uint64_t k = 0; k < LANES; k++) {
        a[k] = rng_at(seed, 2 * k);
        b[k] = rng_at(seed, 2 * k + 1);
    }
    for (size_t i = 0; i < n_bytes; i += sizeof out) {
        BZ_VECTOR
        for (int k = 0; k < LANES; k++) {
            uint64_t s = a[k], t = b[k] ^ s;
            out[k] = rotate(s + b[k], 17) + s;
            a[k] = rotate(s, 49) ^ t ^ t << 21;
            b[k] = rotate(t, 28);
        }
        if (n_bytes - i >= sizeof out) memcpy(dst + i, out, sizeof out);
        else memcpy(dst + i, out, n_bytes - i);
    }
}

/* FNV-1a: a stream for every tensor name. */
static uint64_t hash_name(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

/* ---- tables of block scales ---- */

#define N_SCALE     256
#define SPREAD      0.5                        /* scales are within 1 - SPREAD/2 .. 1 + SPREAD/2 */
#define MEAN_SQUARE (1 + SPREAD * SPREAD / 12) /* of a uniform number in that range */

/* The value of scale k. */
static double scale_at(int k, double std, double second_moment)
{
    double d = std / sqrt(second_moment * MEAN_SQUARE);
    return d * (1 - SPREAD / 2 + SPREAD * (k + 0.5) / N_SCALE);
}

/* Neighbours have opposite signs: quants are half a step off centre, this takes their mean away. */
static void make_signed(uint16_t table[N_SCALE], double std, double second_moment)
{
    for (int k = 0; k < N_SCALE; k++) {
        double d = scale_at(k, std, second_moment);
        table[k] = f32_to_f16((float)(k & 1 ? -d : d));
    }
}

/* d and dmin = centre * d of the formats with a minimum, in one word. d gets a fraction of `bits`
 * bits, so that the product is exact in a half and the block's mean is exactly zero. */
static void make_pairs(uint32_t table[N_SCALE], double std, double second_moment, double centre,
                       int bits)
{
    for (int k = 0; k < N_SCALE; k++) {
        int e;
        double d = frexp(scale_at(k, std, second_moment), &e);
        d = ldexp(nearbyint(ldexp(d, bits)), e - bits);
        table[k] = f32_to_f16((float)d) | (uint32_t)f32_to_f16((float)(d * centre)) << 16;
    }
}

/* Mean square of the whole numbers lo..hi. */
static double mean_square(int lo, int hi)
{
    double sum = 0;
    for (int q = lo; q <= hi; q++) sum += (double)q * q;
    return sum / (hi - lo + 1);
}

/* ---- the formats ---- */

/* Q4_0, Q5_0 and Q8_0 begin with d; their quants are centred half a step below zero. */
static void fix_signed(uint8_t *p, size_t n_blocks, size_t block_bytes,
                       const uint16_t table[N_SCALE])
{
    for (size_t i = 0; i < n_blocks; i++, p += block_bytes) memcpy(p, &table[p[0]], 2);
}

/* A quantiser never gives -128, and some kernels rely on it. */
BZ_CLONES static void fix_q8_0(uint8_t *p, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, p += 34)
        for (int k = 2; k < 34; k++) p[k] = p[k] == 0x80 ? 0x81 : p[k];
}

/* Q4_K and Q5_K: d, dmin, then 12 bytes with eight 6-bit scales and eight 6-bit minimums. Each
 * minimum is made equal to its scale (dmin = centre * d then gives mean 0), each scale at least 32:
 * byte j holds scale j and in its upper two bits the top of scale j + 4, byte j + 4 the same for
 * the minimums, byte j + 8 the lower four bits of scale and minimum j + 4. */
static void fix_k_min(uint8_t *p, size_t n_blocks, size_t block_bytes,
                      const uint32_t table[N_SCALE])
{
    for (size_t i = 0; i < n_blocks; i++, p += block_bytes) {
        uint32_t top, low;
        memcpy(&top, p + 4, 4);
        memcpy(&low, p + 12, 4);
        top |= 0xa0a0a0a0u;
        low = (low & 0x0f0f0f0fu) * 0x11;
        memcpy(p, &table[p[0]], 4);
        memcpy(p + 4, &top, 4);
        memcpy(p + 8, &top, 4);
        memcpy(p + 12, &low, 4);
    }
}

/* Q6_K: 16 signed scales at 192, d at 208. Bit 6 becomes the reverse of the sign: 64..127 and
 * -128..-65, never near zero. */
static void fix_q6_k(uint8_t *p, size_t n_blocks, const uint16_t table[N_SCALE])
{
    for (size_t i = 0; i < n_blocks; i++, p += 210) {
        uint64_t s[2];
        memcpy(s, p + 192, sizeof s);
        for (int k = 0; k < 2; k++) {
            s[k] &= 0xbfbfbfbfbfbfbfbfu;
            s[k] |= ~s[k] >> 1 & 0x4040404040404040u;
        }
        memcpy(p + 192, s, sizeof s);
        memcpy(p + 208, &table[p[208]], 2);
    }
}

#define SQRT_12 3.46410162f /* width of a uniform distribution of deviation 1 */

/* Uniform numbers of 24 random bits. */
BZ_CLONES static void fix_f32(uint8_t *p, size_t n, float mean, float std)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = load_u32(p + 4 * i);
        float v = mean + std * SQRT_12 * ((float)(int32_t)(bits >> 8) * 0x1p-24f - 0.5f);
        memcpy(p + 4 * i, &v, 4);
    }
}

#define N_VALUE 4096

/* Uniform in 4096 steps. */
static void fix_16(const struct synth_tensor *t, uint8_t *p, size_t n)
{
    uint16_t table[N_VALUE];
    for (int k = 0; k < N_VALUE; k++) {
        float v = t->mean + t->std * SQRT_12 * (((float)k + 0.5f) / (float)N_VALUE - 0.5f);
        table[k] = t->type == QUANT_F16 ? f32_to_f16(v) : f32_to_bf16(v);
    }
    for (size_t i = 0; i < n; i++) memcpy(p + 2 * i, &table[load_u16(p + 2 * i) >> 4], 2);
}

/* The first quarter of the pairs turn, the others stand still. */
static void fix_rope(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) memcpy(p + 4 * i, &(float) { i < n / 4 ? 1.0f : 1e30f }, 4);
}

static void fix_blocks(const struct synth_tensor *t, uint8_t *p, size_t n_blocks, size_t bytes)
{
    uint16_t scales[N_SCALE];
    uint32_t pairs[N_SCALE];
    assert(t->mean == 0);
    switch (t->type) {
    case QUANT_Q4_0: make_signed(scales, t->std, mean_square(-8, 7)); break;
    case QUANT_Q5_0: make_signed(scales, t->std, mean_square(-16, 15)); break;
    case QUANT_Q8_0: make_signed(scales, t->std, mean_square(-128, 127)); break;
    case QUANT_Q6_K:
        make_signed(scales, t->std,
                    mean_square(-32, 31) * (mean_square(64, 127) + mean_square(-128, -65)) / 2);
        fix_q6_k(p, n_blocks, scales);
        return;
    case QUANT_Q4_K:
        /* Quants 0..15 lie around 7.5: the mean square around it is (16^2 - 1) / 12. */
        make_pairs(pairs, t->std, mean_square(32, 63) * 255.0 / 12, 7.5, 7);
        fix_k_min(p, n_blocks, bytes, pairs);
        return;
    case QUANT_Q5_K:
        make_pairs(pairs, t->std, mean_square(32, 63) * 1023.0 / 12, 15.5, 6);
        fix_k_min(p, n_blocks, bytes, pairs);
        return;
    default: assert(false); return; /* no mix gives another one */
    }
    fix_signed(p, n_blocks, bytes, scales);
    if (t->type == QUANT_Q8_0) fix_q8_0(p, n_blocks);
}

size_t synth_fill(const struct synth_tensor *t, uint64_t seed, uint64_t i, void *dst)
{
    const struct quant_format *f = quant_find(t->type);
    uint64_t first = i * SYNTH_CHUNK;
    if (first >= t->n_weights) return 0;
    size_t n = t->n_weights - first < SYNTH_CHUNK ? (size_t)(t->n_weights - first) : SYNTH_CHUNK;
    size_t n_bytes = quant_row_bytes(f, n);
    uint64_t stream = rng_at(seed ^ hash_name(t->name), i);
    fill_bits(stream, dst, n_bytes);
    if (t->is_rope) fix_rope(dst, n);
    else if (t->type == QUANT_F32) fix_f32(dst, n, t->mean, t->std);
    else if (t->type == QUANT_F16 || t->type == QUANT_BF16) fix_16(t, dst, n);
    else fix_blocks(t, dst, n / f->block, f->bytes);
    return n_bytes;
}
