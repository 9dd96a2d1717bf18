/* schema_object.c - the keywords about objects. */
#include "grammar/object.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

static node name_of(struct reader *r, const struct json *j)
{
    return store_string(&r->g->s, j->type == JSON_STRING ? j->text : j->key);
}

/* patternProperties and additionalProperties: one group. */
static void read_group(struct reader *r, struct vec *patterns, node *other)
{
    const struct json *j = json_get(r->j, "patternProperties"),
                      *rest = json_get(r->j, "additionalProperties");
    *other = rest ? reader_sub(r, rest) : f_true(r->g);
    for (const struct json *c = j ? j->child : NULL; c; c = c->next) {
        enum bz_status before = r->g->s.status;
        node re = regex_search(&r->g->s, c->key);
        if (reader_leaves_out(r, "patternProperties", before)) continue;
        vec_put(&r->g->s, patterns, (uint32_t[]) { re, reader_sub(r, c) }, 2);
    }
}

/* What a name that is in `properties` owes to patterns too. */
static node pattern_formula(struct reader *r, const struct vec *patterns, struct str name, node f,
                            bool *matched)
{
    for (uint32_t i = 0; i + 1 < patterns->n; i += 2) {
        if (!re_matches(&r->g->s, patterns->w[i], name)) continue;
        *matched = true;
        f = f_and2(r->g, f, patterns->w[i + 1]);
    }
    return f;
}

static void read_properties(struct reader *r, struct object_draft *d, const struct vec *patterns,
                            uint32_t *order)
{
    const struct json *j = json_get(r->j, "properties");
    bool matched;
    if (j && j->type != JSON_OBJECT) reader_fail(r, "properties", "not an object");
    for (const struct json *c = j ? j->child : NULL; c; c = c->next) {
        node f = pattern_formula(r, patterns, c->key, reader_sub(r, c), &matched);
        draft_member(r->g, d, (struct member) { name_of(r, c), f, (*order)++, 0 });
    }
}

/* A name that must be there, whether `properties` speaks of it or not. */
static void require(struct reader *r, struct object_draft *d, const struct vec *patterns,
                    node other, const struct json *name, uint32_t *order)
{
    const struct json *j = json_get(r->j, "properties");
    bool known = false;
    for (const struct json *c = j ? j->child : NULL; c && !known; c = c->next)
        known = str_eq(c->key, name->text);
    node f = f_true(r->g);
    if (!known) {
        bool matched = false;
        f = pattern_formula(r, patterns, name->text, f, &matched);
        if (!matched) f = other;
    }
    draft_member(r->g, d, (struct member) { name_of(r, name), f, (*order)++, 1 });
}

static void read_required(struct reader *r, struct object_draft *d, const struct vec *patterns,
                          node other, uint32_t *order)
{
    const struct json *j = json_get(r->j, "required");
    if (j && j->type != JSON_ARRAY) {
        if (r->draft == DRAFT_4 || j->type != JSON_BOOL) reader_fail(r, "required", "not a list");
        return;
    }
    for (const struct json *c = j ? j->child : NULL; c; c = c->next) {
        if (c->type == JSON_STRING) require(r, d, patterns, other, c, order);
        else reader_fail(r, "required", "not a list of names");
    }
}

/* {name: [names]}: who has the first needs the others. */
static void read_needs(struct reader *r, struct object_draft *d)
{
    const struct json *j =
        json_get(r->j, r->draft >= DRAFT_2019 ? "dependentRequired" : "dependencies");
    for (const struct json *c = j ? j->child : NULL; c; c = c->next) {
        node name = name_of(r, &(struct json) { .key = c->key });
        if (c->type == JSON_STRING)
            vec_put(&r->g->s, &d->needs, (uint32_t[]) { name, name_of(r, c) }, 2);
        for (const struct json *n = c->type == JSON_ARRAY ? c->child : NULL; n; n = n->next)
            vec_put(&r->g->s, &d->needs, (uint32_t[]) { name, name_of(r, n) }, 2);
    }
}

node reader_object(struct reader *r)
{
    struct object_draft d;
    struct vec patterns = { 0 };
    uint32_t order = 0;
    node other;
    draft_open(r->g, &d);
    read_group(r, &patterns, &other);
    read_properties(r, &d, &patterns, &order);
    read_required(r, &d, &patterns, other, &order);
    read_needs(r, &d);
    draft_group(r->g, &d, other, (const struct pair *)(const void *)patterns.w, patterns.n / 2);
    vec_free(&patterns);
    const struct json *names = json_get(r->j, "propertyNames");
    if (names && r->draft >= DRAFT_6)
        d.names = value_read(r->g, f_value(r->g, reader_sub(r, names))).text;
    d.least = reader_count(r, "minProperties", 0);
    d.most = reader_count(r, "maxProperties", UINT32_MAX);
    return draft_close(r->g, &d);
}
