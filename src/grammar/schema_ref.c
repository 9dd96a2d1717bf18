/* schema_ref.c - what $ref leads to: addresses, JSON pointers and anchors, inside one document. */
#include "grammar/schema.h"

/* ---- addresses ---- */

static size_t scheme_length(struct str s)
{
    size_t i = 0;
    while (i < s.n && ((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z')) i++;
    while (i < s.n && i > 0 && strchr("0123456789+-.abcdefghijklmnopqrstuvwxyz", s.p[i] | 0x20))
        i++;
    return i > 0 && i < s.n && s.p[i] == ':' ? i + 1 : 0;
}

static struct str without_fragment(struct str s)
{
    const char *hash = s.n ? memchr(s.p, '#', s.n) : NULL;
    return hash ? (struct str) { s.p, (size_t)(hash - s.p) } : s;
}

/* Where the path begins: behind the scheme and the host. */
static size_t path_start(struct str s)
{
    size_t i = scheme_length(s);
    if (s.n - i >= 2 && s.p[i] == '/' && s.p[i + 1] == '/')
        for (i += 2; i < s.n && s.p[i] != '/';) i++;
    return i;
}

/* Take out "." and "..". */
static void tidy_path(struct buf *b, size_t from)
{
    size_t to = from;
    for (size_t i = from; i < b->n;) {
        size_t end = i + 1;
        while (end < b->n && b->data[end] != '/') end++;
        struct str part = { b->data + i, end - i };
        if (str_is(part, "/..")) {
            while (to > from && b->data[--to] != '/') {
            }
            if (end == b->n) b->data[to++] = '/';
        } else if (str_is(part, "/.")) {
            if (end == b->n) b->data[to++] = '/';
        } else {
            memmove(b->data + to, part.p, part.n);
            to += part.n;
        }
        i = end;
    }
    b->n = to;
}

/* An address relative to another one, both without fragments. */
static struct str resolve(struct grammar *g, struct str base, struct str ref)
{
    struct buf b = { 0 };
    if (ref.n == 0) return base;
    size_t start = path_start(base);
    if (scheme_length(ref)) {
        buf_put_str(&b, ref);
    } else if (str_starts(ref, "//")) {
        buf_put(&b, base.p, scheme_length(base));
        buf_put_str(&b, ref);
    } else {
        size_t end = base.n;
        while (ref.p[0] != '/' && end > start && base.p[end - 1] != '/') end--;
        buf_put(&b, base.p, ref.p[0] == '/' ? start : end);
        buf_put_str(&b, ref);
        if (!b.failed) tidy_path(&b, start < b.n ? start : b.n);
    }
    char *copy = b.failed ? NULL : arena_copy_str(&g->set.arena, b.data, b.n);
    struct str out = { copy ? copy : "", copy ? b.n : 0 };
    if (!copy) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    buf_free(&b);
    return out;
}

/* ---- resources ---- */

static enum draft_number draft_of(const struct json *j, enum draft_number otherwise)
{
    struct str uri = json_get_str(j, "$schema");
    static const struct {
        const char *part;
        enum draft_number draft;
    } known[] = { { "draft-04", DRAFT_4 },  { "draft-03", DRAFT_4 }, { "draft-05", DRAFT_4 },
                  { "draft-06", DRAFT_6 },  { "draft-07", DRAFT_7 }, { "2019-09", DRAFT_2019 },
                  { "2020-12", DRAFT_2020 } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (size_t at = 0; at + strlen(known[i].part) <= uri.n; at++)
            if (str_starts((struct str) { uri.p + at, uri.n - at }, known[i].part))
                return known[i].draft;
    return otherwise;
}

static struct str id_of(const struct json *j, enum draft_number draft)
{
    struct str id = json_get_str(j, draft == DRAFT_4 ? "id" : "$id");
    if (draft <= DRAFT_7 && json_get(j, "$ref")) return (struct str) { "", 0 };
    return without_fragment(id);
}

static void add_resource(struct grammar *g, const struct json *j, struct str uri,
                         enum draft_number draft)
{
    struct schema_set *set = &g->set;
    if (set->n_resources == set->resources_cap) {
        uint32_t cap = set->resources_cap ? 2 * set->resources_cap : 4;
        struct resource *p = mem_grow(set->resources, cap, sizeof *p);
        if (!p) {
            store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
            return;
        }
        set->resources = p;
        set->resources_cap = cap;
    }
    set->resources[set->n_resources++] = (struct resource) { j, uri, draft, set->document };
}

/* Everything under j that has an address of its own. What a document only quotes is no schema. */
static void find_resources(struct grammar *g, const struct json *j, uint32_t inside)
{
    static const char *const quoted[] = { "enum", "const", "default", "examples" };
    struct resource r = g->set.resources[inside];
    struct str id = j->type == JSON_OBJECT ? id_of(j, r.draft) : (struct str) { "", 0 };
    if (id.n && j != r.json) {
        inside = g->set.n_resources;
        add_resource(g, j, resolve(g, r.uri, id), draft_of(j, r.draft));
    }
    for (const struct json *c = j->child; c && !g->s.status; c = c->next) {
        bool skip = c->type != JSON_OBJECT && c->type != JSON_ARRAY;
        for (size_t i = 0; j->type == JSON_OBJECT && i < sizeof quoted / sizeof *quoted; i++)
            skip |= str_is(c->key, quoted[i]);
        if (!skip) find_resources(g, c, inside);
    }
}

void schema_find_resources(struct grammar *g, const struct json *root, struct bz_err *err)
{
    enum draft_number draft = draft_of(root, DRAFT_2020);
    struct str id = root->type == JSON_OBJECT ? id_of(root, draft) : (struct str) { "", 0 };
    g->set.document = g->set.n_resources;
    add_resource(g, root, id, draft);
    if (!g->s.status) find_resources(g, root, g->set.document);
    if (g->s.status && err) *err = g->s.err;
}

/* ---- pointers and anchors ---- */

static uint32_t resource_at(const struct grammar *g, const struct json *j, uint32_t otherwise)
{
    for (uint32_t i = 0; i < g->set.n_resources; i++)
        if (g->set.resources[i].json == j) return i;
    return otherwise;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One part of a pointer: "~1" is '/', "~0" is '~', "%XX" a byte. */
static struct str unescape(struct grammar *g, struct str s)
{
    char *out = arena_copy_str(&g->set.arena, s.p, s.n);
    size_t n = 0;
    if (!out) return (struct str) { "", 0 };
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%' && i + 2 < s.n && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0) {
            c = (char)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2]));
            i += 2;
        } else if (c == '~' && i + 1 < s.n) {
            c = s.p[++i] == '1' ? '/' : '~';
        }
        out[n++] = c;
    }
    return (struct str) { out, n };
}

static const struct json *member(const struct json *j, struct str part)
{
    const struct json *found = NULL;
    size_t index = 0, i = 0;
    if (j->type == JSON_ARRAY) {
        for (; i < part.n && part.p[i] >= '0' && part.p[i] <= '9' && index < 1u << 24; i++)
            index = 10 * index + (size_t)(part.p[i] - '0');
        return part.n && i == part.n ? json_at(j, index) : NULL;
    }
    for (const struct json *c = j->type == JSON_OBJECT ? j->child : NULL; c; c = c->next)
        if (str_eq(c->key, part)) found = c;
    return found;
}

static const struct json *follow(struct grammar *g, const struct json *j, struct str pointer,
                                 uint32_t *resource)
{
    for (size_t i = 0; j && i < pointer.n;) {
        size_t end = i + 1;
        if (pointer.p[i] != '/') return NULL;
        while (end < pointer.n && pointer.p[end] != '/') end++;
        j = member(j, unescape(g, (struct str) { pointer.p + i + 1, end - i - 1 }));
        if (j) *resource = resource_at(g, j, *resource);
        i = end;
    }
    return j;
}

/* The schema of a resource that is called `name`. */
static const struct json *find_anchor(struct grammar *g, const struct json *j, struct str name,
                                      enum draft_number draft)
{
    struct str id = json_get_str(j, draft == DRAFT_4 ? "id" : "$id");
    if (draft <= DRAFT_7 && id.n == name.n + 1 && id.p[0] == '#' &&
        memcmp(id.p + 1, name.p, name.n) == 0)
        return j;
    if (draft >= DRAFT_2019 && (str_eq(json_get_str(j, "$anchor"), name) ||
                                str_eq(json_get_str(j, "$dynamicAnchor"), name)))
        return j;
    for (const struct json *c = j->child; c; c = c->next) {
        if (c->type != JSON_OBJECT && c->type != JSON_ARRAY) continue;
        if (resource_at(g, c, UINT32_MAX) != UINT32_MAX) continue; /* has anchors of its own */
        const struct json *found = find_anchor(g, c, name, draft);
        if (found) return found;
    }
    return NULL;
}

node reader_ref(struct reader *r, struct str ref)
{
    struct grammar *g = r->g;
    struct str address = without_fragment(ref), fragment = { ref.p + address.n, 0 };
    uint32_t to = r->resource;
    const struct json *j = NULL;
    if (ref.n > address.n) fragment = (struct str) { ref.p + address.n + 1, ref.n - address.n - 1 };
    if (address.n) {
        struct str uri = resolve(g, g->set.resources[to].uri, address);
        uint32_t document = g->set.resources[to].document;
        for (to = document; to < g->set.n_resources; to++)
            if (g->set.resources[to].document == document && str_eq(g->set.resources[to].uri, uri))
                break;
    }
    if (to < g->set.n_resources) {
        const struct resource *in = &g->set.resources[to];
        if (fragment.n == 0 || fragment.p[0] == '/') j = follow(g, in->json, fragment, &to);
        else j = find_anchor(g, in->json, unescape(g, fragment), in->draft);
    }
    if (!j) {
        enum bz_status before = g->s.status;
        reader_fail(r, "$ref", "\"%.*s\" leads to nothing in this document",
                    (int)(ref.n > 150 ? 150 : ref.n), ref.p);
        reader_leaves_out(r, "$ref", before);
        return f_true(g);
    }
    struct reader at = { g, j, to, g->set.resources[to].draft };
    return reader_sub(&at, j);
}
