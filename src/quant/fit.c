/* fit.c - the search for a scale; the maths is in fit.h.
 *
 * These are functions and not inlined into the encoders because the bounds lo and hi must stay
 * variables: with constants gcc turns the clamp into branches, and the loop into scalar code.
 */
#include "quant/fit.h"

BZ_INLINE float error_of(const float *x, int n, float d, float lo, float hi)
{
    float t[32], inv = fit_inverse(d);
    BZ_VECTOR
    for (int i = 0; i < n; i++) {
        float r = x[i] - d * fit_level(x[i] * inv, lo, hi);
        t[i] = r * r;
    }
    return fit_sum(t, n);
}

/* The best scale for the levels that scale d gives. */
BZ_INLINE float refit(const float *x, int n, float d, float lo, float hi)
{
    float t[32], u[32], inv = fit_inverse(d);
    BZ_VECTOR
    for (int i = 0; i < n; i++) {
        float q = fit_level(x[i] * inv, lo, hi);
        t[i] = x[i] * q;
        u[i] = q * q;
    }
    float qq = fit_sum(u, n);
    return qq > 0 ? fit_sum(t, n) / qq : 0;
}

BZ_INLINE float largest_of(const float *x, int n)
{
    float a = 0;
    for (int i = 0; i < n; i++) a = fabsf(x[i]) > a ? fabsf(x[i]) : a;
    return a;
}

BZ_INLINE float scale_of(const float *x, int n, const struct fit_grid *g)
{
    float top = largest_of(x, n), best = 0, best_error = INFINITY;
    if (!(top > 0)) return 0;
    float stride = (g->last - g->first) / (float)(g->steps - 1);
    for (int c = 0; c < g->steps * g->signs; c++) {
        float k = g->first + stride * (float)(c / g->signs);
        float d = refit(x, n, (c % g->signs ? -top : top) / k, g->lo, g->hi);
        if (g->half) d = fit_half(d);
        float e = error_of(x, n, d, g->lo, g->hi);
        if (e < best_error) {
            best_error = e;
            best = d;
        }
    }
    return best;
}

BZ_CLONES float fit_error(const float *x, int n, float d, float lo, float hi)
{
    return n == 16 ? error_of(x, 16, d, lo, hi) : error_of(x, 32, d, lo, hi);
}

BZ_CLONES float fit_scale(const float *x, int n, const struct fit_grid *g)
{
    return n == 16 ? scale_of(x, 16, g) : scale_of(x, 32, g);
}

/* The largest value is tried as the multiple k_max, k_max - 1, ... of the unit: a smaller multiple
 * means a larger and coarser unit, so sixteen of them are enough. */
float fit_unit(const float *v, int n, int k_max)
{
    float top = largest_of(v, n), best = 0, best_error = INFINITY;
    if (!(top > 0)) return 0;
    for (int k = k_max; k > k_max - 16; k--) {
        float d = fit_half(top / (float)k), inv = fit_inverse(d), e = 0;
        for (int i = 0; i < n; i++) {
            float r = v[i] - d * fit_level(v[i] * inv, (float)-k_max, (float)k_max);
            e += r * r;
        }
        if (e < best_error) {
            best_error = e;
            best = d;
        }
    }
    return best;
}
