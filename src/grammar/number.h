/* number.h - sets of numbers as sets of decimal texts.
 *
 * The texts are JSON's without an exponent, of any length; on those, bounds and multiples are kept
 * exactly. Texts with an exponent are a few fixed forms (enum exponents): what writers of JSON use
 * for very large and very small numbers.
 */
#ifndef BEZEL_GRAMMAR_NUMBER_H
#define BEZEL_GRAMMAR_NUMBER_H

#include "grammar/re.h"

enum exponents {
    EXP_TINY = 1,     /* 0 < x < 0.0001 */
    EXP_TINY_NEG = 2, /* -0.0001 < x < 0 */
    EXP_HUGE = 4,     /* whole numbers of 10^16 and more */
    EXP_HUGE_NEG = 8,
    EXP_ANY = 16, /* every exponent */
    EXP_ALL = 31,
};

node number_all(struct store *s);                 /* every number, without an exponent */
node number_integer(struct store *s, bool plain); /* whole ones; not plain: 1.0 is one too */

node number_canonical(struct store *s); /* one text of each number */

/* How a number of the set x is written: few different numbers in one spelling, whole ones without a
 * point, and never with endless digits. Whole ones have at most MAX_WHOLE. Others, and those of
 * which it matters what they are multiples of, have at most MAX_SIGNIFICANT, which doubles tell
 * apart. Where no number of x is as short, there is one digit more than the schema's own numbers
 * have. x has none of these only if it is empty. */
enum { MAX_WHOLE = 20, MAX_SIGNIFICANT = 15 };
node number_written(struct store *s, node x);

/* Texts with exponents of these forms (enum exponents). */
node number_exponents(struct store *s, unsigned forms);

/* A JSON number as text, taken apart. */
struct decimal {
    bool negative;
    struct buf digits; /* no leading zeros but one before the point, no trailing ones behind it */
    size_t n_whole;    /* digits before the point */
};
/* False: too large to write out; or digits.failed. */
bool decimal_read(struct decimal *d, struct str text);

/* x >= bound, x > bound; x <= bound, x < bound. *forms loses the exponents that could break it. */
node number_at_least(struct store *s, struct str bound, bool strictly, unsigned *forms);
node number_at_most(struct store *s, struct str bound, bool strictly, unsigned *forms);
/* 0 after an error: the divisor is not positive or has too many digits. */
node number_multiple(struct store *s, struct str of);
/* Every spelling of one number. */
node number_equal(struct store *s, struct str value);

/* The derivative of RE_MOD and RE_CMP. */
node number_step(struct store *s, node x, uint32_t cp);

#endif
