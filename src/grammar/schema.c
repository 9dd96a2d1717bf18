/* schema.c - a schema as a VALUE: its own statements by type, and the schemas that it combines. */
#include "grammar/schema.h"

#include <stdarg.h>
#include <stdio.h>

#include "grammar/array.h"
#include "grammar/number.h"
#include "grammar/object.h"

/* ---- where a schema stands ---- */

/* The JSON pointer from `from` to `to`, appended to b; false: it is not inside. */
static bool find_path(const struct json *from, const struct json *to, struct buf *b)
{
    size_t before = b->n, i = 0;
    if (from == to) return true;
    for (const struct json *c = from->child; c; c = c->next, i++) {
        buf_putc(b, '/');
        if (from->type == JSON_ARRAY) buf_printf(b, "%zu", i);
        for (size_t k = 0; from->type == JSON_OBJECT && k < c->key.n; k++) {
            if (c->key.p[k] == '~') buf_puts(b, "~0");
            else if (c->key.p[k] == '/') buf_puts(b, "~1");
            else buf_putc(b, c->key.p[k]);
        }
        if (find_path(c, to, b)) return true;
        b->n = before;
    }
    return false;
}

static void put_place(struct reader *r, const char *keyword, const char *sentence)
{
    struct buf path = { 0 };
    const struct resource *all = r->g->set.resources;
    find_path(all[all[r->resource].document].json, r->j, &path);
    r->g->s.status = r->g->s.status ? r->g->s.status : BZ_ERR_UNSUPPORTED;
    fail(&r->g->s.err, BZ_OK, "%s at #%.*s: %s", keyword, (int)(path.n > 200 ? 200 : path.n),
         path.data ? path.data : "", sentence);
    buf_free(&path);
}

void reader_fail(struct reader *r, const char *keyword, const char *fmt, ...)
{
    char sentence[256];
    va_list ap;
    if (r->g->s.status) return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    r->g->placed = true;
    put_place(r, keyword, sentence);
}

void reader_place(struct reader *r, const char *keyword)
{
    char sentence[256];
    if (!r->g->s.status || r->g->s.status == BZ_ERR_MEMORY || r->g->placed) return;
    r->g->placed = true;
    snprintf(sentence, sizeof sentence, "%.250s", r->g->s.err.text);
    put_place(r, keyword, sentence);
}

bool reader_leaves_out(struct reader *r, const char *keyword, enum bz_status before)
{
    struct grammar *g = r->g;
    reader_place(r, keyword);
    if (before || !g->s.status || g->s.status == BZ_ERR_MEMORY || !g->options.lenient) return false;
    g->s.status = BZ_OK;
    g->placed = false;
    g->n_visits = 0;
    return true;
}

uint32_t reader_count(struct reader *r, const char *keyword, uint32_t otherwise)
{
    const struct json *j = json_get(r->j, keyword);
    if (!j) return otherwise;
    if ((j->type != JSON_INT && j->type != JSON_FLOAT) || !(j->number >= 0)) {
        reader_fail(r, keyword, "not a whole number");
        return otherwise;
    }
    return j->number >= UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)j->number;
}

/* ---- formulas of parts ---- */

static node put_pointer(struct grammar *g, enum kind kind, const void *p, uint32_t more)
{
    uint64_t bits = (uintptr_t)p;
    return store_put(&g->s, kind, (uint32_t[]) { (uint32_t)bits, (uint32_t)(bits >> 32), more }, 3);
}

static const struct json *get_pointer(const uint32_t *w)
{
    return (const struct json *)(uintptr_t)((uint64_t)w[1] << 32 | w[0]);
}

node reader_sub(struct reader *r, const struct json *j)
{
    uint32_t resource = r->resource;
    if (j->type == JSON_BOOL) return j->boolean ? f_true(r->g) : f_false(r->g);
    if (j->type == JSON_OBJECT && j->n == 0) return f_true(r->g);
    for (uint32_t i = 0; i < r->g->set.n_resources; i++)
        if (r->g->set.resources[i].json == j) resource = i;
    return put_pointer(r->g, F_SCHEMA, j, resource);
}

node f_const(struct grammar *g, const struct json *j)
{
    return put_pointer(g, F_CONST, j, 0);
}

/* Of members with one name the last one counts. */
static bool comes_again(const struct json *member)
{
    for (const struct json *c = member->next; c; c = c->next)
        if (str_eq(c->key, member->key)) return true;
    return false;
}

static node const_object(struct grammar *g, const struct json *j)
{
    struct object_draft d;
    uint32_t order = 0;
    draft_open(g, &d);
    for (const struct json *c = j->child; c; c = c->next) {
        if (comes_again(c)) continue;
        node name = store_string(&g->s, c->key);
        draft_member(g, &d, (struct member) { name, f_const(g, c), order++, 1 });
    }
    draft_group(g, &d, f_false(g), NULL, 0);
    return draft_close(g, &d);
}

static node const_array(struct grammar *g, const struct json *j)
{
    struct vec v = { 0 };
    for (const struct json *c = j->child; c; c = c->next) vec_push(&g->s, &v, f_const(g, c));
    struct array a = {
        .prefix = v.w, .n_prefix = v.n, .rest = f_false(g), .least = v.n, .most = v.n
    };
    node x = array_put(g, &a);
    vec_free(&v);
    return x;
}

node schema_const(struct grammar *g, const uint32_t *w)
{
    const struct json *j = get_pointer(w);
    struct value v = { 0 };
    node x;
    switch (j->type) {
    case JSON_NULL: v.literals = HAS_NULL; break;
    case JSON_BOOL: v.literals = j->boolean ? HAS_TRUE : HAS_FALSE; break;
    case JSON_INT:
    case JSON_FLOAT: v.number = number_equal(&g->s, j->text); break;
    case JSON_STRING: v.text = re_words(&g->s, &j->text, 1, false); break;
    case JSON_ARRAY:
        x = const_array(g, j);
        v.arrays = &x;
        v.n_arrays = 1;
        return value_put(g, &v);
    case JSON_OBJECT:
        x = const_object(g, j);
        v.objects = &x;
        v.n_objects = 1;
        return value_put(g, &v);
    }
    return value_put(g, &v);
}

/* ---- the statements of one schema ---- */

enum type {
    T_NULL = 1,
    T_BOOLEAN = 2,
    T_OBJECT = 4,
    T_ARRAY = 8,
    T_NUMBER = 16,
    T_STRING = 32,
    T_INTEGER = 64,
    T_ALL = 63
};

static unsigned type_of(struct reader *r, const struct json *j)
{
    static const char *const names[] = { "null",   "boolean", "object", "array",
                                         "number", "string",  "integer" };
    if (j->type == JSON_STRING)
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
            if (str_is(j->text, names[i])) return 1u << i;
    reader_fail(r, "type", "not the name of a type");
    return 0;
}

static unsigned read_types(struct reader *r)
{
    const struct json *j = json_get(r->j, "type");
    unsigned types = 0;
    if (!j) return T_ALL;
    if (j->type != JSON_ARRAY) return type_of(r, j);
    for (const struct json *c = j->child; c; c = c->next) types |= type_of(r, c);
    return types;
}

/* All that this schema itself says of values, without the schemas that it combines. */
static node own_value(struct reader *r)
{
    struct store *s = &r->g->s;
    unsigned types = read_types(r);
    struct value v = { .exponents = EXP_ALL };
    node object, array;
    if (types & T_NULL) v.literals |= HAS_NULL;
    if (types & T_BOOLEAN) v.literals |= HAS_TRUE | HAS_FALSE;
    if (types & (T_NUMBER | T_INTEGER)) v.number = reader_number(r, &v.exponents);
    else v.exponents = 0;
    if (types & T_INTEGER && !(types & T_NUMBER)) {
        v.number = re_and2(s, v.number, number_integer(s, r->draft == DRAFT_4));
        v.exponents &= EXP_HUGE | EXP_HUGE_NEG;
        if (r->draft == DRAFT_4) v.exponents = 0;
    }
    if (types & T_STRING) v.text = reader_text(r);
    if (types & T_OBJECT) {
        object = reader_object(r);
        v.objects = &object;
        v.n_objects = 1;
    }
    if (types & T_ARRAY) {
        array = reader_array(r);
        v.arrays = &array;
        v.n_arrays = 1;
    }
    return value_put(r->g, &v);
}

/* ---- the schemas that it combines ---- */

static void read_list(struct reader *r, const char *keyword,
                      node (*combine)(struct grammar *, const node *, uint32_t), struct vec *all)
{
    const struct json *j = json_get(r->j, keyword);
    struct vec v = { 0 };
    if (!j) return;
    if (j->type != JSON_ARRAY || !j->n) reader_fail(r, keyword, "not a list of schemas");
    for (const struct json *c = j->child; c; c = c->next) vec_push(&r->g->s, &v, reader_sub(r, c));
    if (v.n) vec_push(&r->g->s, all, combine(r->g, v.w, v.n));
    vec_free(&v);
}

static void read_condition(struct reader *r, struct vec *all)
{
    struct grammar *g = r->g;
    const struct json *on = json_get(r->j, "if"), *yes = json_get(r->j, "then"),
                      *no = json_get(r->j, "else");
    if (!on || (!yes && !no)) return;
    node f = reader_sub(r, on);
    node then = yes ? f_and2(g, f, reader_sub(r, yes)) : f;
    node otherwise = no ? f_and2(g, f_not(g, f), reader_sub(r, no)) : f_not(g, f);
    vec_push(&g->s, all, f_or(g, (node[]) { then, otherwise }, 2));
}

/* {name: schema}: who has the name is of the schema. Lists of names are reader_object's. */
static void read_dependencies(struct reader *r, const char *keyword, struct vec *all)
{
    struct grammar *g = r->g;
    const struct json *j = json_get(r->j, keyword);
    for (const struct json *c = j ? j->child : NULL; c; c = c->next) {
        struct object_draft d;
        if (c->type == JSON_ARRAY || c->type == JSON_STRING) continue;
        draft_open(g, &d);
        draft_member(g, &d, (struct member) { store_string(&g->s, c->key), f_false(g), 0, 0 });
        struct value without = value_read(g, value_all(g));
        node object = draft_close(g, &d);
        without.objects = &object;
        node absent = store_put(&g->s, F_VALUE, (node[]) { value_put(g, &without) }, 1);
        vec_push(&g->s, all, f_or(g, (node[]) { absent, reader_sub(r, c) }, 2));
    }
}

static void read_combined(struct reader *r, struct vec *all)
{
    const struct json *j = json_get(r->j, "not");
    read_list(r, "allOf", f_and, all);
    read_list(r, "anyOf", f_or, all);
    read_list(r, "oneOf", f_one, all);
    if (j) vec_push(&r->g->s, all, f_not(r->g, reader_sub(r, j)));
    if (r->draft >= DRAFT_7) read_condition(r, all);
    if (r->draft >= DRAFT_2019) read_dependencies(r, "dependentSchemas", all);
    else read_dependencies(r, "dependencies", all);
}

static void refuse(struct reader *r)
{
    static const char *const unsupported[] = { "unevaluatedProperties", "unevaluatedItems",
                                               "$recursiveRef", "$dynamicRef" };
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
        const struct json *j = json_get(r->j, unsupported[i]);
        enum bz_status before = r->g->s.status;
        if (j && r->draft >= DRAFT_2019 && !(j->type == JSON_BOOL && j->boolean))
            reader_fail(r, unsupported[i], "this keyword is not supported");
        reader_leaves_out(r, unsupported[i], before);
    }
}

node schema_value(struct grammar *g, const uint32_t *w)
{
    struct reader r = { g, get_pointer(w), w[2], g->set.resources[w[2]].draft };
    const struct json *ref = json_get(r.j, "$ref"), *list = json_get(r.j, "enum"),
                      *single = json_get(r.j, "const");
    struct vec all = { 0 };
    if (r.j->type != JSON_OBJECT) reader_fail(&r, "schema", "neither an object nor a boolean");
    if (ref) {
        if (ref->type != JSON_STRING) reader_fail(&r, "$ref", "not a text");
        else vec_push(&g->s, &all, reader_ref(&r, ref->text));
    }
    node v = value_all(g), own;
    if (!ref || r.draft >= DRAFT_2019) {
        refuse(&r);
        v = own_value(&r);
        if (list && list->type != JSON_ARRAY) reader_fail(&r, "enum", "not a list");
        if (list) v = value_and(g, v, schema_enum(g, list));
        if (single && r.draft >= DRAFT_6) v = value_and(g, v, f_value(g, f_const(g, single)));
        reader_place(&r, "schema");
        read_combined(&r, &all);
    }
    enum bz_status before = g->s.status;
    own = v;
    v = f_restrict(g, v, f_and(g, all.w, all.n));
    if (reader_leaves_out(&r, "schema", before)) v = own;
    vec_free(&all);
    return v;
}

/* ---- the whole document ---- */

enum bz_status schema_open(struct grammar *g, struct str json, struct bz_err *err)
{
    struct json *root = NULL;
    enum bz_status st = json_parse(&root, json, &g->set.arena, err);
    if (st) return st;
    schema_find_resources(g, root, err);
    return g->s.status;
}

void schema_close(struct grammar *g)
{
    arena_free(&g->set.arena);
    mem_free(g->set.resources);
    g->set = (struct schema_set) { 0 };
}

node schema_root(struct grammar *g)
{
    const struct resource *root = &g->set.resources[g->set.document];
    struct reader r = { g, root->json, g->set.document, root->draft };
    if (root->json->type != JSON_OBJECT && root->json->type != JSON_BOOL)
        reader_fail(&r, "schema", "neither an object nor a boolean");
    return reader_sub(&r, root->json);
}

/* The formulas that a VALUE leads to. */
static void add_parts(struct grammar *g, node value, struct vec *out)
{
    struct store *s = &g->s;
    struct value v = value_read(g, value);
    for (uint32_t i = 0; i < v.n_objects; i++) {
        struct object o = object_read(g, v.objects[i]);
        const uint32_t *at = o.groups;
        for (uint32_t k = 0; k < o.n_members; k++) vec_push(s, out, o.members[k].f);
        for (uint32_t k = 0; k < o.n_groups; k++) {
            struct group group = object_group(&at);
            vec_push(s, out, group.other);
            for (uint32_t p = 0; p < group.n_patterns; p++) vec_push(s, out, group.patterns[p].b);
        }
        for (uint32_t k = 0; k < o.n_some; k++) vec_push(s, out, o.some[k].b);
    }
    for (uint32_t i = 0; i < v.n_arrays; i++) {
        struct array a = array_read(g, v.arrays[i]);
        vec_put(s, out, a.prefix, a.n_prefix);
        vec_push(s, out, a.rest);
        for (uint32_t k = 0; k < a.n_contains; k++) vec_push(s, out, a.contains[k].f);
    }
}

/* uniqueItems of the arrays of a formula: the first schema in it is the place to name. */
static void check_unique(struct grammar *g, node f, node value)
{
    struct value v = value_read(g, value);
    for (uint32_t i = 0; i < v.n_arrays; i++) array_keeps_unique(g, v.arrays[i]);
    while (node_kind(&g->s, f) == F_AND) f = node_words(&g->s, f)[0];
    if (node_kind(&g->s, f) != F_SCHEMA) return;
    struct reader r = { .g = g, .j = get_pointer(node_words(&g->s, f)) };
    reader_place(&r, "uniqueItems");
}

void schema_check(struct grammar *g, node f)
{
    enum { F_CHECKED = 16 };
    struct vec todo = { 0 };
    vec_push(&g->s, &todo, f);
    while (todo.n && !g->s.status) {
        node x = todo.w[--todo.n];
        if (g->s.nodes[x].flags & F_CHECKED) continue;
        g->s.nodes[x].flags |= F_CHECKED;
        node v = f_value(g, x);
        if (!g->s.status) check_unique(g, x, v);
        add_parts(g, v, &todo);
    }
    vec_free(&todo);
}
