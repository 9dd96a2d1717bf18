/* schema_scalar.c - the keywords about strings and numbers, and enum. */
#include <stdlib.h>

#include "grammar/number.h"
#include "grammar/object.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

/* ---- strings ---- */

node reader_text(struct reader *r)
{
    struct store *s = &r->g->s;
    const struct json *pattern = json_get(r->j, "pattern"), *format = json_get(r->j, "format");
    uint32_t least = reader_count(r, "minLength", 0), most = reader_count(r, "maxLength", RE_INF);
    node x = least > most ? 0 : re_rep(s, re_any(s), least, most);
    if (pattern && pattern->type != JSON_STRING) reader_fail(r, "pattern", "not a text");
    if (pattern && pattern->type == JSON_STRING) {
        enum bz_status before = s->status;
        node p = regex_search(s, pattern->text);
        if (!reader_leaves_out(r, "pattern", before)) x = re_and2(s, x, p);
    }
    if (format && format->type == JSON_STRING) {
        enum bz_status before = s->status;
        node f = format_text(s, format->text);
        if (!reader_leaves_out(r, "format", before) && f) x = re_and2(s, x, f);
    }
    return x;
}

/* ---- numbers ---- */

static const struct json *read_bound(struct reader *r, const char *keyword)
{
    const struct json *j = json_get(r->j, keyword);
    if (!j || j->type == JSON_INT || j->type == JSON_FLOAT) return j;
    if (j->type != JSON_BOOL || r->draft != DRAFT_4) reader_fail(r, keyword, "not a number");
    return NULL;
}

/* In draft 4 the exclusive keywords are flags of the others. */
static bool is_flag(struct reader *r, const char *keyword)
{
    const struct json *j = json_get(r->j, keyword);
    return r->draft == DRAFT_4 && j && j->type == JSON_BOOL && j->boolean;
}

node reader_number(struct reader *r, unsigned *forms)
{
    struct store *s = &r->g->s;
    const struct json *least = read_bound(r, "minimum"), *most = read_bound(r, "maximum"),
                      *above = read_bound(r, "exclusiveMinimum"),
                      *below = read_bound(r, "exclusiveMaximum"), *of = read_bound(r, "multipleOf");
    node x = number_all(s);
    if (least)
        x = re_and2(s, x, number_at_least(s, least->text, is_flag(r, "exclusiveMinimum"), forms));
    if (most)
        x = re_and2(s, x, number_at_most(s, most->text, is_flag(r, "exclusiveMaximum"), forms));
    if (above) x = re_and2(s, x, number_at_least(s, above->text, true, forms));
    if (below) x = re_and2(s, x, number_at_most(s, below->text, true, forms));
    if (of) {
        enum bz_status before = s->status;
        node m = number_multiple(s, of->text);
        if (!m) reader_fail(r, "multipleOf", "not a positive number of at most nine digits");
        if (!reader_leaves_out(r, "multipleOf", before)) {
            x = re_and2(s, x, m);
            *forms = 0;
        }
    }
    return x;
}

/* ---- enum ---- */

static int by_text(const void *a, const void *b)
{
    const struct str *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int c = n ? memcmp(x->p, y->p, n) : 0;
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* All strings of a list as one expression. */
static node enum_text(struct grammar *g, const struct json *list)
{
    struct str *v = mem_alloc(list->n, sizeof *v);
    uint32_t n = 0, kept = 0;
    node x = 0;
    if (!v) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    for (const struct json *c = v ? list->child : NULL; c; c = c->next)
        if (c->type == JSON_STRING) v[n++] = c->text;
    if (n) {
        qsort(v, n, sizeof *v, by_text);
        for (uint32_t i = 0; i < n; i++)
            if (kept == 0 || !str_eq(v[kept - 1], v[i])) v[kept++] = v[i];
        x = re_words(&g->s, v, kept, false);
    }
    mem_free(v);
    return x;
}

node schema_enum(struct grammar *g, const struct json *list)
{
    struct value v = { .text = enum_text(g, list) };
    struct vec numbers = { 0 };
    for (const struct json *c = list->child; c; c = c->next) {
        if (c->type == JSON_INT || c->type == JSON_FLOAT)
            vec_push(&g->s, &numbers, number_equal(&g->s, c->text));
        if (c->type == JSON_NULL) v.literals |= HAS_NULL;
        if (c->type == JSON_BOOL) v.literals |= c->boolean ? HAS_TRUE : HAS_FALSE;
    }
    v.number = re_alt(&g->s, numbers.w, numbers.n);
    vec_free(&numbers);
    node x = value_put(g, &v);
    for (const struct json *c = list->child; c; c = c->next)
        if (c->type == JSON_ARRAY || c->type == JSON_OBJECT)
            x = value_or(g, x, f_value(g, f_const(g, c)));
    return x;
}
