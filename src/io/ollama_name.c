/* ollama_name.c - owns the grammar of model names. A part that passes here is safe as one path
 * component: it starts with a letter, digit or '_' and holds no separator. Knows no files.
 */
#include "io/ollama.h"

#include <stdio.h>

#include "io/quote.h"

static const char default_host[] = "registry.ollama.ai";
static const char default_namespace[] = "library";
static const char default_tag[] = "latest";

static const char *const part_names[OLLAMA_N_PARTS] = { "host", "namespace", "model", "tag" };

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool ollama_part_valid(enum ollama_part part, struct str s)
{
    size_t max = part == OLLAMA_HOST ? OLLAMA_MAX_HOST : OLLAMA_MAX_PART;
    if (s.n < 1 || s.n > max || !is_word(s.p[0])) return false;
    for (size_t i = 1; i < s.n; i++) {
        char c = s.p[i];
        bool ok = is_word(c) || c == '-' || (c == '.' && part != OLLAMA_NAMESPACE) ||
                  (c == ':' && part == OLLAMA_HOST);
        if (!ok) return false;
    }
    return true;
}

static char *part_of(struct ollama_name *n, enum ollama_part part)
{
    switch (part) {
    case OLLAMA_HOST: return n->host;
    case OLLAMA_NAMESPACE: return n->space;
    case OLLAMA_NAME: return n->model;
    default: return n->tag;
    }
}

const char *ollama_name_part(const struct ollama_name *n, enum ollama_part part)
{
    switch (part) {
    case OLLAMA_HOST: return n->host;
    case OLLAMA_NAMESPACE: return n->space;
    case OLLAMA_NAME: return n->model;
    default: return n->tag;
    }
}

bool ollama_name_set(struct ollama_name *n, enum ollama_part part, struct str s)
{
    if (!ollama_part_valid(part, s)) return false;
    char *to = part_of(n, part);
    memcpy(to, s.p, s.n);
    to[s.n] = 0;
    return true;
}

/* Cut s at the last `sep`: *tail is what follows it. False, and nothing changed, without one. */
static bool cut_last(struct str *s, char sep, struct str *tail)
{
    for (size_t i = s->n; i-- > 0;) {
        if (s->p[i] != sep) continue;
        *tail = (struct str) { s->p + i + 1, s->n - i - 1 };
        s->n = i;
        return true;
    }
    return false;
}

static struct str drop_scheme(struct str s)
{
    for (size_t i = 0; i + 3 <= s.n; i++)
        if (memcmp(s.p + i, "://", 3) == 0) return (struct str) { s.p + i + 3, s.n - i - 3 };
    return s;
}

static enum bz_status refuse(struct str text, enum ollama_part part, struct str s,
                             struct bz_err *err)
{
    return fail(err, BZ_ERR_ARGUMENT,
                "\"%s\" is not a model name: \"%s\" cannot be a %s (1 to %d letters, digits, '_'%s "
                "and '-', starting with one of the first three)",
                quote(text).z, quote(s).z, part_names[part],
                part == OLLAMA_HOST ? OLLAMA_MAX_HOST : OLLAMA_MAX_PART,
                part == OLLAMA_HOST        ? ", '.', ':'"
                : part == OLLAMA_NAMESPACE ? ""
                                           : ", '.'");
}

/* A ':' after the last '/' starts the tag; before that, the last piece is the model, the one before
 * it the namespace, and all that remains the host. A separator promises a part: "a/:" has no
 * defaults to fall back on. */
enum bz_status ollama_parse_name(struct ollama_name *out, struct str text, struct bz_err *err)
{
    struct str part[OLLAMA_N_PARTS] = {
        str_of(default_host), str_of(default_namespace), { NULL, 0 }, str_of(default_tag)
    };
    struct str rest = text, before = text, tag;
    if (cut_last(&before, ':', &tag) && !memchr(tag.p, '/', tag.n)) {
        part[OLLAMA_TAG] = tag;
        rest = before;
    }
    if (!cut_last(&rest, '/', &part[OLLAMA_NAME])) {
        part[OLLAMA_NAME] = rest;
    } else if (!cut_last(&rest, '/', &part[OLLAMA_NAMESPACE])) {
        part[OLLAMA_NAMESPACE] = rest;
    } else {
        part[OLLAMA_HOST] = drop_scheme(rest);
    }
    struct ollama_name n = { 0 };
    for (int i = 0; i < OLLAMA_N_PARTS; i++)
        if (!ollama_name_set(&n, (enum ollama_part)i, part[i]))
            return refuse(text, (enum ollama_part)i, part[i], err);
    *out = n;
    return BZ_OK;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool ollama_text_same(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) a++, b++;
    return lower(*a) == lower(*b);
}

void ollama_short_name(const struct ollama_name *n, char out[OLLAMA_MAX_NAME])
{
    if (!ollama_text_same(n->host, default_host))
        snprintf(out, OLLAMA_MAX_NAME, "%s/%s/%s:%s", n->host, n->space, n->model, n->tag);
    else if (!ollama_text_same(n->space, default_namespace))
        snprintf(out, OLLAMA_MAX_NAME, "%s/%s:%s", n->space, n->model, n->tag);
    else snprintf(out, OLLAMA_MAX_NAME, "%s:%s", n->model, n->tag);
}
