/* ollama_manifest.c - owns the meaning of Ollama's JSON: manifest, config, params, messages. Text
 * in, structures out; knows no files. Members that Bezel has no use for are ignored, members that
 * have the wrong type are an error that names them.
 */
#include "io/ollama.h"

#include "base/json.h"

static const struct {
    const char *suffix; /* after "application/vnd.ollama.image." */
    enum ollama_kind kind;
} media_types[] = {
    { "model", OLLAMA_LAYER_MODEL },       { "projector", OLLAMA_LAYER_PROJECTOR },
    { "adapter", OLLAMA_LAYER_ADAPTER },   { "draft", OLLAMA_LAYER_DRAFT },
    { "template", OLLAMA_LAYER_TEMPLATE }, { "prompt", OLLAMA_LAYER_TEMPLATE }, /* its old name */
    { "system", OLLAMA_LAYER_SYSTEM },     { "params", OLLAMA_LAYER_PARAMS },
    { "messages", OLLAMA_LAYER_MESSAGES }, { "license", OLLAMA_LAYER_LICENSE },
};

/* Layers of the kinds above, split models included. A search for the layers of one kind walks past
 * all others, so their number has a limit. */
enum { MAX_KEPT = 1000 };

static const char media_prefix[] = "application/vnd.ollama.image.";

static struct str media_suffix(struct str media)
{
    size_t n = sizeof media_prefix - 1;
    if (!str_starts(media, media_prefix)) return (struct str) { NULL, 0 };
    return (struct str) { media.p + n, media.n - n };
}

static bool find_kind(struct str suffix, enum ollama_kind *out)
{
    for (size_t i = 0; i < sizeof media_types / sizeof *media_types; i++) {
        if (!str_is(suffix, media_types[i].suffix)) continue;
        *out = media_types[i].kind;
        return true;
    }
    return false;
}

/* ^sha256[:-][0-9a-fA-F]{64}$ : what passes is also safe as part of a file name. */
static bool read_digest(char out[65], struct str s)
{
    if (s.n != 71 || (!str_starts(s, "sha256:") && !str_starts(s, "sha256-"))) return false;
    for (size_t i = 7; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
            return false;
    }
    memcpy(out, s.p + 7, 64);
    out[64] = 0;
    return true;
}

static bool read_size(const struct json *layer, uint64_t *out)
{
    const struct json *j = json_get(layer, "size");
    if (!j || j->type != JSON_INT || j->integer < 0) return false;
    *out = (uint64_t)j->integer;
    return true;
}

static enum bz_status read_layer(struct ollama_manifest *m, const struct json *j,
                                 enum ollama_kind kind, struct bz_err *err)
{
    if (m->n_layers == MAX_KEPT)
        return fail(err, BZ_ERR_FORMAT, "the manifest has more than %d layers", MAX_KEPT);
    struct ollama_layer *l = &m->layers[m->n_layers];
    l->kind = kind;
    if (!read_digest(l->digest, json_get_str(j, "digest")))
        return fail(err, BZ_ERR_FORMAT, "a layer of the manifest has no valid sha256 digest");
    if (!read_size(j, &l->size))
        return fail(err, BZ_ERR_FORMAT, "layer sha256:%.12s of the manifest has no size",
                    l->digest);
    m->n_layers++;
    return BZ_OK;
}

static enum bz_status add_size(struct ollama_manifest *m, const struct json *layer,
                               struct bz_err *err)
{
    uint64_t size;
    if (read_size(layer, &size) && !size_add(m->total_size, size, &m->total_size))
        return fail(err, BZ_ERR_FORMAT, "the manifest's sizes are impossible");
    return BZ_OK;
}

/* One object of type `type`, or the sentence that says it is not. */
static enum bz_status parse_as(struct json **out, enum json_type type, const char *what,
                               struct str text, struct arena *a, struct bz_err *err)
{
    enum bz_status st = json_parse(out, text, a, err);
    if (st) return fail_prefix(err, st, "%s", what);
    if ((*out)->type != type)
        return fail(err, BZ_ERR_FORMAT, "%s: not a JSON %s", what,
                    type == JSON_OBJECT ? "object" : "array");
    return BZ_OK;
}

enum bz_status ollama_parse_manifest(struct ollama_manifest *out, struct str json, struct arena *a,
                                     struct bz_err *err)
{
    struct json *root;
    enum bz_status st = parse_as(&root, JSON_OBJECT, "manifest", json, a, err);
    if (st) return st;
    const struct json *layers = json_get(root, "layers");
    if (!layers || layers->type != JSON_ARRAY)
        return fail(err, BZ_ERR_FORMAT, "the manifest has no list of layers");
    struct ollama_manifest m = { 0 };
    m.layers = arena_alloc(a, layers->n + 1, sizeof *m.layers);
    if (!m.layers) return fail_memory(err, (layers->n + 1) * sizeof *m.layers);
    for (const struct json *j = layers->child; j && !st; j = j->next) {
        struct str suffix = media_suffix(json_get_str(j, "mediaType"));
        enum ollama_kind kind;
        if (str_is(suffix, "tensor") || str_is(suffix, "json")) m.has_tensors = true;
        st = add_size(&m, j, err);
        if (!st && find_kind(suffix, &kind)) st = read_layer(&m, j, kind, err);
    }
    /* A manifest without a config, or with an empty digest, is one that has none. */
    const struct json *config = json_get(root, "config");
    if (!st && json_get_str(config, "digest").n) {
        st = add_size(&m, config, err);
        if (!st) st = read_layer(&m, config, OLLAMA_LAYER_CONFIG, err);
    }
    if (!st) *out = m;
    return st;
}

static enum bz_status read_blob(struct ollama_blobs *blobs, const struct json *j,
                                struct bz_err *err)
{
    struct ollama_blob *b = &blobs->v[blobs->n];
    if (!read_digest(b->digest, json_get_str(j, "digest")) || !read_size(j, &b->size))
        return fail(err, BZ_ERR_FORMAT, "a layer of the manifest has no sha256 digest or no size");
    for (char *c = b->digest; *c; c++)
        if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a');
    blobs->n++;
    return BZ_OK;
}

enum bz_status ollama_parse_blobs(struct ollama_blobs *out, struct str json, struct arena *a,
                                  struct bz_err *err)
{
    struct json *root;
    enum bz_status st = parse_as(&root, JSON_OBJECT, "manifest", json, a, err);
    if (st) return st;
    const struct json *layers = json_get(root, "layers"), *config = json_get(root, "config");
    if (!layers || layers->type != JSON_ARRAY || layers->n > MAX_KEPT)
        return fail(err, BZ_ERR_FORMAT, "the manifest has no list of layers, or a very long one");
    struct ollama_blobs blobs = { .v = arena_alloc(a, layers->n + 1, sizeof *blobs.v) };
    if (!blobs.v) return fail_memory(err, (layers->n + 1) * sizeof *blobs.v);
    for (const struct json *j = layers->child; j && !st; j = j->next)
        st = read_blob(&blobs, j, err);
    if (!st && json_get_str(config, "digest").n) st = read_blob(&blobs, config, err);
    if (!st) *out = blobs;
    return st;
}

const struct ollama_layer *ollama_layer_at(const struct ollama_manifest *m, enum ollama_kind kind,
                                           size_t i)
{
    for (size_t k = 0; k < m->n_layers; k++)
        if (m->layers[k].kind == kind && i-- == 0) return &m->layers[k];
    return NULL;
}

enum bz_status ollama_parse_config(struct ollama_config *out, struct str json, struct arena *a,
                                   struct bz_err *err)
{
    struct json *root;
    enum bz_status st = parse_as(&root, JSON_OBJECT, "config", json, a, err);
    if (st) return st;
    *out = (struct ollama_config) {
        .model_format = json_get_str(root, "model_format"),
        .model_family = json_get_str(root, "model_family"),
        .model_type = json_get_str(root, "model_type"),
        .file_type = json_get_str(root, "file_type"),
        .renderer = json_get_str(root, "renderer"),
        .parser = json_get_str(root, "parser"),
        .remote_host = json_get_str(root, "remote_host"),
    };
    return BZ_OK;
}

/* Absent and null both mean "not said". A fraction is cut off, as Ollama does. */
static enum bz_status get_int(struct ollama_int *out, const struct json *root, const char *key,
                              struct bz_err *err)
{
    const struct json *j = json_get(root, key);
    if (!j || j->type == JSON_NULL) return BZ_OK;
    bool fits = j->type == JSON_FLOAT && j->number > -0x1p62 && j->number < 0x1p62;
    if (j->type != JSON_INT && !fits)
        return fail(err, BZ_ERR_FORMAT, "params: %s is not an integer", key);
    *out = (struct ollama_int) { true, fits ? (int64_t)j->number : j->integer };
    return BZ_OK;
}

static enum bz_status get_num(struct ollama_num *out, const struct json *root, const char *key,
                              struct bz_err *err)
{
    const struct json *j = json_get(root, key);
    if (!j || j->type == JSON_NULL) return BZ_OK;
    bool number = j->type == JSON_INT || j->type == JSON_FLOAT;
    if (!number || !(j->number >= -3e38 && j->number <= 3e38))
        return fail(err, BZ_ERR_FORMAT, "params: %s is not a number", key);
    *out = (struct ollama_num) { true, j->number };
    return BZ_OK;
}

/* Every piece of an answer is compared with all of them; a request may bring as many. */
enum { MAX_STOPS = 64, MAX_STOP = 1024 };

/* A list of strings, or one string alone. */
static enum bz_status get_stop(struct ollama_params *p, const struct json *root, struct arena *a,
                               struct bz_err *err)
{
    const struct json *j = json_get(root, "stop");
    if (!j || j->type == JSON_NULL) return BZ_OK;
    bool one = j->type == JSON_STRING;
    if (!one && j->type != JSON_ARRAY)
        return fail(err, BZ_ERR_FORMAT, "params: stop is not a list of strings");
    size_t n = one ? 1 : j->n;
    if (n > MAX_STOPS)
        return fail(err, BZ_ERR_FORMAT, "params: stop has %zu strings; %d are the most", n,
                    MAX_STOPS);
    struct str *stop = arena_alloc(a, n, sizeof *stop);
    if (!stop) return fail_memory(err, n * sizeof *stop);
    if (one) stop[0] = j->text;
    p->stop = stop;
    p->n_stop = n;
    for (const struct json *s = one ? NULL : j->child; s; s = s->next) {
        if (s->type != JSON_STRING)
            return fail(err, BZ_ERR_FORMAT, "params: stop is not a list of strings");
        *stop++ = s->text;
    }
    for (size_t i = 0; i < n; i++)
        if (p->stop[i].n > MAX_STOP)
            return fail(err, BZ_ERR_FORMAT,
                        "params: stop has a string of %zu bytes; %d is the most", p->stop[i].n,
                        MAX_STOP);
    return BZ_OK;
}

enum bz_status ollama_parse_params(struct ollama_params *out, struct str json, struct arena *a,
                                   struct bz_err *err)
{
    struct ollama_params p = { 0 };
    struct json *root;
    enum bz_status st = parse_as(&root, JSON_OBJECT, "params", json, a, err);
    if (!st) st = get_int(&p.num_ctx, root, "num_ctx", err);
    if (!st) st = get_int(&p.num_predict, root, "num_predict", err);
    if (!st) st = get_int(&p.top_k, root, "top_k", err);
    if (!st) st = get_int(&p.repeat_last_n, root, "repeat_last_n", err);
    if (!st) st = get_int(&p.seed, root, "seed", err);
    if (!st) st = get_num(&p.temperature, root, "temperature", err);
    if (!st) st = get_num(&p.top_p, root, "top_p", err);
    if (!st) st = get_num(&p.min_p, root, "min_p", err);
    if (!st) st = get_num(&p.repeat_penalty, root, "repeat_penalty", err);
    if (!st) st = get_num(&p.presence_penalty, root, "presence_penalty", err);
    if (!st) st = get_num(&p.frequency_penalty, root, "frequency_penalty", err);
    if (!st) st = get_stop(&p, root, a, err);
    if (!st) *out = p;
    return st;
}

enum bz_status ollama_parse_messages(struct ollama_message **out, size_t *n, struct str json,
                                     struct arena *a, struct bz_err *err)
{
    struct json *root;
    enum bz_status st = parse_as(&root, JSON_ARRAY, "messages", json, a, err);
    if (st) return st;
    struct ollama_message *list = arena_alloc(a, root->n, sizeof *list), *m = list;
    if (!list) return fail_memory(err, root->n * sizeof *list);
    for (const struct json *j = root->child; j; j = j->next, m++) {
        *m = (struct ollama_message) { json_get_str(j, "role"), json_get_str(j, "content") };
        if (!m->role.p || !m->content.p)
            return fail(err, BZ_ERR_FORMAT, "messages: number %zu has no role and content",
                        (size_t)(m - list));
    }
    *out = list;
    *n = root->n;
    return BZ_OK;
}

void ollama_close(struct ollama_model *m)
{
    arena_free(&m->arena);
    *m = (struct ollama_model) { 0 };
}
