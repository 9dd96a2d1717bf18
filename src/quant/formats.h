/* formats.h - what quant.c needs from the file of each format.
 *
 * Contracts are those of struct quant_format in quant.h: n weights, whole blocks, any alignment of
 * the packed side. Encoders accept every float: a value beyond the format's range saturates, NaN
 * counts as 0, and finite input never decodes to NaN or infinity. (F32, F16 and BF16 can hold NaN
 * and infinities, and keep them.)
 */
#ifndef BEZEL_QUANT_FORMATS_H
#define BEZEL_QUANT_FORMATS_H

#include <stddef.h>

void f32_decode(const void *src, float *dst, size_t n);
void f16_decode(const void *src, float *dst, size_t n);
void bf16_decode(const void *src, float *dst, size_t n);
void q4_0_decode(const void *src, float *dst, size_t n);
void q4_1_decode(const void *src, float *dst, size_t n);
void q5_0_decode(const void *src, float *dst, size_t n);
void q5_1_decode(const void *src, float *dst, size_t n);
void q8_0_decode(const void *src, float *dst, size_t n);
void q2_k_decode(const void *src, float *dst, size_t n);
void q3_k_decode(const void *src, float *dst, size_t n);
void q4_k_decode(const void *src, float *dst, size_t n);
void q5_k_decode(const void *src, float *dst, size_t n);
void q6_k_decode(const void *src, float *dst, size_t n);
void iq4_nl_decode(const void *src, float *dst, size_t n);
void iq4_xs_decode(const void *src, float *dst, size_t n);
void mxfp4_decode(const void *src, float *dst, size_t n);

void f32_encode(const float *src, void *dst, size_t n);
void f16_encode(const float *src, void *dst, size_t n);
void bf16_encode(const float *src, void *dst, size_t n);
void q4_0_encode(const float *src, void *dst, size_t n);
void q5_0_encode(const float *src, void *dst, size_t n);
void q8_0_encode(const float *src, void *dst, size_t n);
void q4_k_encode(const float *src, void *dst, size_t n);
void q5_k_encode(const float *src, void *dst, size_t n);
void q6_k_encode(const float *src, void *dst, size_t n);

#endif
