/* value.h - sets of JSON values: as formulas, and taken apart by type.
 *
 * A formula is what a schema says: conjunctions, alternatives and complements of schemas, with one
 * node for equal ones. Only what lies at the same place of a document is combined; a property's or
 * an item's formula stays unopened until that place is reached.
 *
 * Taken apart by type a formula is a VALUE: which literals, the texts of its numbers (number.h),
 * the contents of its strings, and the alternatives of its objects and arrays. Those are
 * disjunctions of shapes; conjunction multiplies them, complement turns each into one shape for
 * each way to break it.
 */
#ifndef BEZEL_GRAMMAR_VALUE_H
#define BEZEL_GRAMMAR_VALUE_H

#include "grammar/internal.h"

/* ---- formulas ---- */

node f_true(struct grammar *g);
node f_false(struct grammar *g);
node f_and(struct grammar *g, const node *x, uint32_t n);
node f_and2(struct grammar *g, node a, node b);
node f_or(struct grammar *g, const node *x, uint32_t n);
node f_one(struct grammar *g, const node *x, uint32_t n); /* exactly one of them */
node f_not(struct grammar *g, node x);

/* The VALUE of a formula; and of those of its values that are of v. */
node f_value(struct grammar *g, node f);
node f_restrict(struct grammar *g, node v, node f);

/* Is there a value of at most `left` levels? Literals, numbers and strings have none, an object or
 * an array one more than the highest value in it. For text that is checked the answer may be a
 * mistaken yes; for text that is written it is exact, within the bounds of the search. */
bool f_fits(struct grammar *g, node f, unsigned left);

/* The most levels that any value is looked for with. */
unsigned f_most(const struct grammar *g);

static inline bool f_empty(struct grammar *g, node f)
{
    return !f_fits(g, f, f_most(g));
}

/* ---- by type ---- */

enum literal { HAS_NULL = 1, HAS_TRUE = 2, HAS_FALSE = 4, HAS_LITERALS = 7 };

struct value {
    unsigned literals, exponents;
    node number; /* texts without an exponent */
    node text;   /* contents of strings */
    const node *objects, *arrays;
    uint32_t n_objects, n_arrays;
};
struct value value_read(const struct grammar *g, node value);
node value_put(struct grammar *g, const struct value *v);

node value_all(struct grammar *g);
node value_none(struct grammar *g);
node value_and(struct grammar *g, node a, node b);
node value_or(struct grammar *g, node a, node b);
node value_minus(struct grammar *g, node a, node b);

#endif
