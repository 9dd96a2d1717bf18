/* affine.c - the encoder behind Q4_K and Q5_K: weights near d * sc * q - dmin * mn.
 *
 * A group of 32 weights alone wants a step s and an offset m with x ~ s q - m. The block has to
 * store s = d sc and m = dmin mn with six bits each for sc and mn. In three stages:
 *
 * 1. Each group finds its own (s, m), free of the grid. Given levels q, the best pair minimises
 *    sum (x - s q + m)^2. Setting both derivatives to 0 gives, with n = 32,
 *
 *        s = (n Sxq - Sx Sq) / D,   m = (Sq Sxq - Sqq Sx) / D,   D = n Sqq - Sq^2.
 *
 *    Given the pair, the best q is (x + m) / s rounded and clamped. As in fit.h the two are
 *    alternated from a grid of starts: both ends of the range are moved by a part of a step.
 * 2. d and dmin are the units in which all s and all m are nearest to whole multiples.
 * 3. Each group tries the nine neighbours on the stored grid and keeps the best, by the true error;
 *    then d and dmin are refitted together, the same least squares over the whole block with sc q
 *    in the place of q and mn in the place of 1, and the groups choose once more.
 *
 * Offsets of one block share the sign of dmin. With dmin > 0 a group that lies entirely above 0
 * must waste levels on the gap, so a block that has such a group is also tried with dmin < 0.
 */
#include "quant/affine.h"

#include "quant/fit.h"

#define GROUP 32

/* Sums over one group: the weights and the levels that (s, m) gives them. */
struct sums {
    float x, q, xq, qq;
};

BZ_INLINE struct sums group_sums(const float *x, float s, float m, float q_max)
{
    float t[GROUP], u[GROUP], v[GROUP], inv = fit_inverse(s);
    for (int i = 0; i < GROUP; i++) {
        float q = fit_level((x[i] + m) * inv, 0, q_max);
        t[i] = q;
        u[i] = x[i] * q;
        v[i] = q * q;
    }
    return (struct sums) { fit_sum(x, GROUP), fit_sum(t, GROUP), fit_sum(u, GROUP),
                           fit_sum(v, GROUP) };
}

BZ_INLINE float group_error(const float *x, float s, float m, float q_max)
{
    float t[GROUP], inv = fit_inverse(s);
    for (int i = 0; i < GROUP; i++) {
        float r = x[i] - (s * fit_level((x[i] + m) * inv, 0, q_max) - m);
        t[i] = r * r;
    }
    return fit_sum(t, GROUP);
}

/* One alternation of stage 1. An offset of the wrong sign becomes 0, and then s = Sxq / Sqq. */
BZ_INLINE void group_refit(const float *x, float sign, float q_max, float *s, float *m)
{
    struct sums a = group_sums(x, *s, *m, q_max);
    float det = GROUP * a.qq - a.q * a.q;
    if (!(det > 0)) return;
    *s = (GROUP * a.xq - a.x * a.q) / det;
    *m = (a.q * a.xq - a.qq * a.x) / det;
    if (*m * sign >= 0) return;
    *m = 0;
    *s = a.xq / a.qq;
}

/* Stage 1 for one group; offsets have the given sign. */
BZ_INLINE void group_fit(const float *x, float sign, float q_max, float *s, float *m)
{
    static const float shift[4] = { -0.6f, 0, 0.7f, 1.4f }; /* inwards, in steps */
    float lo = x[0], hi = x[0], best = INFINITY;
    for (int i = 1; i < GROUP; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    if (lo * sign > 0) lo = 0;
    *s = 0;
    *m = -lo;
    if (!(hi > lo)) return;
    float step = (hi - lo) / q_max;
    for (int c = 0; c < 16; c++) {
        float from = lo + step * shift[c / 4], to = hi - step * shift[c % 4];
        if (from * sign > 0) from = 0;
        float s1 = (to - from) / q_max, m1 = -from;
        group_refit(x, sign, q_max, &s1, &m1);
        group_refit(x, sign, q_max, &s1, &m1);
        float e = group_error(x, s1, m1, q_max);
        if (e < best) {
            best = e;
            *s = s1;
            *m = m1;
        }
    }
}

/* A block on its way: units, whole multiples, the error of it all. */
struct state {
    float d, dmin, error;
    float sc[8], mn[8];
};

/* Stage 3, the groups' part: the best of the nine neighbours of (s, m) in units d and dmin. */
BZ_INLINE void choose(const float *x, const float *s, const float *m, float q_max, struct state *b)
{
    float inv_d = fit_inverse(b->d), inv_m = fit_inverse(b->dmin);
    b->error = 0;
    for (int g = 0; g < 8; g++) {
        float best = INFINITY;
        for (int c = 0; c < 9; c++) {
            float sc = fit_level(s[g] * inv_d + (float)(c / 3 - 1), 0, 63);
            float mn = fit_level(m[g] * inv_m + (float)(c % 3 - 1), 0, 63);
            float e = group_error(x + GROUP * g, b->d * sc, b->dmin * mn, q_max);
            if (e < best) {
                best = e;
                b->sc[g] = sc;
                b->mn[g] = mn;
            }
        }
        b->error += best;
    }
}

/* Stage 3, the block's part. With A = sc q and B = mn the sum of (x - d A + dmin B)^2 is least at
 *
 *     d = (Sax Sbb - Sab Sbx) / D,   dmin = (Sab Sax - Saa Sbx) / D,   D = Saa Sbb - Sab^2.
 *
 * In f64, because D is a difference of large products. */
BZ_INLINE void refit_units(const float *x, float q_max, struct state *b)
{
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int g = 0; g < 8; g++) {
        struct sums t = group_sums(x + GROUP * g, b->d * b->sc[g], b->dmin * b->mn[g], q_max);
        double sc = b->sc[g], mn = b->mn[g];
        aa += sc * sc * t.qq;
        ab += sc * mn * t.q;
        bb += mn * mn * GROUP;
        ax += sc * t.xq;
        bx += mn * t.x;
    }
    double det = aa * bb - ab * ab;
    if (det > 1e-6 * aa * bb) {
        b->d = fit_half((float)((ax * bb - ab * bx) / det));
        b->dmin = fit_half((float)((ab * ax - aa * bx) / det));
    } else if (aa > 0 && !(bb > 0)) {
        b->d = fit_half((float)(ax / aa));
    } else if (bb > 0 && !(aa > 0)) {
        b->dmin = fit_half((float)(-bx / bb));
    }
}

BZ_CLONES static struct state block_fit(const float *x, float sign, float q_max)
{
    float s[8], m[8];
    for (int g = 0; g < 8; g++) group_fit(x + GROUP * g, sign, q_max, &s[g], &m[g]);
    struct state best = { .d = fit_unit(s, 8, 63), .dmin = sign * fit_unit(m, 8, 63) };
    choose(x, s, m, q_max, &best);
    for (int round = 0; round < 2; round++) {
        struct state next = best;
        refit_units(x, q_max, &next);
        for (int g = 0; g < 8; g++) {
            s[g] = next.d * next.sc[g];
            m[g] = next.dmin * next.mn[g];
        }
        choose(x, s, m, q_max, &next);
        if (!(next.error < best.error)) break;
        best = next;
    }
    return best;
}

BZ_INLINE bool has_positive_group(const float *x)
{
    for (int g = 0; g < 8; g++) {
        int above = 0;
        for (int i = 0; i < GROUP; i++) above += x[GROUP * g + i] > 0;
        if (above == GROUP) return true;
    }
    return false;
}

BZ_CLONES void affine_fit(const float *src, int q_max, struct affine *out)
{
    float x[256], top = (float)q_max;
    fit_clean(src, x, 256, -63 * FIT_HALF_MAX, 63 * FIT_HALF_MAX * top);
    struct state b = block_fit(x, 1, top);
    if (b.error > 0 && has_positive_group(x)) {
        struct state c = block_fit(x, -1, top);
        if (c.error < b.error) b = c;
    }
    out->d = b.d;
    out->dmin = b.dmin;
    for (int g = 0; g < 8; g++) {
        float s = b.d * b.sc[g], m = b.dmin * b.mn[g], inv = fit_inverse(s);
        out->sc[g] = (uint8_t)b.sc[g];
        out->mn[g] = (uint8_t)b.mn[g];
        for (int i = GROUP * g; i < GROUP * g + GROUP; i++)
            out->q[i] = (uint8_t)fit_level((x[i] + m) * inv, 0, top);
    }
}

void affine_pack(const struct affine *a, uint8_t *s)
{
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(a->sc[j] | a->sc[j + 4] >> 4 << 6);
        s[j + 4] = (uint8_t)(a->mn[j] | a->mn[j + 4] >> 4 << 6);
        s[j + 8] = (uint8_t)((a->sc[j + 4] & 15) | (a->mn[j + 4] & 15) << 4);
    }
}
