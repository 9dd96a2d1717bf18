/* mask.h - the tokens that a configuration allows. */
#ifndef BEZEL_GRAMMAR_MASK_H
#define BEZEL_GRAMMAR_MASK_H

#include "grammar/machine.h"
#include "grammar/vocab.h"

/* What was computed for one grammar and one vocabulary, kept as long as there is room. */
struct mask_cache;

enum bz_status mask_cache_open(struct mask_cache **out, struct grammar *g, const struct vocab *v,
                               struct bz_err *err);
void mask_cache_close(struct mask_cache *c);

/* The mask of a configuration. `text` holds the n bytes so far, and has room for MAX_TOKEN_BYTES
 * more, which are used. Valid until the next call. */
const uint32_t *mask_find(struct mask_cache *c, node config, char *text, size_t n);

/* The bytes that can come first, into `out`; 0: perhaps all. */
uint32_t mask_first_bytes(struct grammar *g, struct thread t, unsigned char out[32]);

#endif
