/* schema_array.c - the keywords about arrays. */
#include "grammar/array.h"
#include "grammar/schema.h"

/* The first items and the others. Until 2019-09 a list in `items` is what `prefixItems` is now, and
 * `additionalItems` what `items` is. */
static void read_items(struct reader *r, struct vec *prefix, node *rest)
{
    const struct json *items = json_get(r->j, "items"), *first = NULL, *others = items;
    if (r->draft >= DRAFT_2020) first = json_get(r->j, "prefixItems");
    if (items && items->type == JSON_ARRAY) {
        if (r->draft >= DRAFT_2020)
            reader_fail(r, "items", "a list of schemas, which is called prefixItems since 2020-12");
        first = items;
        others = json_get(r->j, "additionalItems");
    }
    if (first && first->type != JSON_ARRAY) reader_fail(r, "prefixItems", "not a list");
    for (const struct json *c = first ? first->child : NULL; c; c = c->next)
        vec_push(&r->g->s, prefix, reader_sub(r, c));
    *rest = others ? reader_sub(r, others) : f_true(r->g);
}

node reader_array(struct reader *r)
{
    struct vec prefix = { 0 };
    node rest;
    read_items(r, &prefix, &rest);
    const struct json *with = json_get(r->j, "contains"), *unique = json_get(r->j, "uniqueItems");
    struct array a = { .prefix = prefix.w, .n_prefix = prefix.n, .rest = rest };
    struct contains c = { .least = 1, .most = UINT32_MAX };
    if (with && r->draft >= DRAFT_6) {
        c.f = reader_sub(r, with);
        if (r->draft >= DRAFT_2019) {
            c.least = reader_count(r, "minContains", 1);
            c.most = reader_count(r, "maxContains", UINT32_MAX);
        }
        a.contains = &c;
        a.n_contains = 1;
    }
    a.least = reader_count(r, "minItems", 0);
    a.most = reader_count(r, "maxItems", UINT32_MAX);
    a.unique = unique && unique->type == JSON_BOOL && unique->boolean && a.most > 1;
    node x = array_put(r->g, &a);
    vec_free(&prefix);
    return x;
}
