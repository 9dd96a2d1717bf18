/* synth_vocab.h - made-up vocabularies with the structure of the real one.
 *
 * For tiny models, tests and timing. Same size, same result, on every machine. Every piece of more
 * than one character is reached by the merges, and the merges are every way to cut a piece into two
 * pieces, in the order in which the pieces were made: that is how conversions from SentencePiece
 * derive theirs.
 */
#ifndef BEZEL_CLI_SYNTH_VOCAB_H
#define BEZEL_CLI_SYNTH_VOCAB_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/gguf_write.h"

#define SYNTH_VOCAB_MIN         512u
#define SYNTH_VOCAB_FULL        262144u
#define SYNTH_VOCAB_FULL_MERGES 514906u

struct synth_vocab {
    uint32_t n_tokens, n_merges;
    struct str *tokens; /* n_tokens */
    int32_t *types;     /* n_tokens: enum token_type */
    float *scores;      /* n_tokens: all -1000, as published files have them */
    struct str *merges; /* n_merges: "left right" */
    int32_t bos, eos, unk, pad, mask;
    struct arena text; /* of tokens and merges */
};

/* SYNTH_VOCAB_MIN to SYNTH_VOCAB_FULL tokens. At the full size special tokens, bytes, and runs of
 * newlines, spaces and tabs have the published ids and there are SYNTH_VOCAB_FULL_MERGES merges;
 * below it the layout is another one on purpose. On failure *out is untouched. */
enum bz_status synth_vocab_make(struct synth_vocab *out, uint32_t n_tokens, struct bz_err *err);
void synth_vocab_free(struct synth_vocab *v);

/* Tokens, merges and where a text begins and ends: what every converter writes. */
void synth_vocab_put_pieces(struct gguf_writer *w, const struct synth_vocab *v);
/* The tokenizer.ggml.* keys, as llama.cpp's converter writes them. */
void synth_vocab_put(struct gguf_writer *w, const struct synth_vocab *v);

#endif
