/* chat_plain.c - JSON Schema in the few keywords that a declaration has.
 *
 *   $ref                      what it names, inside of the tool's parameters; a type within itself
 *                             is only named there (its type), not written out again
 *   allOf                     all of them together
 *   anyOf, oneOf              null among them: nullable; one other: that one; several: their types,
 *                             values and properties; a property that several have is any of theirs
 *   const                     an enum of one
 *   enum, properties, items   say the type where none is given
 *
 * A schema's own keywords go before those that it takes from others. A schema with none of these
 * keywords, or with a type and no others to take from, is printed as the canonical template prints
 * it.
 *
 * Definitions that name each other could be written out without end, and a long one can be named
 * often. Past the limits below a reference is only named too.
 */
#include "text/chat_parts.h"

enum {
    MAX_REFS = 256, /* written out in one declaration */
    MAX_LOOKED =
        1 << 26, /* bytes looked through for those of one prompt; further ones say nothing */
    MAX_WRITTEN = 1 << 20, /* bytes of definitions in one prompt: more than a context holds */
    MAX_LEVELS = 200,      /* JSON alone has fewer; a stack of 256 KB holds several times as many */
    N_TYPES = 7,           /* that JSON Schema has */
};

static bool is_object(const struct json *j)
{
    return j && j->type == JSON_OBJECT;
}

/* ---- building ---- */

static bool is_list(const struct json *j)
{
    return j->type == JSON_ARRAY || j->type == JSON_OBJECT;
}

static struct json *node(struct chat_out *o, enum json_type type)
{
    struct json *j = arena_alloc(o->scratch, 1, sizeof *j);
    if (j) *j = (struct json) { .type = type };
    else if (!o->st) o->st = fail_memory(o->err, sizeof *j);
    return j;
}

/* Append an element to an object or a list. Those whose elements were made here keep a pointer to
 * the last element in `text`, which they have no other use for. A copy shares its elements with the
 * original, so it has no such pointer. */
static void append(struct chat_out *o, struct json *to, struct str key, const struct json *value)
{
    struct json *j = to && value ? node(o, JSON_NULL) : NULL;
    if (!j) return;
    *j = *value;
    j->key = key;
    j->next = NULL;
    if (is_list(j)) j->text = (struct str) { NULL, 0 };
    struct json *last = (struct json *)(uintptr_t)to->text.p;
    if (last) last->next = j;
    else to->child = j;
    to->text = (struct str) { (const char *)j, 0 };
    to->n++;
}

static void append_all(struct chat_out *o, struct json *to, const struct json *from)
{
    for (const struct json *c = from ? from->child : NULL; c; c = c->next) append(o, to, c->key, c);
}

static void append_text(struct chat_out *o, struct json *to, const char *key, const char *text)
{
    struct json value = { .type = JSON_STRING, .text = str_of(text) };
    append(o, to, str_of(key), &value);
}

/* Find a keyword whose values add up. These are a schema's first members, so the search is short
 * however many other members there are. */
static struct json *find_sum(struct chat_out *o, struct json *to, struct str key)
{
    for (struct json *c = to->child; c; c = c->next)
        if (str_eq(c->key, key)) return c;
    struct json *sum = node(o, JSON_NULL);
    if (!sum) return NULL;
    sum->key = key;
    sum->next = to->child;
    if (!to->child) to->text = (struct str) { (const char *)sum, 0 };
    to->child = sum;
    to->n++;
    return sum;
}

/* Both lists of a keyword, the earlier first. */
static void join(struct chat_out *o, struct json *to, const struct json *member)
{
    struct json *sum = find_sum(o, to, member->key);
    if (!sum) return;
    const struct json before = *sum;
    if (before.type != member->type || !is_list(member)) { /* the later counts */
        *sum = *member;
        sum->next = before.next;
        if (is_list(sum)) sum->text = (struct str) { NULL, 0 };
        return;
    }
    if (!before.text.p) { /* elements of others */
        sum->child = NULL;
        sum->n = 0;
        append_all(o, sum, &before);
    }
    append_all(o, sum, member);
}

static bool is_resolved(struct str key)
{
    static const char *const keys[] = { "$ref",  "$defs", "definitions", "allOf",
                                        "anyOf", "oneOf", "const" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (str_is(key, keys[i])) return true;
    return false;
}

/* Is it what options have together? */
static bool is_united(struct str key)
{
    return str_is(key, "type") || str_is(key, "enum") || str_is(key, "properties") ||
           str_is(key, "required");
}

/* Add the keywords of `from` to those of `to`. Of a keyword that both have the later value counts,
 * but properties and required names add up. */
static void take_keywords(struct chat_out *o, struct json *to, const struct json *from)
{
    for (const struct json *c = is_object(from) && to ? from->child : NULL; c; c = c->next) {
        bool adds = str_is(c->key, "properties") || str_is(c->key, "required");
        if (adds) join(o, to, c);
        else if (!is_resolved(c->key)) append(o, to, c->key, c);
    }
}

/* ---- what a reference names ---- */

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Does a part of a JSON pointer spell this key? ~1 is a slash, ~0 a tilde, %20 a space. */
static bool is_key(struct str key, struct str part)
{
    size_t k = 0;
    if (str_eq(key, part)) return true;
    for (size_t i = 0; i < part.n; i++, k++) {
        char c = part.p[i];
        int high = c == '%' && i + 2 < part.n ? digit_of(part.p[i + 1]) : -1;
        int low = high >= 0 ? digit_of(part.p[i + 2]) : -1;
        if (low >= 0) c = (char)(16 * high + low), i += 2;
        if (c == '~' && i + 1 < part.n) c = part.p[++i] == '1' ? '/' : '~';
        if (k == key.n || key.p[k] != c) return false;
    }
    return k == key.n;
}

static const struct json *find_ref(struct chat_out *o, const struct json *root, struct str ref)
{
    if (!ref.n || ref.p[0] != '#') return NULL;
    struct str s = { ref.p + 1, ref.n - 1 };
    while (s.n && root) {
        if (s.p[0] != '/') return NULL;
        s = (struct str) { s.p + 1, s.n - 1 };
        const char *slash = memchr(s.p, '/', s.n);
        struct str part = { s.p, slash ? (size_t)(slash - s.p) : s.n };
        const struct json *found = NULL;
        if (!is_object(root)) return NULL;
        for (const struct json *c = root->child; c; c = c->next) {
            o->n_looked += sizeof *c + c->key.n;
            if (is_key(c->key, part)) found = c;
        }
        root = found;
        s = (struct str) { s.p + part.n, s.n - part.n };
    }
    return is_object(root) ? root : NULL;
}

/* About as many as it takes to write. */
static size_t n_bytes(const struct json *j)
{
    size_t n = j->key.n + j->text.n + 8;
    for (const struct json *c = j->child; c; c = c->next) n += n_bytes(c);
    return n;
}

static void take_plain(struct chat_out *o, struct json *to, const struct json *schema);

/* `typed`: the schema says enough without it. */
static void take_ref(struct chat_out *o, struct json *to, const struct json *ref, bool typed)
{
    struct chat_schema *s = &o->schema;
    struct str name = ref->type == JSON_STRING ? ref->text : (struct str) { "", 0 };
    if (o->n_looked >= MAX_LOOKED) return;
    const struct json *target = find_ref(o, s->root, name);
    if (!target) {
        if (typed) return;
        chat_fail(o, "the \"$ref\" \"%.*s\" names nothing in the tool's parameters",
                  name.n < 80 ? (int)name.n : 80, name.p);
        return;
    }
    bool known = s->n_open == CHAT_MAX_OPEN || s->n_refs == MAX_REFS || s->n_levels > MAX_LEVELS ||
                 o->n_written > MAX_WRITTEN;
    for (size_t i = 0; i < s->n_open; i++) known |= s->open[i] == target;
    if (known) {
        append(o, to, str_of("type"), json_get(target, "type"));
        return;
    }
    s->open[s->n_open++] = target;
    s->n_refs++;
    o->n_written += n_bytes(target);
    take_plain(o, to, target);
}

/* ---- one of several ---- */

static bool is_null(const struct json *option)
{
    const struct json *type = json_get(option, "type"), *values = json_get(option, "enum");
    if (type) return type->type == JSON_STRING && str_is(type->text, "null");
    return values && values->n == 1 && values->child->type == JSON_NULL;
}

static void add_type(struct chat_out *o, struct json *types, const struct json *type)
{
    if (!type || type->type != JSON_STRING || !types || types->n == N_TYPES) return;
    for (const struct json *c = types->child; c; c = c->next)
        if (str_eq(c->text, type->text)) return;
    append(o, types, (struct str) { NULL, 0 }, type);
}

/* One type is that one, several are a list, as the template prints a list. */
static void put_types(struct chat_out *o, struct json *to, struct json *types)
{
    if (!types || !types->n) return;
    append(o, to, str_of("type"), types->n == 1 ? types->child : types);
}

/* A property of several options is any of theirs. Its keywords besides type, values and properties
 * are the last option's. */
static struct json *unite(struct chat_out *o, const struct json *props)
{
    struct chat_member *m;
    size_t n = chat_group_members(o, props, &m), end;
    struct json *all = node(o, JSON_OBJECT);
    for (size_t i = 0; i < n; i = end) {
        struct json *any = NULL, *one = NULL;
        for (end = i + 1; end < n && str_eq(m[end].key, m[i].key); end++) continue;
        const struct json *last = m[end - 1].value;
        if (end - i > 1) any = node(o, JSON_ARRAY), one = node(o, JSON_OBJECT);
        for (size_t k = i; any && k < end; k++)
            append(o, any, (struct str) { NULL, 0 }, m[k].value);
        for (const struct json *c = one && is_object(last) ? last->child : NULL; c; c = c->next)
            if (!is_resolved(c->key) && !is_united(c->key)) append(o, one, c->key, c);
        append(o, one, str_of("anyOf"), any);
        append(o, all, m[i].key, one ? one : last);
    }
    return all;
}

static void infer_type(struct chat_out *o, struct json *to);

static void take_options(struct chat_out *o, struct json *to, const struct json *list)
{
    static const struct json yes = { .type = JSON_BOOL, .boolean = true };
    struct json *types = node(o, JSON_ARRAY), *values = node(o, JSON_ARRAY), *last = NULL;
    struct json *props = node(o, JSON_OBJECT);
    size_t n = 0, n_listed = 0;
    bool nullable = false;
    for (const struct json *c = list->child; c && !o->st; c = c->next) {
        struct json *one = node(o, JSON_OBJECT);
        take_plain(o, one, c);
        infer_type(o, one);
        if (is_null(one)) {
            nullable = true;
            continue;
        }
        const struct json *type = json_get(one, "type"), *some = json_get(one, "enum");
        const struct json *own = json_get(one, "properties");
        n++;
        n_listed += some && some->type == JSON_ARRAY;
        if (some && some->type == JSON_ARRAY) append_all(o, values, some);
        if (type && type->type == JSON_ARRAY)
            for (const struct json *t = type->child; t; t = t->next) add_type(o, types, t);
        add_type(o, types, type);
        if (is_object(own)) append_all(o, props, own);
        last = one;
    }
    if (o->st) return;
    if (n == 1) {
        take_keywords(o, to, last);
    } else if (n) {
        put_types(o, to, types);
        if (n_listed == n) append(o, to, str_of("enum"), values);
        props = props->n ? unite(o, props) : NULL;
        if (props) props->key = str_of("properties"), join(o, to, props);
    }
    if (nullable) append(o, to, str_of("nullable"), &yes);
}

/* ---- the type ---- */

static const char *type_of(const struct json *value)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",     [JSON_BOOL] = "boolean",  [JSON_INT] = "integer",
        [JSON_FLOAT] = "number",  [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };
    return names[value->type];
}

/* Where none is given. */
static void infer_type(struct chat_out *o, struct json *to)
{
    if (json_get(to, "type")) return;
    const struct json *values = json_get(to, "enum");
    struct json *types = node(o, JSON_ARRAY);
    if (values && values->type == JSON_ARRAY) {
        for (const struct json *c = values->child; c; c = c->next) {
            struct json type = { .type = JSON_STRING, .text = str_of(type_of(c)) };
            add_type(o, types, &type);
        }
        put_types(o, to, types);
    } else if (is_object(json_get(to, "properties"))) {
        append_text(o, to, "type", "object");
    } else if (is_object(json_get(to, "items"))) {
        append_text(o, to, "type", "array");
    }
}

static bool is_plain(const struct json *schema)
{
    bool infers = false, typed = json_get(schema, "type") != NULL;
    for (const struct json *c = schema->child; c; c = c->next)
        infers |= is_resolved(c->key) || (!typed && (is_united(c->key) || str_is(c->key, "items")));
    return !infers;
}

/* Everything but a type that is not given. */
static void take_plain(struct chat_out *o, struct json *to, const struct json *schema)
{
    static const char *const choices[] = { "anyOf", "oneOf" };
    if (!is_object(schema) || !to || o->st) return;
    const struct json *ref = json_get(schema, "$ref"), *all = json_get(schema, "allOf");
    const struct json *value = json_get(schema, "const");
    o->schema.n_levels++;
    if (ref) take_ref(o, to, ref, json_get(schema, "type") != NULL);
    for (const struct json *c = all && all->type == JSON_ARRAY ? all->child : NULL; c; c = c->next)
        take_plain(o, to, c);
    for (size_t i = 0; i < 2; i++) {
        const struct json *list = json_get(schema, choices[i]);
        if (list && list->type == JSON_ARRAY) take_options(o, to, list);
    }
    take_keywords(o, to, schema);
    if (value) {
        struct json *one = node(o, JSON_ARRAY);
        append(o, one, (struct str) { NULL, 0 }, value);
        append(o, to, str_of("enum"), one);
    }
    o->schema.n_levels--;
}

const struct json *chat_plain_schema(struct chat_out *o, const struct json *schema)
{
    if (!is_object(schema) || is_plain(schema)) return schema;
    struct json *out = node(o, JSON_OBJECT);
    take_plain(o, out, schema);
    infer_type(o, out);
    return out && !o->st ? out : schema;
}
