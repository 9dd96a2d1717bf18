/* chat_schema.c - tool declarations: JSON Schema in the notation the model was trained on.
 *
 *   declaration:NAME{description:"...",parameters:{properties:{...},required:[...],type:"OBJECT"}}
 *
 * where every quote is <|"|>. Follows the canonical template, except where that leaves a brace
 * open: a missing parameters.type, or a response.type that is not an object, is printed as OBJECT.
 */
#include "text/chat_parts.h"

static void put_quoted(struct chat_out *o, const struct json *j)
{
    chat_put_tag(o, SPECIAL_QUOTE);
    chat_put_python(o, j);
    chat_put_tag(o, SPECIAL_QUOTE);
}

/* str(x).upper(), in ASCII: type names have no other letters. */
static void put_upper(struct chat_out *o, const struct json *j)
{
    struct buf *b = o->text;
    size_t from = b->n;
    chat_put_tag(o, SPECIAL_QUOTE);
    chat_put_python(o, j);
    for (size_t i = from; i < b->n; i++)
        if (b->data[i] >= 'a' && b->data[i] <= 'z') b->data[i] = (char)(b->data[i] - 'a' + 'A');
    chat_put_tag(o, SPECIAL_QUOTE);
}

static void put_object_type(struct chat_out *o)
{
    chat_put_tag(o, SPECIAL_QUOTE);
    buf_puts(o->text, "OBJECT");
    chat_put_tag(o, SPECIAL_QUOTE);
}

static bool type_is(const struct json *schema, const char *lower)
{
    const struct json *type = json_get(schema, "type");
    if (!type || type->type != JSON_STRING || type->text.n != strlen(lower)) return false;
    for (size_t i = 0; i < type->text.n; i++)
        if ((type->text.p[i] | 0x20) != lower[i]) return false;
    return true;
}

static void put_required(struct chat_out *o, const struct json *list)
{
    if (list->type != JSON_ARRAY) {
        chat_fail(o, "\"required\" in a schema must be an array of names");
        return;
    }
    buf_puts(o->text, "required:[");
    for (const struct json *c = list->child; c; c = c->next) {
        put_quoted(o, c);
        if (c->next) buf_putc(o->text, ',');
    }
    buf_putc(o->text, ']');
}

static void put_item_type(struct chat_out *o, const struct json *type)
{
    buf_puts(o->text, "type:");
    if (type->type == JSON_STRING) {
        put_upper(o, type);
    } else if (type->type == JSON_ARRAY) {
        buf_putc(o->text, '[');
        for (const struct json *c = type->child; c; c = c->next) {
            put_upper(o, c);
            if (c->next) buf_putc(o->text, ',');
        }
        buf_putc(o->text, ']');
    } else {
        chat_fail(o, "\"type\" in the items of an array must be a string or an array of strings");
    }
}

static void put_properties(struct chat_out *o, const struct json *props, bool only_unknown);

/* The schema of an array's elements. Only its properties, required and type are understood; all
 * else, nested items too, is printed as a plain value. */
static void put_items(struct chat_out *o, const struct json *items)
{
    struct chat_member *m;
    size_t n_open = o->schema.n_open;
    size_t n = chat_sort_members(o, chat_plain_schema(o, items), &m);
    bool comma = false;
    o->schema.n_levels++;
    buf_puts(o->text, "items:{");
    for (size_t i = 0; i < n; i++) {
        if (m[i].value->type == JSON_NULL) continue;
        if (comma) buf_putc(o->text, ',');
        comma = true;
        if (str_is(m[i].key, "properties")) {
            buf_puts(o->text, "properties:{");
            if (m[i].value->type == JSON_OBJECT) put_properties(o, m[i].value, false);
            buf_putc(o->text, '}');
        } else if (str_is(m[i].key, "required")) {
            put_required(o, m[i].value);
        } else if (str_is(m[i].key, "type")) {
            put_item_type(o, m[i].value);
        } else {
            buf_put_str(o->text, m[i].key);
            buf_putc(o->text, ':');
            bool is_items = str_is(m[i].key, "items");
            chat_put_value(o, is_items ? chat_plain_schema(o, m[i].value) : m[i].value, true);
        }
    }
    buf_putc(o->text, '}');
    o->schema.n_levels--;
    o->schema.n_open = n_open;
}

/* Start a field: a comma unless it is the first. */
static struct chat_out *field(struct chat_out *o, bool *comma)
{
    if (*comma) buf_putc(o->text, ',');
    *comma = true;
    return o;
}

/* Put one property: description, enum or items, nullable, properties, required, type. What is not
 * an object (additionalProperties: false) has no fields but an empty type. The template drops an
 * enum of another type than string. Here such an enum stays if the schema had no type of its own,
 * and if it is a constant, which the template does not know. */
static void put_property(struct chat_out *o, const struct json *schema)
{
    bool comma = false, typed = json_get(schema, "type") && !json_get(schema, "const");
    size_t n_open = o->schema.n_open;
    o->schema.n_levels++;
    const struct json *p = chat_plain_schema(o, schema);
    const struct json *description = json_get(p, "description"), *values = json_get(p, "enum");
    const struct json *items = json_get(p, "items"), *required = json_get(p, "required");
    const struct json *props = json_get(p, "properties");
    if (chat_truthy(description)) {
        buf_puts(field(o, &comma)->text, "description:");
        put_quoted(o, description);
    }
    if ((type_is(p, "string") || !typed) && chat_truthy(values)) {
        buf_puts(field(o, &comma)->text, "enum:");
        chat_put_value(o, values, true);
    }
    if (type_is(p, "array") && items && items->type == JSON_OBJECT && items->n)
        put_items(field(o, &comma), items);
    if (chat_truthy(json_get(p, "nullable"))) buf_puts(field(o, &comma)->text, "nullable:true");
    if (type_is(p, "object")) {
        bool has_map = props && props->type == JSON_OBJECT;
        buf_puts(field(o, &comma)->text, "properties:{");
        put_properties(o, has_map ? props : p, !has_map);
        buf_putc(o->text, '}');
        if (chat_truthy(required)) put_required(field(o, &comma), required);
    }
    buf_puts(field(o, &comma)->text, "type:");
    put_upper(o, json_get(p, "type"));
    o->schema.n_levels--;
    o->schema.n_open = n_open;
}

/* `only_unknown`: an object without a properties map offers its other keywords as properties. */
static void put_properties(struct chat_out *o, const struct json *props, bool only_unknown)
{
    static const char *const known[] = { "description", "type", "properties", "required",
                                         "nullable" };
    struct chat_member *m;
    size_t n = chat_sort_members(o, props, &m);
    bool comma = false;
    for (size_t i = 0; i < n; i++) {
        bool skip = false;
        for (size_t k = 0; only_unknown && k < sizeof known / sizeof known[0]; k++)
            skip |= str_is(m[i].key, known[k]);
        if (skip) continue;
        buf_put_str(field(o, &comma)->text, m[i].key);
        buf_puts(o->text, ":{");
        put_property(o, m[i].value);
        buf_putc(o->text, '}');
    }
}

static void put_parameters(struct chat_out *o, const struct json *schema)
{
    o->schema = (struct chat_schema) { .root = schema };
    const struct json *params = chat_plain_schema(o, schema);
    const struct json *props = json_get(params, "properties");
    const struct json *required = json_get(params, "required"), *type = json_get(params, "type");
    if (params->type != JSON_OBJECT) {
        chat_fail(o, "\"parameters\" of a function must be an object");
        return;
    }
    buf_puts(o->text, ",parameters:{");
    if (chat_truthy(props)) {
        if (props->type != JSON_OBJECT) {
            chat_fail(o, "\"properties\" of the parameters must be an object");
            return;
        }
        buf_puts(o->text, "properties:{");
        put_properties(o, props, false);
        buf_puts(o->text, "},");
    }
    if (chat_truthy(required)) {
        put_required(o, required);
        buf_putc(o->text, ',');
    }
    buf_puts(o->text, "type:");
    if (chat_truthy(type)) put_upper(o, type);
    else put_object_type(o);
    buf_putc(o->text, '}');
}

void chat_put_declaration(struct chat_out *o, const struct json *tool)
{
    const struct json *f = json_get(tool, "function");
    if (!f || f->type != JSON_OBJECT) {
        chat_fail(o, "a tool must be an object with a \"function\" object");
        return;
    }
    buf_puts(o->text, "declaration:");
    chat_put_python(o, json_get(f, "name"));
    buf_puts(o->text, "{description:");
    put_quoted(o, json_get(f, "description"));
    const struct json *params = json_get(f, "parameters"), *response = json_get(f, "response");
    if (chat_truthy(params)) put_parameters(o, params);
    if (response) {
        const struct json *description = json_get(response, "description");
        buf_puts(o->text, ",response:{");
        if (chat_truthy(description)) {
            buf_puts(o->text, "description:");
            put_quoted(o, description);
            buf_putc(o->text, ',');
        }
        buf_puts(o->text, "type:");
        put_object_type(o);
        buf_putc(o->text, '}');
    }
    buf_putc(o->text, '}');
}
