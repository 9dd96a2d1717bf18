/* wgsl.c - the preprocessor of kernels/: directives to lines, then the declarations that main
 * needs.
 *
 * block() expands lines into x->text. split() finds the declarations there, keep() follows names
 * from main on, and copy() writes what was kept. Failures are sticky (x->status).
 */
#include "gpu/wgsl.h"

#include "base/mem.h"

enum { MAX_VARIABLES = 16, MAX_SUFFIXES = 8, MAX_DEPTH = 16 };

enum directive { AXIS, WITHOUT, IF, ELIF, ELSE, END, FOR, INCLUDE, BIND, N_DIRECTIVES };

/* An axis or the word of a loop. */
struct variable {
    struct str name, value;
};

/* Where a line of the expanded text comes from. */
struct origin {
    struct wgsl_place place;
    uint32_t suffix; /* of the include that it came by; 0: none */
};

struct declaration {
    struct str text, name; /* name: without the suffix; empty: it declares none */
    uint32_t line;         /* of the expanded text */
    uint32_t suffix;
    bool kept;
};

/* A file that is being read. */
struct reader {
    const char *next; /* line */
    uint32_t file, line, suffix;
    struct str rest; /* of a directive, behind its word */
};

struct expander {
    const struct wgsl_files *from;
    struct wgsl *out;
    struct variable vars[MAX_VARIABLES];
    struct str suffixes[MAX_SUFFIXES]; /* from 1 on */
    uint32_t n_vars, n_suffixes, depth, nested;
    uint32_t entry, axes; /* axes: of those still to be declared */
    bool named;           /* the name has a value */
    uint8_t *seen;        /* a bit of each file for each suffix */
    struct buf text, line;
    struct origin *origins;
    struct declaration *decls;
    uint32_t n_origins, cap_origins, n_decls, cap_decls;
    uint32_t *slots, n_slots; /* hash table: a declaration's number + 1 */
    enum bz_status status;
    struct bz_err *err;
};

static const struct str nothing = { "", 0 };

static void bad(struct expander *x, const struct reader *r, const char *what, struct str word)
{
    if (x->status) return;
    x->status = fail(x->err, BZ_ERR_FORMAT, "%s:%u: %s%s%.*s", x->from->files[r->file].path,
                     r->line, what, word.n ? ": " : "", STR_ARG(word));
}

static void bad_place(struct expander *x, uint32_t line, const char *what, struct str word)
{
    const struct wgsl_place *p = &x->origins[line].place;
    bad(x, &(struct reader) { .file = p->file, .line = p->line }, what, word);
}

/* Room for one more; false when memory is short. */
static bool grow(struct expander *x, void *list, uint32_t n, uint32_t *cap, size_t size)
{
    if (x->status || n < *cap) return !x->status;
    uint32_t wanted = *cap ? 2 * *cap : 256;
    void *p = mem_grow(*(void **)list, wanted, size);
    if (!p) {
        x->status = fail_memory(x->err, wanted * size);
        return false;
    }
    *(void **)list = p;
    *cap = wanted;
    return true;
}

/* ---- words ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip(struct str *s, size_t n)
{
    s->p += n;
    s->n -= n;
    while (s->n && *s->p == ' ') s->p++, s->n--;
}

/* The next word of *s, which goes on behind it; empty: something else comes, or nothing. */
static struct str take_word(struct str *s)
{
    struct str w = { s->p, 0 };
    while (w.n < s->n && is_word(w.p[w.n])) w.n++;
    skip(s, w.n);
    return w;
}

/* The same up to the next space. */
static struct str take_part(struct str *s)
{
    const char *space = s->n ? memchr(s->p, ' ', s->n) : NULL;
    struct str w = { s->p, space ? (size_t)(space - s->p) : s->n };
    skip(s, w.n);
    return w;
}

static bool take(struct str *s, const char *what)
{
    bool is = str_starts(*s, what);
    if (is) skip(s, strlen(what));
    return is;
}

/* The next name in a text that could be a declaration's: no number and no member. False: none. */
static bool next_name(struct str *s, struct str *name)
{
    char before = 0;
    for (size_t i = 0; i < s->n;) {
        char c = s->p[i];
        size_t to = i + 1;
        if (is_word(c))
            while (to < s->n && (is_word(s->p[to]) || (is_digit(c) && s->p[to] == '.'))) to++;
        if (is_word(c) && !is_digit(c) && before != '.') {
            *name = (struct str) { s->p + i, to - i };
            *s = (struct str) { s->p + to, s->n - to };
            return true;
        }
        before = c;
        i = to;
    }
    return false;
}

/* ---- axes and conditions ---- */

static struct str *find_var(struct expander *x, struct str name)
{
    for (uint32_t i = 0; i < x->n_vars; i++)
        if (str_eq(x->vars[i].name, name)) return &x->vars[i].value;
    return NULL;
}

static void add_var(struct expander *x, const struct reader *r, struct str name, struct str value)
{
    if (!name.n || find_var(x, name)) bad(x, r, "not a new name", name);
    else if (x->n_vars == MAX_VARIABLES) bad(x, r, "too many axes and loops", name);
    else x->vars[x->n_vars++] = (struct variable) { name, value };
}

static void axis(struct expander *x, struct reader *r)
{
    struct str name = take_word(&r->rest), values = r->rest, word, value = { 0 };
    uint32_t n = 0, bits = 0;
    while ((word = take_part(&values)).n) n++;
    while (1u << bits < n) bits++;
    uint32_t chosen = x->axes & ((1u << bits) - 1);
    x->axes >>= bits;
    for (uint32_t i = 0; i <= chosen && i < n; i++) value = take_part(&r->rest);
    if (r->file != x->entry || x->nested > 1) bad(x, r, "an axis stands in an entry file", name);
    else if (chosen >= n) bad(x, r, "no value of this axis has the number", name);
    add_var(x, r, name, value);
    if (!chosen) return;
    buf_putc(&x->out->name, x->named ? ' ' : '[');
    buf_put_str(&x->out->name, value);
    x->named = true;
}

static bool either(struct expander *x, struct reader *r);

/* NAME == v, NAME != v, NAME in v1 v2, !test, (E) */
static bool test(struct expander *x, struct reader *r)
{
    if (take(&r->rest, "(")) {
        bool is = either(x, r);
        if (!take(&r->rest, ")")) bad(x, r, "a ) is missing", r->rest);
        return is;
    }
    if (take(&r->rest, "!")) return !test(x, r);
    struct str name = take_word(&r->rest), value, *var = find_var(x, name);
    if (!var) bad(x, r, "no axis and no loop has the name", name.n ? name : r->rest);
    bool equal = take(&r->rest, "=="), other = !equal && take(&r->rest, "!="), is = false;
    if (!equal && !other && !str_is(take_word(&r->rest), "in")) bad(x, r, "not a test of", name);
    value = take_word(&r->rest);
    if (!value.n) bad(x, r, "no value to compare with", name);
    while (value.n && !x->status) {
        is = is || str_eq(*var, value);
        value = equal || other ? (struct str) { 0 } : take_word(&r->rest);
    }
    return is != other;
}

static bool both(struct expander *x, struct reader *r)
{
    bool is = test(x, r);
    while (!x->status && take(&r->rest, "&&")) is = test(x, r) && is;
    return is;
}

static bool either(struct expander *x, struct reader *r)
{
    bool is = both(x, r);
    while (!x->status && take(&r->rest, "||")) is = both(x, r) || is;
    return is;
}

static bool holds(struct expander *x, struct reader *r)
{
    bool is = either(x, r);
    if (r->rest.n) bad(x, r, "not understood", r->rest);
    return is;
}

/* ---- lines ---- */

/* A line with values in place of $NAME. */
static void put_values(struct expander *x, struct reader *r, struct str s, struct buf *to)
{
    const char *dollar;
    while (s.n && (dollar = memchr(s.p, '$', s.n))) {
        size_t n = (size_t)(dollar - s.p);
        buf_put(to, s.p, n);
        s = (struct str) { dollar + 1, s.n - n - 1 };
        struct str name = { s.p, 0 }, *var;
        while (name.n < s.n && is_word(name.p[name.n])) name.n++;
        if (!(var = find_var(x, name))) bad(x, r, "no axis and no loop has the name", name);
        else buf_put_str(to, *var);
        s = (struct str) { s.p + name.n, s.n - name.n };
    }
    buf_put_str(to, s);
}

static void emit(struct expander *x, struct reader *r, struct str line)
{
    if (!line.n || !grow(x, &x->origins, x->n_origins, &x->cap_origins, sizeof *x->origins)) return;
    x->origins[x->n_origins++] =
        (struct origin) { { (uint16_t)r->file, (uint16_t)r->line }, r->suffix };
    put_values(x, r, line, &x->text);
    buf_putc(&x->text, '\n');
}

static bool next_line(struct reader *r, struct str *line)
{
    if (!*r->next) return false;
    const char *end = strchr(r->next, '\n');
    *line = (struct str) { r->next, end ? (size_t)(end - r->next) : strlen(r->next) };
    r->next += line->n + (end ? 1 : 0);
    r->line++;
    return true;
}

static enum directive directive(struct expander *x, struct reader *r, struct str line)
{
    static const char *const words[] = { "axis", "without", "if",      "elif", "else",
                                         "end",  "for",     "include", "bind" };
    r->rest = (struct str) { line.p + 3, line.n - 3 };
    struct str word = take_word(&r->rest);
    for (int i = 0; i < N_DIRECTIVES; i++)
        if (str_is(word, words[i])) return (enum directive)i;
    bad(x, r, "no such directive", word);
    return N_DIRECTIVES;
}

static enum directive block(struct expander *x, struct reader *r, bool idle);

static void branches(struct expander *x, struct reader *r, bool idle)
{
    const struct reader start = *r;
    bool done = idle, last = false;
    enum directive d = IF;
    while (!last && (d == IF || d == ELIF || d == ELSE)) {
        last = d == ELSE;
        bool now = !done && (last || holds(x, r));
        done = done || now;
        d = block(x, r, !now);
    }
    if (d != END) bad(x, &start, "no //!end ends this", nothing);
}

static void loop(struct expander *x, struct reader *r, bool idle)
{
    struct str name = take_word(&r->rest), in = take_word(&r->rest), words = r->rest;
    const struct reader start = *r;
    struct str word = take_part(&words);
    if (!name.n || !str_is(in, "in") || !word.n) bad(x, r, "it reads: //!for I in a b c", name);
    if (!idle) add_var(x, r, name, word);
    for (; word.n && !x->status; word = take_part(&words)) {
        *r = start;
        if (!idle) x->vars[x->n_vars - 1].value = word;
        if (block(x, r, idle) != END) bad(x, &start, "no //!end ends this", nothing);
    }
    if (!idle && !x->status) x->n_vars--;
}

/* The number of a suffix. */
static uint32_t suffix_of(struct expander *x, struct reader *r, struct str suffix)
{
    for (uint32_t i = 1; i <= x->n_suffixes; i++)
        if (str_eq(x->suffixes[i], suffix)) return i;
    if (x->n_suffixes + 1 == MAX_SUFFIXES) {
        bad(x, r, "too many suffixes", suffix);
        return 0;
    }
    x->suffixes[++x->n_suffixes] = suffix;
    return x->n_suffixes;
}

static void include(struct expander *x, struct reader *r)
{
    struct str path = take_part(&r->rest), as = take_word(&r->rest), suffix = take_word(&r->rest);
    if ((as.n && !(str_is(as, "as") && suffix.n)) || r->rest.n)
        bad(x, r, "it reads: //!include path [as suffix]", nothing);
    x->line.n = 0;
    put_values(x, r, path, &x->line);
    uint32_t file = wgsl_find(x->from, buf_str(&x->line));
    if (x->line.failed || file == x->from->n) bad(x, r, "there is no file", buf_str(&x->line));
    if (x->depth == MAX_DEPTH) bad(x, r, "files include each other too deeply", path);
    struct reader sub = { .file = file, .suffix = suffix.n ? suffix_of(x, r, suffix) : r->suffix };
    if (x->status || x->seen[file] >> sub.suffix & 1) return;
    x->seen[file] |= (uint8_t)(1u << sub.suffix);
    sub.next = x->from->files[file].text;
    x->depth++;
    if (block(x, &sub, false) != N_DIRECTIVES) bad(x, &sub, "it ends nothing", nothing);
    x->depth--;
}

static void bind(struct expander *x, struct reader *r)
{
    struct str name = take_part(&r->rest), mode = take_word(&r->rest);
    bool update = str_is(mode, "update");
    if (!name.n || !r->rest.n || (!update && !str_is(mode, "read")))
        bad(x, r, "it reads: //!bind name read type, or update", name);
    x->line.n = 0;
    buf_printf(&x->line, "var<storage,%s> %.*s:%.*s;", update ? "read_write" : "read",
               STR_ARG(name), STR_ARG(r->rest));
    if (!x->line.failed) emit(x, r, buf_str(&x->line));
}

/* Expand what follows up to the directive that ends it; N_DIRECTIVES: the file's end does.
 * idle: only look for that. */
static enum directive block(struct expander *x, struct reader *r, bool idle)
{
    struct str line;
    enum directive d = N_DIRECTIVES;
    x->nested++;
    while (!x->status && next_line(r, &line)) {
        bool text = !str_starts(line, "//!");
        if (!text) d = directive(x, r, line);
        if (text && !idle) emit(x, r, line);
        else if (d == ELIF || d == ELSE || d == END) break;
        else if (d == IF) branches(x, r, idle);
        else if (d == FOR) loop(x, r, idle);
        else if (d == INCLUDE && !idle) include(x, r);
        else if (d == BIND && !idle) bind(x, r);
        else if (d == AXIS && !idle) axis(x, r);
        else if (d == WITHOUT && !idle && holds(x, r) && !x->status)
            x->status = fail(x->err, BZ_ERR_NOT_FOUND, "%s:%u: there is no such variant",
                             x->from->files[r->file].path, r->line);
        d = N_DIRECTIVES;
    }
    x->nested--;
    return d;
}

/* ---- declarations ---- */

/* What a declaration declares; empty: nothing, as `enable f16;`. */
static struct str declared(struct str text)
{
    static const char *const kinds[] = { "fn", "struct", "alias", "const", "override", "var" };
    struct str word;
    while (next_name(&text, &word)) {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            if (!str_is(word, kinds[i])) continue;
            const char *space = text.n && *text.p == '<' ? memchr(text.p, '>', text.n) : NULL;
            if (space) text = (struct str) { space, text.n - (size_t)(space - text.p) };
            return next_name(&text, &word) ? word : (struct str) { 0 };
        }
    }
    return (struct str) { 0 };
}

/* Need others not name it? Bindings, overrides and entry points. */
static bool is_root(const struct declaration *d)
{
    return !d->name.n || str_is(d->name, "main") || str_starts(d->text, "@") ||
           str_starts(d->text, "var<storage") || str_starts(d->text, "override");
}

static uint32_t hash_on(uint32_t hash, struct str s)
{
    for (size_t i = 0; i < s.n; i++) hash = (hash ^ (uint8_t)s.p[i]) * 16777619u;
    return hash;
}

/* Is this the name of a declaration, its suffix included? */
static bool has_name(const struct expander *x, const struct declaration *d, struct str name,
                     struct str suffix)
{
    struct str own = d->suffix ? x->suffixes[d->suffix] : (struct str) { 0 };
    if (!suffix.n == !own.n) return str_eq(name, d->name) && str_eq(suffix, own);
    return own.n && name.n == d->name.n + 1 + own.n && name.p[d->name.n] == '_' &&
           memcmp(name.p, d->name.p, d->name.n) == 0 &&
           memcmp(name.p + d->name.n + 1, own.p, own.n) == 0;
}

/* The slot of a name with a suffix (0: none): a declaration's, or the empty one where it would be.
 */
static uint32_t *slot_of(const struct expander *x, struct str name, uint32_t suffix)
{
    struct str end = suffix ? x->suffixes[suffix] : (struct str) { 0 };
    uint32_t hash = hash_on(2166136261u, name);
    if (suffix) hash = hash_on(hash_on(hash, str_of("_")), end);
    uint32_t at = hash & (x->n_slots - 1);
    while (x->slots[at] && !has_name(x, &x->decls[x->slots[at] - 1], name, end))
        at = (at + 1) & (x->n_slots - 1);
    return &x->slots[at];
}

/* Split the text into the declarations at its outermost level. */
static void split(struct expander *x)
{
    struct str from = { x->text.data, 0 };
    uint32_t depth = 0, line = 0, first = 0;
    for (const char *p = from.p, *end = p + x->text.n; p < end; p++) {
        if (*p == '\n') line++;
        if (from.p == p && (*p == '\n' || *p == ' ' || *p == ';')) {
            from.p++;
            continue;
        }
        if (from.p == p) first = line;
        if (*p == '{') depth++;
        if (*p == '}' && depth) depth--;
        if (depth || (*p != ';' && *p != '}')) continue;
        if (!grow(x, &x->decls, x->n_decls, &x->cap_decls, sizeof *x->decls)) return;
        from.n = (size_t)(p + 1 - from.p);
        x->decls[x->n_decls++] = (struct declaration) {
            .text = from, .name = declared(from), .line = first, .suffix = x->origins[first].suffix
        };
        from.p = p + 1;
    }
    if (from.p < x->text.data + x->text.n) bad_place(x, first, "this does not end", nothing);
}

/* Find each name's declaration, and mark those that main needs. */
static void keep(struct expander *x)
{
    for (x->n_slots = 64; x->n_slots < 2 * x->n_decls;) x->n_slots *= 2;
    x->slots = mem_alloc(x->n_slots + x->n_decls, sizeof *x->slots);
    if (!x->slots) {
        x->status = fail_memory(x->err, x->n_slots * sizeof *x->slots);
        return;
    }
    uint32_t *stack = x->slots + x->n_slots, n = 0;
    for (uint32_t i = 0; i < x->n_decls; i++) {
        struct declaration *d = &x->decls[i];
        d->kept = is_root(d);
        if (d->kept) stack[n++] = i;
        if (!d->name.n) continue;
        uint32_t *slot = slot_of(x, d->name, d->suffix);
        if (*slot) bad_place(x, d->line, "declared twice", d->name);
        *slot = i + 1;
    }
    while (n && !x->status) {
        const struct declaration *d = &x->decls[stack[--n]];
        struct str text = d->text, name;
        while (next_name(&text, &name)) {
            uint32_t at = d->suffix ? *slot_of(x, name, d->suffix) : 0;
            if (!at) at = *slot_of(x, name, 0);
            if (!at || x->decls[at - 1].kept) continue;
            x->decls[at - 1].kept = true;
            stack[n++] = at - 1;
        }
    }
}

/* A declaration with its suffix at the names that have it, and where its lines come from. */
static void put_declaration(struct expander *x, const struct declaration *d)
{
    struct wgsl *out = x->out;
    struct str rest = d->text, name;
    const char *from = rest.p, *end = rest.p + rest.n;
    while (d->suffix && next_name(&rest, &name)) {
        if (!*slot_of(x, name, d->suffix)) continue;
        buf_put(&out->text, from, (size_t)(name.p + name.n - from));
        buf_putc(&out->text, '_');
        buf_put_str(&out->text, x->suffixes[d->suffix]);
        from = name.p + name.n;
    }
    buf_put(&out->text, from, (size_t)(end - from));
    buf_putc(&out->text, '\n');
    from = d->text.p;
    for (uint32_t line = d->line; from; line++) {
        out->places[out->n_places++] = x->origins[line].place;
        from = memchr(from, '\n', (size_t)(end - from));
        if (from) from++;
    }
}

/* Write what is kept, `enable` first, with numbers for the buffers. */
static void copy(struct expander *x)
{
    struct wgsl *out = x->out;
    uint32_t n_bindings = 0;
    for (uint32_t i = 0; i < x->n_decls; i++)
        if (str_starts(x->decls[i].text, "@group") && n_bindings < 2)
            out->bindings[n_bindings++] = 'u';
    out->places = mem_alloc(x->n_origins + x->n_decls, sizeof *out->places);
    if (!out->places) x->status = fail_memory(x->err, x->n_origins * sizeof *out->places);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; !x->status && i < x->n_decls; i++) {
            const struct declaration *d = &x->decls[i];
            if (!d->kept || str_starts(d->text, "enable") != !pass) continue;
            if (str_starts(d->text, "var<storage")) {
                if (n_bindings == WGSL_MAX_BINDINGS) {
                    bad_place(x, d->line, "too many bindings", d->name);
                    return;
                }
                buf_printf(&out->text, "@group(0) @binding(%u) ", n_bindings);
                out->bindings[n_bindings++] = str_starts(d->text, "var<storage,read>") ? 'r' : 'w';
            }
            put_declaration(x, d);
        }
}

/* ---- the whole ---- */

static void expand(struct expander *x)
{
    const struct wgsl_file *f = &x->from->files[x->entry];
    const char *slash = strrchr(f->path, '/'), *base = slash ? slash + 1 : f->path;
    struct reader r = { .file = x->entry, .next = f->text };
    buf_put(&x->out->name, base, strlen(base) - strlen(".wgsl"));
    x->seen = mem_alloc(x->from->n, 1);
    if (!x->seen) x->status = fail_memory(x->err, x->from->n);
    if (block(x, &r, false) != N_DIRECTIVES) bad(x, &r, "it ends nothing", nothing);
    if (x->axes) bad(x, &r, "there are no axes for the number", nothing);
    if (x->named) buf_putc(&x->out->name, ']');
    if (!x->status && (x->text.failed || x->line.failed))
        x->status = fail_memory(x->err, x->text.n);
    if (!x->status) split(x);
    if (!x->status) keep(x);
    if (!x->status) copy(x);
    if (!x->status && (x->out->text.failed || x->out->name.failed))
        x->status = fail_memory(x->err, x->out->text.n);
}

enum bz_status wgsl_expand(struct wgsl *out, const struct wgsl_files *from, uint32_t entry,
                           uint32_t axes, struct bz_err *err)
{
    struct expander x = { .from = from, .out = out, .entry = entry, .axes = axes, .err = err };
    *out = (struct wgsl) { 0 };
    expand(&x);
    buf_free(&x.text);
    buf_free(&x.line);
    mem_free(x.seen);
    mem_free(x.origins);
    mem_free(x.decls);
    mem_free(x.slots);
    return x.status;
}

void wgsl_free(struct wgsl *w)
{
    buf_free(&w->name);
    buf_free(&w->text);
    mem_free(w->places);
    *w = (struct wgsl) { 0 };
}

uint32_t wgsl_find(const struct wgsl_files *from, struct str path)
{
    uint32_t low = 0, high = from->n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        const char *p = from->files[mid].path;
        int order = strncmp(p, path.p, path.n);
        if (order == 0 && !p[path.n]) return mid;
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    return from->n;
}
