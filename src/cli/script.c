#include "cli/script.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/mem.h"

/* What a list of canvases must be. */
struct shape {
    const char *key;
    uint32_t n, n_vocab;
};

static enum bz_status read_canvas(int32_t *to, const struct json *canvas, const struct shape *shape,
                                  struct bz_err *err)
{
    if (canvas->type != JSON_ARRAY || canvas->n != shape->n)
        return fail(err, BZ_ERR_FORMAT, "the script's \"%s\" must hold canvases of %u tokens",
                    shape->key, shape->n);
    for (const struct json *id = canvas->child; id; id = id->next) {
        if (id->type != JSON_INT || id->integer < 0 || id->integer >= shape->n_vocab)
            return fail(err, BZ_ERR_FORMAT,
                        "the script's \"%s\" holds something that is no token id below %u",
                        shape->key, shape->n_vocab);
        *to++ = (int32_t)id->integer;
    }
    return BZ_OK;
}

static enum bz_status read_list(int32_t **out, size_t *n_out, const struct json *list,
                                const struct shape *shape, struct bz_err *err)
{
    if (!list) return BZ_OK;
    if (list->type != JSON_ARRAY)
        return fail(err, BZ_ERR_FORMAT, "the script's \"%s\" must be a list of canvases",
                    shape->key);
    int32_t *ids = mem_alloc(list->n ? list->n : 1, shape->n * sizeof *ids);
    if (!ids) return fail_memory(err, list->n * shape->n * sizeof *ids);
    enum bz_status st = BZ_OK;
    size_t n = 0;
    for (const struct json *c = list->child; c && st == BZ_OK; c = c->next)
        st = read_canvas(ids + shape->n * n++, c, shape, err);
    if (st) {
        mem_free(ids);
        return st;
    }
    *out = ids;
    *n_out = n;
    return BZ_OK;
}

enum bz_status script_read(struct script *out, struct str json, uint32_t n, uint32_t n_vocab,
                           struct bz_err *err)
{
    struct arena arena = { 0 };
    struct json *root = NULL;
    struct script s = { 0 };
    const struct shape random = { "random", n, n_vocab }, sampled = { "sampled", n, n_vocab };
    enum bz_status st = json_parse(&root, json, &arena, err);
    bool known = st == BZ_OK && (json_get(root, "random") || json_get(root, "sampled"));
    if (st == BZ_OK && !known) /* also where it is no object */
        st = fail(err, BZ_ERR_FORMAT, "the script must be {\"random\": [...], \"sampled\": [...]}");
    if (st == BZ_OK) st = read_list(&s.random, &s.n_random, json_get(root, "random"), &random, err);
    if (st == BZ_OK)
        st = read_list(&s.sampled, &s.n_sampled, json_get(root, "sampled"), &sampled, err);
    arena_free(&arena);
    if (st) {
        script_free(&s);
        return st;
    }
    *out = s;
    return BZ_OK;
}

void script_free(struct script *s)
{
    mem_free(s->random);
    mem_free(s->sampled);
    *s = (struct script) { 0 };
}
