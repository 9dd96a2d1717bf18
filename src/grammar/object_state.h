/* object_state.h - an object half read, as machine_object.c and machine_key.c see it.
 *
 * words of an OBJECT_STATE: shape; levels that a member's value may have; members so far (up to
 * what bounds need); which of `some` are found; names so far that are in no member (a RE_MAP); the
 * place in the schema's order; then bits of the members that were read.
 *
 * A key is read by a RE_TUPLE: the tree of known names, the tree of other names so far, the
 * patterns of all groups, propertyNames, the names of `some`; and where a name of no pattern will
 * do, all texts.
 */
#ifndef BEZEL_GRAMMAR_OBJECT_STATE_H
#define BEZEL_GRAMMAR_OBJECT_STATE_H

#include "grammar/machine.h"
#include "grammar/object.h"

enum { S_SHAPE, S_LEFT, S_COUNT, S_FOUND, S_OTHERS, S_PLACE, S_SEEN };
enum { K_NAMES, K_OTHERS, K_PATTERNS };

/* What does not change while an object is read: of a shape. */
struct shape_info {
    node names; /* the tree of known names */
    node bare;  /* expression: names as keys; in calls those without quotes */
    node odd;   /* in calls: names that need them */
    uint32_t n_patterns;
    node plain;      /* formula of the value of a name of no pattern */
    bool unknown;    /* a name that is in no member may come */
    uint32_t *named; /* of each member, as bits: the `some` that its name is of */
    uint32_t *needs; /* numbers of members: who has the first has the second */
    bool *quoted;    /* of each member, in calls: its name cannot be bare */
};

struct view {
    struct grammar *g;
    struct object o;
    const struct shape_info *info;
    const uint32_t *w; /* of the state */
    node state;
};
/* False after a failure. */
bool object_look(struct grammar *g, node state, struct view *v);

static inline bool bit(const uint32_t *bits, uint32_t i)
{
    return bits[i / 32] >> i % 32 & 1;
}

/* May a name of no pattern come? */
static inline bool plain_fits(const struct view *v)
{
    return f_fits(v->g, v->info->plain, v->w[S_LEFT]);
}

/* ---- machine_object.c ---- */

/* Does it take a search to know whether an object can still be finished? */
bool object_is_searched(const struct view *v);
/* The start of a key, which is one of these names. */
node object_key_start(const struct view *v, node names);

/* ---- machine_key.c ---- */

/* The formula of a name that is in no member, given which patterns it has: of each one whether it
 * matches. */
node unknown_formula(struct grammar *g, const struct object *o, const bool *matches);

/* Can a name that is in no member still come of this tuple? */
bool unknown_lives(const struct view *v, node tuple);
/* How many names that are in no member can come of it, counted up to `most`. */
uint32_t unknown_count(const struct view *v, node tuple, uint32_t most);

/* Each way to go on behind a member: its formula and the state, appended to out. The member can be
 * one that `some` ask for, or not. i: its number, or n_members; f: what its value must be anyway;
 * named: the `some` that its name is of; others: the names in no member, with this one. */
void put_ways(const struct view *v, uint32_t i, node f, uint32_t named, node others,
              struct vec *out);

#endif
