/* mask_cache.c - lifetimes of masks, and which expressions share them. */
#include "grammar/mask_impl.h"

enum bz_status mask_cache_open(struct mask_cache **out, struct grammar *g, const struct vocab *v,
                               struct bz_err *err)
{
    struct mask_cache *k = mem_alloc(1, sizeof *k);
    if (k) k->spare = mem_alloc(v->n_words, sizeof *k->spare);
    if (!k || !k->spare) {
        mem_free(k);
        return fail_memory(err, sizeof *k);
    }
    k->g = g;
    k->v = v;
    *out = k;
    return BZ_OK;
}

void mask_cache_close(struct mask_cache *k)
{
    if (!k) return;
    for (uint32_t i = 0; i < N_KEPT; i++) mem_free(k->kept[i].bits);
    for (uint32_t i = 0; i < N_LOCALS; i++) {
        mem_free(k->locals[i].bits);
        vec_free(&k->locals[i].exits);
    }
    threads_free(&k->threads);
    mem_free(k->spare);
    mem_free(k);
}

/* x{m,n} with n beyond the longest token: no token reaches the limit, and what a token leaves of
 * the expression is not empty either way. That holds for what expressions are made of by sequence,
 * choice and repetition; inside a conjunction or a complement something could be. */
node mask_relax(struct mask_cache *k, node re)
{
    struct store *s = &k->g->s;
    const uint32_t *w = node_words(s, re);
    uint32_t n = node_n(s, re);
    if (s->nodes[re].flags & RE_HARD) return re;
    switch (node_kind(s, re)) {
    case RE_REP:
        if (w[2] == RE_INF || w[2] <= k->v->max_chars) return re;
        return re_rep(s, w[0], w[1], RE_INF);
    case RE_CAT: {
        node first = mask_relax(k, w[0]);
        return first == w[0] ? re : re_cat(s, first, w[1]);
    }
    case RE_ALT: {
        struct vec v = { 0 };
        for (uint32_t i = 0; i < n; i++) vec_push(s, &v, mask_relax(k, w[i]));
        node x = re_alt(s, v.w, v.n);
        vec_free(&v);
        return x;
    }
    default: return re;
    }
}
