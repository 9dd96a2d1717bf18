/* re.h - regular expressions as sets of texts over code points, taken apart by derivatives.
 *
 * An expression is a state: the set of texts that may still follow. Reading a code point leads to
 * another expression (Brzozowski's derivative), so an automaton is made of exactly the states that
 * are visited, and conjunction and complement cost no more than a node. GBNF rules are expressions
 * too; a recursive one keeps its stack in the expression.
 */
#ifndef BEZEL_GRAMMAR_RE_H
#define BEZEL_GRAMMAR_RE_H

#include "grammar/store.h"

#define RE_INF  UINT32_MAX
#define LAST_CP 0x10ffffu

enum re_flag {
    RE_READY = 1,    /* the flags are valid */
    RE_NULLABLE = 2, /* has the empty text */
    RE_HARD = 4,     /* conjunction or complement inside: it may be empty without looking so */
    RE_LIVE = 8,     /* known to have a text */
    RE_DEAD = 16,    /* known to have none */
};

/* Reading a code point of first..last leads to `to`. */
struct step {
    uint32_t first, last;
    node to;
};

/* Ascending, and none leads to RE_EMPTY. */
struct steps {
    uint32_t n;
    struct step at[];
};

node re_set(struct store *s, const uint32_t *ranges, uint32_t n_ranges);
node re_range(struct store *s, uint32_t first, uint32_t last);
node re_any(struct store *s);      /* any one code point */
node re_any_text(struct store *s); /* any text */
node re_cat(struct store *s, node a, node b);
node re_alt(struct store *s, const node *x, uint32_t n);
node re_and(struct store *s, const node *x, uint32_t n);
node re_alt2(struct store *s, node a, node b);
node re_and2(struct store *s, node a, node b);
node re_not(struct store *s, node x);
node re_rep(struct store *s, node x, uint32_t least, uint32_t most);
node re_literal(struct store *s, struct str text);
node re_tuple(struct store *s, const node *x, uint32_t n);

/* A set that is defined by itself: make it, then say what it is (its body may contain it, behind
 * something that is read). */
node re_rule(struct store *s, bool nullable, bool hard);
void re_rule_is(struct store *s, node rule, node body);

node re_mod(struct store *s, const uint32_t w[4]);
node re_cmp(struct store *s, const uint32_t w[4]);

/* Words, sorted by bytes and all different, as a tree. With `numbered`, word i is known by i. */
node re_words(struct store *s, const struct str *words, uint32_t n, bool numbered);
/* A tree made of another one and one more word (RE_EMPTY: none yet). */
node re_words_add(struct store *s, node words, struct str word);

bool re_nullable(const struct store *s, node x);

/* What follows x, by code point. NULL after a failure. */
const struct steps *re_steps(struct store *s, node x);
node re_step(struct store *s, node x, uint32_t cp);

/* Is there a text in x? A search, where x needs one; it gives up with "yes" past max_search. */
bool re_live(struct store *s, node x);

/* How many texts x has, counted up to `most`; perhaps too many, where they are long. */
uint32_t re_count(struct store *s, node x, uint32_t most);

bool re_matches(struct store *s, node x, struct str text);

/* Lengths in code points of texts in x, at least and at most: bounds, not always reached. */
void re_length(struct store *s, node x, uint32_t *least, uint32_t *most);

/* Sets of code points as sorted ranges in a vec. */
void set_add(struct store *s, struct vec *v, uint32_t first, uint32_t last);
void set_tidy(struct store *s, struct vec *v);
void set_negate(struct store *s, struct vec *v);

#endif
