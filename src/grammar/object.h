/* object.h - what one kind of object may hold: a conjunction of statements about its members.
 *
 * Every known name has one formula, in which all that is said about it is already combined. Other
 * names belong to groups: a group is one `patternProperties` with its `additionalProperties`, and a
 * name must satisfy every group. Statements that some member exists (they come from complements)
 * are a list of their own.
 */
#ifndef BEZEL_GRAMMAR_OBJECT_H
#define BEZEL_GRAMMAR_OBJECT_H

#include "grammar/internal.h"

enum { MAX_SOME = 24 }; /* statements that a member exists */

struct member {
    node name; /* STRING */
    node f;
    uint32_t order; /* of the schema: for writing */
    uint32_t required;
};

struct pair {
    node a, b;
};

struct group {
    node other;                  /* formula of names that no pattern matches */
    const struct pair *patterns; /* expression, formula */
    uint32_t n_patterns;
};

struct object {
    const struct member *members; /* by name */
    uint32_t n_members, n_groups, n_some, n_needs;
    const uint32_t *groups;
    const struct pair *some;  /* expression, formula: there is a member of such a name and value */
    const struct pair *needs; /* name, name: who has the first has the second */
    node names;               /* expression: all names are of it */
    uint32_t least, most;
};
struct object object_read(const struct grammar *g, node shape);
/* The group at *at, which moves on to the next. */
struct group object_group(const uint32_t **at);

/* An object being put together; names need no order. */
struct object_draft {
    struct vec members, groups, some, needs;
    node names;
    uint32_t least, most, n_groups;
};
void draft_open(struct grammar *g, struct object_draft *d);
void draft_member(struct grammar *g, struct object_draft *d, struct member m);
void draft_group(struct grammar *g, struct object_draft *d, node other, const struct pair *patterns,
                 uint32_t n);
/* The shape; the draft is used up. Names that are required or needed become members. */
node draft_close(struct grammar *g, struct object_draft *d);

node object_any(struct grammar *g);
/* Both; RE_EMPTY where there is certainly no such object. */
node object_and(struct grammar *g, node a, node b);
/* Add the shapes of objects that are not of this one. */
void object_not(struct grammar *g, node shape, struct vec *out);
/* Is there one of at most `left` levels, as far as its shape tells? */
bool object_fits(struct grammar *g, node shape, unsigned left);
bool object_empty(struct grammar *g, node shape);
/* Is every object of b one of a? Only if that is easily seen. */
bool object_covers(struct grammar *g, node a, node b);

/* The formula of a name's value, known or not. */
node object_formula(struct grammar *g, const struct object *o, node name);

#endif
