/* store.h - the nodes that a grammar is made of, each stored once.
 *
 * Expressions, formulas, shapes, states and configurations are all nodes: a kind and some words.
 * Equal nodes have the same id, so comparing, merging and remembering results is cheap. Nodes stay
 * until the store is closed, and so do pointers to their words.
 *
 * Failures are sticky: after the first one every new node is node 0, the empty language, and the
 * caller of the whole work looks at `status` once.
 */
#ifndef BEZEL_GRAMMAR_STORE_H
#define BEZEL_GRAMMAR_STORE_H

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum kind {
    /* expressions: sets of texts over code points (re.h) */
    RE_EMPTY, /* no text; node 0 */
    RE_EPS,   /* the empty text */
    RE_SET,   /* one code point: first, last, first, last, ... */
    RE_CAT,   /* a, b: a text of a, then one of b */
    RE_ALT,   /* any of these */
    RE_AND,   /* all of these */
    RE_NOT,   /* every other text */
    RE_REP,   /* x, least, most */
    RE_MAP,   /* a set of words as a tree: value + 1 or 0, first and last value + 1, (code point,
               * subtree) ... */
    RE_TUPLE, /* several expressions side by side: what an object's key can still be */
    RE_MOD,   /* decimal texts of multiples (number.c) */
    RE_CMP,   /* decimal texts of numbers that are at least a bound (number.c) */
    RE_RULE,  /* a rule of a GBNF grammar, by number */
    STRING,   /* bytes: length, then four to a word */
    STRINGS,  /* a list of STRING */
    /* formulas: sets of JSON values (formula.h) */
    F_TRUE,
    F_FALSE,
    F_SCHEMA, /* a schema: its address, its resource */
    F_CONST,  /* one JSON value: its address */
    F_VALUE,  /* a VALUE */
    F_AND,
    F_OR,
    F_ONE, /* exactly one of these */
    F_NOT,
    VALUE,  /* a formula, taken apart by type (value.h) */
    OBJECT, /* what one kind of object may hold (object.h) */
    ARRAY,  /* the same of an array (array.h) */
    /* states of the machine (machine.h) */
    LIFTED,       /* an expression, and how far the bytes of a code point have come (lift.h) */
    OBJECT_STATE, /* an object half read */
    ARRAY_STATE,
    KEY_LIVES, /* whether a name may still come of a RE_TUPLE in some kind of object */
    CONFIG,    /* threads */
    N_KINDS
};

typedef uint32_t node;

struct node_info {
    const uint32_t *w; /* n words */
    void *data;        /* what was found out about it, by kind; freed by the owner of the kind */
    uint32_t n;
    uint32_t aux; /* likewise, a number */
    uint8_t kind, flags;
    uint8_t height; /* of formulas (value.h) */
};

struct rule {
    node body; /* 0 until it is known */
    bool nullable, hard, busy;
};

/* A text that is written must not come to a dead end, so a longer search pays there. */
enum { SEARCH_CHECKED = 4000, SEARCH_WRITTEN = 60000 };

/* In a module of wasm, whose memory has no room for more, 16 MB in all. */
#if UINTPTR_MAX > UINT32_MAX
enum { MAX_NODES = 1 << 21, MAX_STORE_WORDS = 1 << 25 };
#else
enum { MAX_NODES = 1 << 18, MAX_STORE_WORDS = 1 << 21 };
#endif

struct store {
    struct node_info *nodes;
    uint32_t n_nodes, cap;
    uint32_t *slots, n_slots; /* hash table of ids + 1 */
    uint64_t seed[2];
    struct arena arena, trees; /* trees: of the pattern that is being read (tree.h) */
    size_t n_words;            /* in the arena, of nodes and of what hangs on them */
    size_t max_words;
    struct rule *rules; /* of RE_RULE */
    uint32_t n_rules, rules_cap;
    node number;                  /* number_all, once it was asked for */
    uint32_t n_whole, n_fraction; /* digits of the longest number so far */
    uint32_t n_rows;              /* of lifted states (lift.h) */
    uint32_t depth, stamp, work;  /* of walks through expressions */
    uint32_t max_search;          /* expressions that one question whether there is a text visits */
    enum bz_status status;
    struct bz_err err;
};

bool store_open(struct store *s);
void store_close(struct store *s);

/* The node of this kind and these words. */
node store_put(struct store *s, enum kind kind, const uint32_t *w, uint32_t n);

/* Remember the first failure. */
__attribute__((format(printf, 3, 4))) void store_fail(struct store *s, enum bz_status st,
                                                      const char *fmt, ...);

/* Memory for n words that lives as long as the store; NULL after a failure. */
void *store_alloc(struct store *s, size_t n_words);

node store_string(struct store *s, struct str text);
struct str store_text(const struct store *s, node string);

static inline enum kind node_kind(const struct store *s, node x)
{
    return (enum kind)s->nodes[x].kind;
}

static inline const uint32_t *node_words(const struct store *s, node x)
{
    return s->nodes[x].w;
}

static inline uint32_t node_n(const struct store *s, node x)
{
    return s->nodes[x].n;
}

/* Words that grow. Zero is empty. */
struct vec {
    uint32_t *w;
    uint32_t n, cap;
};
void vec_push(struct store *s, struct vec *v, uint32_t w);
void vec_put(struct store *s, struct vec *v, const uint32_t *w, uint32_t n);
void vec_free(struct vec *v);
/* Sort, each word once. */
void vec_sort(struct vec *v);

#endif
