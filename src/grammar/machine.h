/* machine.h - a text half read, byte by byte.
 *
 * A thread is what stands on top (a string's content, a key, an object after a comma ...) and the
 * configuration below it, which goes on once the top is finished. A configuration is a set of
 * threads: alternatives that the text so far has not told apart. Threads with the same top share
 * one: their configurations below are united. So alternatives cost nothing where they agree, and
 * nested ones do not multiply.
 */
#ifndef BEZEL_GRAMMAR_MACHINE_H
#define BEZEL_GRAMMAR_MACHINE_H

#include "grammar/lift.h"
#include "grammar/value.h"

enum head {
    H_END,    /* the text may end; a: 1 where white space may follow */
    H_RAW,    /* text of its own: a is LIFTED. It ends where it may and something else follows. */
    H_STRING, /* inside a JSON string: a is LIFTED */
    H_VALUE,  /* before a value of formula b. a: state that goes on behind it, 0: none */
    H_AFTER,  /* behind a value in an object or array. a: state; c: position of an item + 1 */
    H_OBJECT, /* behind '{'. a: state */
    H_COMMA,  /* behind ',' in an object, before a quoted key. a: state */
    H_KEY,    /* inside a key. a: state, b: LIFTED of a RE_TUPLE, c: text position of the key */
    H_COLON,  /* behind a key. a: state behind this member, b: formula of its value */
    H_ARRAY,  /* behind '['. a: state */
    H_CALL,   /* before a call of a tool */
    H_CLOSE,  /* before the closing tag of a call */
};

/* Where text is laid out, the space that was taken is c of H_VALUE, H_OBJECT, H_COMMA and H_ARRAY,
 * and b of H_AFTER: enum gap. */
struct thread {
    uint32_t head; /* enum head << 28 | a */
    uint32_t b, c;
    node below; /* CONFIG */
};

enum gap { NO_GAP, GAP_SPACE, GAP_LINE /* and one more for each space behind the line break */ };

enum { MAX_GAP = 32 }; /* spaces behind a line break */

/* Flags of a CONFIG. */
enum { CONFIG_REACHED = 1 /* finish.c */, CONFIG_UNIQUE = 2 };

enum { THREAD_WORDS = sizeof(struct thread) / sizeof(uint32_t), HEAD_SHIFT = 28 };

static inline struct thread thread_make(enum head head, node a, uint32_t b, uint32_t c, node below)
{
    return (struct thread) { (uint32_t)head << HEAD_SHIFT | a, b, c, below };
}

static inline enum head thread_head(struct thread t)
{
    return (enum head)(t.head >> HEAD_SHIFT);
}

static inline node thread_a(struct thread t)
{
    return t.head & ((1u << HEAD_SHIFT) - 1);
}

struct threads {
    struct thread *at;
    uint32_t n, cap;
};

/* What a walk through possible texts has to know of its answers. */
struct doubt {
    size_t begin;     /* the text before this place is what was written so far */
    bool unsure;      /* the answer needs the text, and there is none: the thread has ended */
    bool looked_back; /* the answer depends on the text before `begin` */
};

/* One byte being read. */
struct machine {
    struct grammar *g;
    const char *text;    /* all bytes up to this one, NULL: they are not known */
    size_t pos;          /* its place */
    struct doubt *doubt; /* of a walk; else NULL */
};

/* Does the layout allow space here? */
bool machine_has_gap(const struct grammar *g, enum head head);

/* The threads that t becomes, appended to out. */
void machine_step(struct machine *m, struct thread t, unsigned byte, struct threads *out);

void threads_put(struct grammar *g, struct threads *v, struct thread t);
void threads_free(struct threads *v);

/* Sort them, and unite those with the same top. */
void threads_merge(struct grammar *g, struct threads *v);
node config_of(struct grammar *g, struct threads *v); /* merged */
node config_one(struct grammar *g, struct thread t);
const struct thread *config_threads(const struct grammar *g, node config, uint32_t *n);
/* Is it inside an item that must be none of those before it? */
bool config_has_unique(const struct grammar *g, node config);
/* How deep its values are inside one another. */
uint32_t config_levels(const struct grammar *g, node config);
bool config_may_end(const struct grammar *g, node config);

static inline bool is_space(unsigned byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* How strings of an expression are written, and the quote on both their sides. */
enum lift machine_lift(const struct grammar *g, node text);
unsigned machine_quote(const struct grammar *g);

/* Levels that values inside of what begins above `below` may have. */
unsigned machine_left(const struct grammar *g, node below);

/* ---- objects (machine_object.c, machine_key.c) ---- */

/* What an object may go on with so that it can still be finished. */
struct object_info {
    bool may_close, may_go_on; /* with another member */
    bool unknown;              /* with one of a name that is in no member */
    bool any_name;             /* of whatever such name */
    node key;                  /* LIFTED: before the first character of a key */
    node quoted_key;           /* likewise, of one that must be quoted in a call; else 0 */
    uint32_t allowed[];        /* bits: members that may come next */
};
/* At its beginning; its members' values may have `left` levels. */
node object_state(struct grammar *g, node shape, unsigned left);
const struct object_info *object_info(struct grammar *g, node state);
/* Can it be finished? For text that is checked: perhaps. */
bool object_live(struct grammar *g, node state);
/* How much must still come before it may close: 0, if it may. */
uint32_t object_missing(struct grammar *g, node state);
/* Can this become a key? */
bool object_key_lives(struct grammar *g, node state, node lifted);
/* States of which one node is the same have the same names that are in no member. */
node object_key_kind(struct grammar *g, node state);
/* The closing quote of a key: a thread H_COLON for each way to go on. */
void object_key_ends(struct machine *m, struct thread key, struct threads *out);
/* The key automaton of a state without what belongs to its known names: what other names do. */
node object_key_base(struct grammar *g, node lifted);

/* ---- arrays (machine_array.c) ---- */

/* One way to go on: the formula of the next item, and the state behind it. */
struct array_choice {
    node f, state;
};
struct array_info {
    bool may_close;
    uint32_t n;
    struct array_choice at[];
};
/* At its beginning; its items may have `left` levels. */
node array_state(struct grammar *g, node shape, unsigned left);
const struct array_info *array_info(struct grammar *g, node state);
/* Can it be finished? For text that is checked: perhaps. */
bool array_live(struct grammar *g, node state);
uint32_t array_missing(struct grammar *g, node state);
bool array_is_unique(struct grammar *g, node state);
/* The objects and arrays among its items, which must differ: STRINGS without white space; or 0. */
node array_items(struct grammar *g, node state);
/* The state once its last item, text[from..end), is known; 0: the item was there before. */
node array_item_ends(struct machine *m, node state, size_t from, size_t end);
/* The text from a place on is needed. False: there is none, and the thread must end. */
bool machine_needs_text(struct machine *m, size_t from);
/* What an item must not be: expressions for strings and numbers, and bits of literals. */
void array_seen(const struct grammar *g, node state, node *text, node *number, unsigned *literals);

#endif
