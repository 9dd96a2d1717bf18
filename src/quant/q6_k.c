/* q6_k.c - Q6_K: 256 weights in 210 bytes, 6.5625 bits a weight. 16 groups of 16.
 * value = d * sc * (q - 32), q in 0..63, sc in -128..127 for each group.
 *
 *      0                           128              192           208   210
 *     +---------------------------+----------------+-------------+-----+
 *     |          ql[128]          |     qh[64]     | scales[16]  |  d  |     d: half, scales: i8
 *     +---------------------------+----------------+-------------+-----+
 *
 *     Each half of 128 weights has 64 bytes of ql and 32 of qh. For l = 0..31 of a half:
 *
 *         weight     low four bits      upper two bits of q
 *         l          ql[l] & 15         qh[l] & 3
 *         l + 32     ql[l+32] & 15      qh[l] >> 2 & 3
 *         l + 64     ql[l] >> 4         qh[l] >> 4 & 3
 *         l + 96     ql[l+32] >> 4      qh[l] >> 6
 */
#include "quant/fit.h"
#include "quant/formats.h"

/* Weights as -32..31. */
BZ_INLINE void unpack(const uint8_t *restrict b, int8_t *restrict q)
{
    for (int h = 0; h < 2; h++) {
        const uint8_t *ql = b + 64 * h, *qh = b + 128 + 32 * h;
        int8_t *o = q + 128 * h;
        for (int l = 0; l < 32; l++) o[l] = (int8_t)(((ql[l] & 15) | (qh[l] & 3) << 4) - 32);
        for (int l = 0; l < 32; l++)
            o[l + 32] = (int8_t)(((ql[l + 32] & 15) | (qh[l] >> 2 & 3) << 4) - 32);
        for (int l = 0; l < 32; l++)
            o[l + 64] = (int8_t)((ql[l] >> 4 | (qh[l] >> 4 & 3) << 4) - 32);
        for (int l = 0; l < 32; l++)
            o[l + 96] = (int8_t)((ql[l + 32] >> 4 | (qh[l] >> 6) << 4) - 32);
    }
}

BZ_CLONES void q6_k_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 256, b += 210, dst += 256) {
        float d = f16_to_f32(load_u16(b + 208));
        int8_t q[256];
        unpack(b, q);
        for (int g = 0; g < 16; g++) {
            float dl = d * (float)(int8_t)b[192 + g];
            float *y = dst + 16 * g;
            const int8_t *o = q + 16 * g;
            BZ_VECTOR
            for (int l = 0; l < 16; l++) y[l] = dl * (float)o[l];
        }
    }
}

/* First a free scale for each group, then a unit in which all of them are nearly whole; then each
 * group chooses again among its three neighbours on the grid that is really stored. Returns d.
 * (Refitting d to that choice, as Q4_K does, gains less than 0.2% here: with eight bits the grid is
 * already fine.) */
static float fit_block(const float *x, float *sc)
{
    static const struct fit_grid grid = { -32, 31, 27, 33.5f, 16, 2, false };
    float want[16];
    for (int g = 0; g < 16; g++) want[g] = fit_scale(x + 16 * g, 16, &grid);
    float d = fit_unit(want, 16, 127), inv = fit_inverse(d);
    for (int g = 0; g < 16; g++) {
        float best = INFINITY;
        for (int c = -1; c <= 1; c++) {
            float s = fit_level(want[g] * inv + (float)c, -128, 127);
            float e = fit_error(x + 16 * g, 16, d * s, -32, 31);
            if (e < best) {
                best = e;
                sc[g] = s;
            }
        }
    }
    return d;
}

void q6_k_encode(const float *src, void *dst, size_t n)
{
    const float limit = 127 * 31 * FIT_HALF_MAX;
    uint8_t *b = dst;
    for (size_t i = 0; i < n; i += 256, b += 210) {
        float x[256], sc[16];
        uint8_t q[256];
        fit_clean(src + i, x, 256, -limit, limit);
        float d = fit_block(x, sc);
        uint16_t h = f32_to_f16(d);
        for (int g = 0; g < 16; g++) {
            float inv = fit_inverse(d * sc[g]);
            b[192 + g] = (uint8_t)(int)sc[g];
            for (int l = 0; l < 16; l++)
                q[16 * g + l] = (uint8_t)((int)fit_level(x[16 * g + l] * inv, -32, 31) + 32);
        }
        for (int k = 0; k < 2; k++) {
            const uint8_t *o = q + 128 * k;
            uint8_t *ql = b + 64 * k, *qh = b + 128 + 32 * k;
            for (int l = 0; l < 32; l++) {
                ql[l] = (uint8_t)((o[l] & 15) | (o[l + 64] & 15) << 4);
                ql[l + 32] = (uint8_t)((o[l + 32] & 15) | (o[l + 96] & 15) << 4);
                qh[l] = (uint8_t)(o[l] >> 4 | o[l + 32] >> 4 << 2 | o[l + 64] >> 4 << 4 |
                                  o[l + 96] >> 4 << 6);
            }
        }
        memcpy(b + 208, &h, 2);
    }
}
