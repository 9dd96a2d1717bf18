/* vocab.h - a vocabulary as a tree of bytes, and what every string has in common.
 *
 * The children of a node are neighbours, in the order of their bytes. Behind them come the children
 * of the first one and all below it, then those of the second one, and so on: a walk of the whole
 * tree goes forward through memory.
 */
#ifndef BEZEL_GRAMMAR_VOCAB_H
#define BEZEL_GRAMMAR_VOCAB_H

#include "grammar/grammar.h"
#include "grammar/lift.h"

/* Longer tokens have no use, and walks are as deep as the longest one. */
enum { MAX_TOKEN_BYTES = 255 };

struct trie_node {
    uint32_t child;   /* the first one */
    uint32_t entry;   /* of the tokens that end here; they end where those of the next node begin */
    uint32_t classes; /* of all bytes below, as bits: byte_class */
    uint16_t n_children;
    unsigned char byte; /* that leads here */
};

/* 32 classes of bytes that patterns tell apart; the rarer ASCII signs share some. Bytes of other
 * code points are one class, and a token that is no UTF-8 counts for another. */
enum { CLASS_UTF8 = 30, CLASS_BROKEN = 31 };
extern const unsigned char byte_class[128];

struct trie {
    uint32_t n_nodes;
    struct trie_node *nodes; /* n_nodes + 1 */
    uint32_t *tokens;
    uint16_t *chars; /* of each token, where that is known: code points before the quote */
};

/* What a JSON string without any limit takes: tokens that stay inside, and by what follows their
 * closing quote those that leave it. Every string's mask begins as a copy of this. */
struct free_text {
    uint32_t *inside;                /* bits */
    struct trie after;               /* the bytes behind the quote */
    uint32_t *by_length, *length_at; /* tokens inside by code points; where each length begins */
};

struct vocab {
    const struct tokenizer *t;
    uint32_t n_tokens, n_words;
    uint32_t max_bytes, max_chars; /* of a token */
    struct trie all;
    struct free_text text[N_LIFTS]; /* by enum lift: of strings, not of LIFT_RAW and LIFT_BARE */
    uint32_t ends[8], n_ends;
};

/* Does a token stand for text? Special tokens do not. */
bool vocab_is_text(const struct tokenizer *t, uint32_t token);

/* The bytes of a token into `to`, as many as its text has at most; false: it has none. The tags of
 * text/tags.h have one byte each. */
bool vocab_bytes(const struct tokenizer *t, uint32_t token, char *to, size_t *n);

#endif
