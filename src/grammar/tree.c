/* tree.c - trees, and the expressions of those without assertions. */
#include "grammar/tree.h"

struct tree *tree_new(struct store *s, enum shape shape)
{
    struct tree *t = s->status ? NULL : arena_alloc(&s->trees, 1, sizeof *t);
    if (!t) {
        store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
        return NULL;
    }
    t->shape = shape;
    t->simple = shape < T_START;
    return t;
}

node tree_simple(struct store *s, const struct tree *t)
{
    struct vec v = { 0 };
    node x = re_rep(s, 0, 0, 1);
    switch (t->shape) {
    case T_SET:
    case T_RULE: return t->set;
    case T_REP: return re_rep(s, tree_simple(s, t->child), t->least, t->most);
    case T_ALT:
    case T_CAT:
        for (const struct tree *c = t->child; c; c = c->next) vec_push(s, &v, tree_simple(s, c));
        if (t->shape == T_ALT) x = re_alt(s, v.w, v.n);
        for (uint32_t i = v.n; i > 0 && t->shape == T_CAT; i--) x = re_cat(s, v.w[i - 1], x);
        vec_free(&v);
        return s->status ? 0 : x;
    default: return x;
    }
}
