/* iq4_table.h - the sixteen uneven steps that IQ4_NL and IQ4_XS share. */
#ifndef BEZEL_QUANT_IQ4_TABLE_H
#define BEZEL_QUANT_IQ4_TABLE_H

#include <stdint.h>

#include "base/simd.h"

static const float iq4_table[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113 };

/* 32 weights from 16 bytes: low nibbles first, then high ones. */
BZ_INLINE void iq4_scale(float d, const uint8_t *restrict qs, float *restrict y)
{
    for (int j = 0; j < 16; j++) {
        y[j] = d * iq4_table[qs[j] & 15];
        y[j + 16] = d * iq4_table[qs[j] >> 4];
    }
}

#endif
