/* lift.h - expressions over code points as automata over bytes.
 *
 * Text is UTF-8, and inside a JSON string it may be escaped. A lifted state is an expression and
 * how far the bytes of the next code point have come. Its row says where each byte leads; rows are
 * filled as they are asked for, and are only a cache.
 */
#ifndef BEZEL_GRAMMAR_LIFT_H
#define BEZEL_GRAMMAR_LIFT_H

#include "grammar/re.h"
#include "text/tags.h"

enum lift {
    LIFT_RAW,   /* plain text */
    LIFT_JSON,  /* a JSON string after its opening quote, each character escaped or not */
    LIFT_PLAIN, /* the same, only with the escapes that JSON demands, in one spelling */
    LIFT_CALL,  /* text between the quotes of Gemma's tool calls, which has no escapes */
    LIFT_BARE,  /* a key of those calls without quotes, up to its colon */
    N_LIFTS
};

/* Where a byte leads: one of these, or a lifted state. */
enum { LEADS_UNKNOWN = 0, LEADS_NOWHERE = 1, LEADS_OUT = 2 };

node lift_start(struct store *s, enum lift kind, node x);

static inline node lift_re(const struct store *s, node state)
{
    return node_words(s, state)[1];
}

static inline enum lift lift_kind(const struct store *s, node state)
{
    return (enum lift)node_words(s, state)[0];
}

/* The byte behind a text of this kind; LIFT_RAW has none. */
static inline unsigned lift_closer(enum lift kind)
{
    return kind == LIFT_CALL ? BYTE_QUOTE : kind == LIFT_BARE ? ':' : '"';
}

/* Between two code points? Only then a text may end here. */
static inline bool lift_at_border(const struct store *s, node state)
{
    return node_words(s, state)[2] == 0;
}

/* The closing quote of a string, or a bare key's colon, leads out where the text may end. For a
 * RE_TUPLE it always does: the machine looks whether it is a key. */
uint32_t lift_find(struct store *s, node state, unsigned byte);

/* The row of a state, or NULL where there is none yet. */
static inline const uint32_t *lift_row(const struct store *s, node state)
{
    return s->nodes[state].data;
}

static inline uint32_t lift_step(struct store *s, node state, unsigned byte)
{
    const uint32_t *row = lift_row(s, state);
    if (row && row[byte] != LEADS_UNKNOWN) return row[byte];
    return lift_find(s, state, byte);
}

/* In the middle of a code point: which ones it can still be, as n ranges. 0: between two, or
 * whichever it is leads to the expression of the state. */
struct range {
    uint32_t first, last;
};
enum { MAX_PENDING = 4 };
uint32_t lift_pending(const struct store *s, node state, struct range out[MAX_PENDING]);

/* Give back the memory of all rows. */
void lift_forget(struct store *s);

#endif
