/* data.h - training data: conversations, one JSON object a line, as tokens and targets.
 *
 *     {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", …}], "tools": […]}
 *     {"prompt": "…", "completion": "…"}      the same with one question and one answer
 *
 * The model's turns are learned, the token that closes them included; the prompt and the answers of
 * tools are not. Every line is checked before the first step, and a wrong one is named by its
 * number.
 */
#ifndef BEZEL_TRAIN_DATA_H
#define BEZEL_TRAIN_DATA_H

#include "base/mem.h"
#include "text/chat.h"
#include "text/tokenizer.h"

enum { TRAIN_SEQUENCE = 512 }; /* tokens of a sequence, where nobody says */

struct example {
    int32_t *ids;     /* n, beginning with <bos> */
    int32_t *targets; /* n: the next token where it is learned, else -1 */
    int32_t *starts;  /* n: where the one that a token belongs to begins; NULL: there is only one */
    uint32_t n, n_learned;
    uint32_t line; /* of the first */
};

struct dataset {
    struct example *examples;
    size_t n, cap;
    uint64_t n_tokens, n_learned;
};

struct dataset_options {
    const struct tokenizer *tokenizer;
    enum chat_variant variant;
    uint32_t n_max; /* tokens that an example may have */
};

/* `name` is what sentences call the text. On failure *out is untouched. */
enum bz_status dataset_read(struct dataset *out, struct str jsonl, const char *name,
                            const struct dataset_options *options, struct bz_err *err);
void dataset_free(struct dataset *d);

/* The most tokens of an example; 0 without any. */
uint32_t dataset_longest(const struct dataset *d);

/* 0 to n - 1 in an order that follows from the seed. */
void shuffle(uint32_t *order, uint32_t n, uint64_t seed);

/* Move every k-th example from *from to *held, so that the two are alike. `share` is at most a
 * half. On failure nothing has moved. */
enum bz_status dataset_hold_back(struct dataset *held, struct dataset *from, double share,
                                 struct bz_err *err);

/* Pack short examples into sequences of at most n_max tokens. Neighbours in a file are often alike,
 * so the examples are taken in an order that follows from the seed. Each goes into the first of the
 * last few sequences that has room. On failure *d is as it was. */
enum bz_status dataset_pack(struct dataset *d, uint32_t n_max, uint64_t seed, struct bz_err *err);

#endif
