/* sha256.h - FIPS 180-4 SHA-256, fed in pieces. */
#ifndef BEZEL_BASE_SHA256_H
#define BEZEL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_feed(struct sha256 *s, const void *p, size_t n);
void sha256_end(struct sha256 *s, uint8_t digest[32]);
void sha256_hex(const uint8_t digest[32], char hex[65]); /* lower case, NUL-ended */

#endif
