/* synth_words.h - an endless, deterministic stream of English-like words for made-up vocabularies.
 *
 * First what a small vocabulary needs most (common words, endings, punctuation), then words with
 * affixes, then invented words without end. A space in front is written as U+2581.
 */
#ifndef BEZEL_CLI_SYNTH_WORDS_H
#define BEZEL_CLI_SYNTH_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/str.h"

#define SYNTH_SPACE "\xe2\x96\x81"

struct synth_words {
    uint32_t stage, at; /* at: how many of this stage are done */
    struct rng rng;
    char text[96]; /* the word handed out last */
};

/* Zero is the start. The text lives until the next call. */
struct str synth_words_next(struct synth_words *w);

#endif
