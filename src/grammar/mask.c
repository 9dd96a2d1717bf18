/* mask.c - walks the vocabulary's tree beside the machine.
 *
 * A mask is the union of its threads' masks. Where the structure of JSON leaves few bytes the walk
 * is short. Inside strings nearly all tokens are allowed, so there the mask is a copy of what is
 * known already, and only the difference is walked:
 *   - any text: the vocabulary's own copy, and the few bytes that may follow a closing quote;
 *   - text that becomes any text once it has left some words (keys beside known names): the same,
 *     and a walk along those words;
 *   - other expressions: a walk of their own, kept for every place with the same expression.
 */
#include "grammar/mask.h"

#include "grammar/mask_impl.h"

static uint32_t first_child(const struct trie *t, uint32_t i)
{
    return t->nodes[i].child;
}

static uint32_t last_child(const struct trie *t, uint32_t i) /* and one more */
{
    return t->nodes[i].child + t->nodes[i].n_children;
}

/* ---- sets of tokens ---- */

static void set_tokens(struct mask_cache *k, const struct trie *t, uint32_t i)
{
    for (uint32_t e = t->nodes[i].entry; e < t->nodes[i + 1].entry; e++)
        k->bits[t->tokens[e] / 32] |= 1u << t->tokens[e] % 32;
}

void mask_clear(struct mask_cache *k, uint32_t i)
{
    const struct trie *t = &k->v->all;
    for (uint32_t e = t->nodes[i].entry; e < t->nodes[i + 1].entry; e++)
        k->bits[t->tokens[e] / 32] &= ~(1u << t->tokens[e] % 32);
    for (uint32_t c = first_child(t, i); c < last_child(t, i); c++) mask_clear(k, c);
}

static void add_bits(struct mask_cache *k, const uint32_t *bits)
{
    for (uint32_t i = 0; i < k->v->n_words; i++) k->bits[i] |= bits[i];
}

/* ---- walks through the machine ---- */

static uint32_t add_range(unsigned char *out, uint32_t n, unsigned first, unsigned last)
{
    for (unsigned c = first; c <= last && n < 32; c++) out[n++] = (unsigned char)c;
    return n;
}

static uint32_t add_all(unsigned char *out, uint32_t n, const char *bytes)
{
    for (; *bytes && n < 32; bytes++) out[n++] = (unsigned char)*bytes;
    return n;
}

/* The quote of strings, and some others. */
static uint32_t add_quote(struct grammar *g, unsigned char *out, uint32_t n, const char *bytes)
{
    n = add_range(out, n, machine_quote(g), machine_quote(g));
    return add_all(out, n, bytes);
}

/* The first bytes of a key where only known names may come. */
static uint32_t key_bytes(struct grammar *g, node lifted, unsigned char *out)
{
    unsigned closer = lift_closer(lift_kind(&g->s, lifted));
    uint32_t n = add_range(out, 0, closer, closer);
    n = add_all(out, n, "\\");
    const struct steps *l = re_steps(&g->s, lift_re(&g->s, lifted));
    if (!lift_at_border(&g->s, lifted)) return 0;
    for (uint32_t i = 0; l && i < l->n; i++) {
        if (l->at[i].last >= 0x80 || n + (l->at[i].last - l->at[i].first) >= 31) return 0;
        n = add_range(out, n, l->at[i].first, l->at[i].last);
    }
    return n;
}

uint32_t mask_first_bytes(struct grammar *g, struct thread t, unsigned char out[32])
{
    bool gap = machine_has_gap(g, thread_head(t));
    uint32_t n = g->options.any_form ? add_all(out, 0, " \n\r\t")
                 : gap               ? add_all(out, 0, " \n")
                                     : 0;
    const struct object_info *o;
    switch (thread_head(t)) {
    case H_COLON: return add_all(out, n, ":");
    case H_CALL: return add_range(out, n, BYTE_CALL, BYTE_CALL);
    case H_CLOSE: return add_range(out, n, BYTE_CALL_END, BYTE_CALL_END);
    case H_COMMA: return add_quote(g, out, n, "");
    case H_OBJECT: return add_quote(g, out, n, "}");
    case H_AFTER:
        return add_all(out, n, node_kind(&g->s, thread_a(t)) == OBJECT_STATE ? ",}" : ",]");
    case H_ARRAY:
    case H_VALUE:
        if (thread_head(t) == H_ARRAY) n = add_all(out, n, "]");
        return add_quote(g, out, n, "{[-0123456789tfn");
    case H_KEY:
        o = object_info(g, thread_a(t));
        return o && !o->unknown ? key_bytes(g, t.b, out) : 0;
    default: return 0;
    }
}

/* Can the token be read from the thread at its beginning? */
static bool try_token(struct mask_cache *k, uint32_t token)
{
    char bytes[MAX_TOKEN_BYTES];
    size_t n;
    struct threads now = { 0 }, next = { 0 };
    if (!vocab_bytes(k->v->t, token, bytes, &n)) return false;
    threads_put(k->g, &now, k->first);
    for (size_t i = 0; i < n && now.n; i++) {
        struct machine m = { k->g, k->text, k->n_text + i, &k->doubt };
        k->text[m.pos] = bytes[i];
        next.n = 0;
        for (uint32_t x = 0; x < now.n; x++)
            machine_step(&m, now.at[x], (unsigned char)bytes[i], &next);
        struct threads swap = now;
        now = next;
        next = swap;
    }
    bool ok = now.n > 0;
    threads_free(&now);
    threads_free(&next);
    return ok;
}

/* All tokens at and below a node. */
static void try_tokens(struct mask_cache *k, const struct trie *t, uint32_t i)
{
    k->doubt.unsure = false;
    for (uint32_t e = t->nodes[i].entry; e < t->nodes[i + 1].entry; e++) {
        uint32_t token = t->tokens[e];
        if (!(k->bits[token / 32] >> token % 32 & 1) && try_token(k, token))
            k->bits[token / 32] |= 1u << token % 32;
    }
    for (uint32_t c = first_child(t, i); c < last_child(t, i); c++) try_tokens(k, t, c);
}

static void walk(struct mask_cache *k, const struct trie *t, uint32_t i, struct thread from,
                 size_t pos);

static void walk_child(struct mask_cache *k, const struct trie *t, uint32_t c, struct thread from,
                       size_t pos)
{
    struct machine m = { k->g, k->blind ? NULL : k->text, pos, &k->doubt };
    uint32_t mark = k->threads.n;
    k->text[pos] = (char)t->nodes[c].byte;
    machine_step(&m, from, t->nodes[c].byte, &k->threads);
    if (k->doubt.unsure) try_tokens(k, t, c);
    if (k->threads.n > mark) set_tokens(k, t, c);
    if (t->nodes[c].n_children) {
        for (uint32_t i = mark; i < k->threads.n; i++) walk(k, t, c, k->threads.at[i], pos + 1);
    }
    k->threads.n = mark;
}

uint32_t mask_child(const struct trie *t, uint32_t i, unsigned char byte)
{
    uint32_t lo = first_child(t, i), hi = last_child(t, i);
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (t->nodes[mid].byte < byte) lo = mid + 1;
        else hi = mid;
    }
    return lo < last_child(t, i) && t->nodes[lo].byte == byte ? lo : 0;
}

/* Tokens below node i that the thread can read to their end. */
static void walk(struct mask_cache *k, const struct trie *t, uint32_t i, struct thread from,
                 size_t pos)
{
    unsigned char bytes[32];
    uint32_t n = t->nodes[i].n_children > 12 ? mask_first_bytes(k->g, from, bytes) : 0;
    for (uint32_t b = 0; b < n; b++) {
        uint32_t c = mask_child(t, i, bytes[b]);
        if (c) walk_child(k, t, c, from, pos);
    }
    for (uint32_t c = first_child(t, i); c < last_child(t, i) && n == 0; c++)
        walk_child(k, t, c, from, pos);
}

/* The configuration below goes on behind the quote of a string of which only the end is known:
 * tokens by what they have behind it. With `most`, tokens that have least..most code points before
 * it. */
static void walk_after(struct mask_cache *k, const struct free_text *f, const struct threads *next,
                       uint32_t mark)
{
    k->blind = true;
    for (uint32_t i = mark; i < next->n; i++) {
        set_tokens(k, &f->after, 0);
        walk(k, &f->after, 0, k->threads.at[i], k->n_text);
    }
    k->blind = false;
}

/* The same behind a closing quote in the whole tree, for the threads from `mark` on. */
static void walk_exit(struct mask_cache *k, uint32_t at, uint32_t mark)
{
    k->blind = true;
    if (k->threads.n > mark) set_tokens(k, &k->v->all, at);
    for (uint32_t i = mark; i < k->threads.n; i++)
        walk(k, &k->v->all, at, k->threads.at[i], k->n_text);
    k->blind = false;
}

/* ---- strings without limits, or only of length ---- */

/* What is below a string, once that is over, onto k->threads. */
static void leave_string(struct mask_cache *k, struct thread t)
{
    struct machine m = { k->g, NULL, 0, NULL };
    node nothing = re_rep(&k->g->s, 0, 0, 1);
    enum lift kind = lift_kind(&k->g->s, thread_a(t));
    node end = lift_start(&k->g->s, kind, nothing);
    machine_step(&m, thread_make(H_STRING, end, 0, 0, t.below), lift_closer(kind), &k->threads);
}

static void add_free(struct mask_cache *k, const struct free_text *f, uint32_t mark)
{
    add_bits(k, f->inside);
    walk_after(k, f, &k->threads, mark);
}

/* The tokens of the tree `after` whose length before the quote does not fit are cleared again: the
 * tree was walked as if they did. */
static void limit_length(struct mask_cache *k, const struct free_text *f, uint32_t least,
                         uint32_t most)
{
    const struct trie *t = &f->after;
    for (uint32_t e = 0; e < t->nodes[t->n_nodes].entry; e++)
        if (t->chars[e] < least || t->chars[e] > most)
            k->bits[t->tokens[e] / 32] &= ~(1u << t->tokens[e] % 32);
    if (most >= k->v->max_chars) return;
    for (uint32_t i = f->length_at[most + 1]; i < f->length_at[k->v->max_chars + 1]; i++)
        k->bits[f->by_length[i] / 32] &= ~(1u << f->by_length[i] % 32);
}

/* ---- strings that become free once they leave some words ---- */

/* Tokens whose beginning is still one of those words. */
static void patch_string(struct mask_cache *k, uint32_t i, struct thread t, node free, size_t pos)
{
    const struct trie *all = &k->v->all;
    struct store *s = &k->g->s;
    for (uint32_t c = first_child(all, i); c < last_child(all, i); c++) {
        uint32_t to = lift_step(s, thread_a(t), all->nodes[c].byte);
        if (to == LEADS_NOWHERE) mask_clear(k, c);
        if (to <= LEADS_OUT || lift_re(s, to) == free) continue;
        k->text[pos] = (char)all->nodes[c].byte;
        patch_string(k, c, thread_make(H_STRING, to, 0, 0, t.below), free, pos + 1);
    }
}

/* Do most code points lead to any text? */
static bool becomes_free(struct store *s, node re, node free)
{
    const struct steps *l = re_steps(s, re);
    uint32_t n = 0;
    for (uint32_t i = 0; l && i < l->n; i++)
        if (l->at[i].to == free) n += l->at[i].last - l->at[i].first;
    return n > LAST_CP / 2;
}

/* ---- strings of an expression ---- */

/* The classes of bytes that leave a state as it is. */
static uint32_t find_loops(struct mask_cache *k, node state)
{
    struct store *s = &k->g->s;
    node re = lift_re(s, state);
    const struct steps *l = re_steps(s, re);
    enum lift kind = lift_kind(s, state);
    uint32_t other = kind == LIFT_JSON || kind == LIFT_PLAIN; /* escaped characters: class 0 */
    if (!lift_at_border(s, state)) return 0;
    for (uint32_t cp = 0, i = 0; l && cp <= 0x80; cp++) { /* 0x80: all beyond ASCII */
        while (i < l->n && l->at[i].last < cp) i++;
        bool loops = i < l->n && l->at[i].first <= cp && l->at[i].to == re;
        if (cp == 0x80 && loops) loops = l->at[i].last == LAST_CP;
        if (!loops) other |= 1u << (cp < 0x80 ? byte_class[cp] : CLASS_UTF8);
    }
    return l ? ~(other | 1u << CLASS_BROKEN) : 0;
}

static uint32_t loop_classes(struct mask_cache *k, node state)
{
    struct loop *kept = &k->loops[state % N_LOOPS];
    if (kept->state != state) *kept = (struct loop) { state, find_loops(k, state) };
    return kept->classes;
}

/* A key that is in no member: can it still be one? Kept in the node, for one shape of object. */
static bool key_lives(struct mask_cache *k, const struct local *l, node state)
{
    struct node_info *i = &k->g->s.nodes[state];
    if (!l->object) return true;
    if (i->aux >> 1 != l->shape) {
        bool lives = object_key_lives(k->g, l->object, state);
        i = &k->g->s.nodes[state];
        i->aux = l->shape << 1 | lives;
    }
    return i->aux & 1;
}

static void set_below(struct mask_cache *k, uint32_t *bits, uint32_t i, bool on)
{
    const struct trie *t = &k->v->all;
    for (uint32_t c = first_child(t, i); c < last_child(t, i); c++) {
        for (uint32_t e = t->nodes[c].entry; e < t->nodes[c + 1].entry; e++) {
            uint32_t token = t->tokens[e], bit = 1u << token % 32;
            bits[token / 32] = on ? bits[token / 32] | bit : bits[token / 32] & ~bit;
        }
        set_below(k, bits, c, on);
    }
}

static void set_here(struct mask_cache *k, uint32_t *bits, uint32_t i, bool on)
{
    const struct trie *t = &k->v->all;
    for (uint32_t e = t->nodes[i].entry; e < t->nodes[i + 1].entry; e++) {
        uint32_t token = t->tokens[e], bit = 1u << token % 32;
        bits[token / 32] = on ? bits[token / 32] | bit : bits[token / 32] & ~bit;
    }
}

/* All tokens that stay inside the string, and the nodes behind its closing quote. A subtree whose
 * bytes all leave the state as it is needs no walk. With `full` the bits begin as those of any
 * text, and tokens are taken out; else they are put in. */
static void walk_lifted(struct mask_cache *k, struct local *l, uint32_t i, node state,
                        uint32_t loops, bool full)
{
    const struct trie *t = &k->v->all;
    struct store *s = &k->g->s;
    for (uint32_t c = first_child(t, i); c < last_child(t, i); c++) {
        uint32_t to = lift_step(s, state, t->nodes[c].byte);
        if (to == LEADS_OUT) {
            vec_put(s, &l->exits, (const uint32_t[]) { c, state }, 2);
            continue;
        }
        if (to == LEADS_NOWHERE || !key_lives(k, l, to)) {
            if (full) set_here(k, l->bits, c, false);
            if (full) set_below(k, l->bits, c, false);
            continue;
        }
        if (!full) set_here(k, l->bits, c, true);
        if (!t->nodes[c].n_children) continue;
        uint32_t here = to == state ? loops : loop_classes(k, to);
        if (t->nodes[c].classes & ~here) walk_lifted(k, l, c, to, here, full);
        else if (!full) set_below(k, l->bits, c, true);
    }
}

/* Most tokens are not ASCII. Does such a character lead where others can follow for ever? */
static bool takes_most(struct mask_cache *k, const struct local *l)
{
    struct store *s = &k->g->s;
    node to = re_step(s, lift_re(s, l->state), 0x4e00);
    if (!to || !lift_at_border(s, l->state)) return false;
    node state = lift_start(s, lift_kind(s, l->state), to);
    return key_lives(k, l, state) && loop_classes(k, state) >> CLASS_UTF8 & 1;
}

/* A walk that is kept: for strings by their state, for keys also by the shape of their object. */
static struct local *find_local(struct mask_cache *k, node state, node object)
{
    node shape = object ? object_key_kind(k->g, object) : 0;
    enum lift lift = lift_kind(&k->g->s, state);
    struct local *oldest = &k->locals[0];
    for (uint32_t i = 0; i < N_LOCALS; i++) {
        struct local *l = &k->locals[i];
        if (l->bits && l->state == state && l->shape == shape) {
            l->used = ++k->clock;
            return l;
        }
        if (l->used < oldest->used) oldest = l;
    }
    if (!oldest->bits) oldest->bits = mem_alloc(k->v->n_words, sizeof *oldest->bits);
    if (!oldest->bits) {
        store_fail(&k->g->s, BZ_ERR_MEMORY, "out of memory for a mask");
        return NULL;
    }
    oldest->state = state;
    oldest->shape = shape;
    oldest->object = object;
    oldest->exits.n = 0;
    oldest->used = ++k->clock;
    const uint32_t *inside = k->v->text[lift].inside;
    bool full = inside && takes_most(k, oldest);
    if (full) memcpy(oldest->bits, inside, k->v->n_words * sizeof *inside);
    else memset(oldest->bits, 0, k->v->n_words * sizeof *inside);
    walk_lifted(k, oldest, 0, state, loop_classes(k, state), full);
    return oldest;
}

static void mask_expression(struct mask_cache *k, struct thread t)
{
    struct local *l = find_local(k, thread_a(t), 0);
    uint32_t mark = k->threads.n;
    if (!l) return;
    add_bits(k, l->bits);
    leave_string(k, t);
    for (uint32_t e = 0; e < l->exits.n; e += 2) walk_exit(k, l->exits.w[e], mark);
    k->threads.n = mark;
}

static void mask_string(struct mask_cache *k, struct thread t)
{
    struct store *s = &k->g->s;
    node state = thread_a(t), re = lift_re(s, state), free = re_any_text(s);
    const struct free_text *f = &k->v->text[lift_kind(s, state)];
    const uint32_t *w = node_words(s, re);
    bool length = node_kind(s, re) == RE_REP && w[0] == re_any(s);
    uint32_t mark = k->threads.n;
    if (!lift_at_border(s, state)) {
        walk(k, &k->v->all, 0, t, k->n_text);
        return;
    }
    if (!length && !becomes_free(s, re, free)) {
        t.head =
            thread_make(H_STRING, lift_start(s, lift_kind(s, state), mask_relax(k, re)), 0, 0, 0)
                .head;
        mask_expression(k, t);
        return;
    }
    leave_string(k, t);
    add_free(k, f, mark);
    k->threads.n = mark;
    if (length) {
        if (w[1] > 0 || w[2] < k->v->max_chars) limit_length(k, f, w[1], w[2]);
    } else {
        patch_string(k, 0, t, free, k->n_text);
    }
}

/* ---- keys ---- */

/* Tokens whose beginning is still that of a known name, or of a name that was there. `base`: where
 * any other name would be. */
static void patch_key(struct mask_cache *k, uint32_t i, struct thread t, node base, size_t pos)
{
    const struct trie *all = &k->v->all;
    struct grammar *g = k->g;
    struct machine m = { g, k->text, pos, &k->doubt };
    for (uint32_t c = first_child(all, i); c < last_child(all, i); c++) {
        uint32_t to = lift_step(&g->s, t.b, all->nodes[c].byte),
                 other = lift_step(&g->s, base, all->nodes[c].byte);
        if (to == other && to != LEADS_OUT) continue;
        k->text[pos] = (char)all->nodes[c].byte;
        struct thread next = thread_make(H_KEY, thread_a(t), to, t.c, t.below);
        if (to == LEADS_OUT) { /* a name of its own: what follows it is another matter */
            uint32_t mark = k->threads.n;
            mask_clear(k, c);
            object_key_ends(&m, t, &k->threads);
            if (k->threads.n > mark) set_tokens(k, all, c);
            for (uint32_t x = mark; x < k->threads.n; x++)
                walk(k, all, c, k->threads.at[x], pos + 1);
            k->threads.n = mark;
        } else if (object_key_lives(g, thread_a(t), to)) {
            set_tokens(k, all, c);
            if (other <= LEADS_OUT) walk(k, all, c, next, pos + 1);
            else patch_key(k, c, next, other, pos + 1);
        } else {
            mask_clear(k, c);
        }
    }
}

/* A name that nothing is said of: the same mask in every such key of an object. */
static bool is_free_key(struct grammar *g, node base)
{
    const uint32_t *w = node_words(&g->s, lift_re(&g->s, base));
    uint32_t n = node_n(&g->s, lift_re(&g->s, base));
    node free = re_any_text(&g->s);
    return n == 4 && w[2] == free && w[3] == free; /* no patterns, no `some`, any name */
}

static void mask_key(struct mask_cache *k, struct thread t)
{
    struct grammar *g = k->g;
    const struct object_info *o = object_info(g, thread_a(t));
    uint32_t mark = k->threads.n;
    if (!o || !o->unknown || !lift_at_border(&g->s, t.b)) {
        walk(k, &k->v->all, 0, t, k->n_text);
        return;
    }
    node base = object_key_base(g, t.b);
    struct machine m = { g, NULL, 0, NULL };
    struct thread other = thread_make(H_KEY, thread_a(t), base, t.c, t.below);
    if (is_free_key(g, base)) {
        object_key_ends(&m, other, &k->threads);
        add_free(k, &k->v->text[lift_kind(&g->s, base)], mark);
    } else {
        struct local *l = find_local(k, base, thread_a(t));
        if (!l) return;
        add_bits(k, l->bits);
        for (uint32_t e = 0; e < l->exits.n; e += 2) {
            other.b = l->exits.w[e + 1];
            k->threads.n = mark;
            object_key_ends(&m, other, &k->threads);
            walk_exit(k, l->exits.w[e], mark);
        }
    }
    k->threads.n = mark;
    if (t.b != base) patch_key(k, 0, t, base, k->n_text);
}

/* ---- all threads ---- */

/* Text that is all there is: a pattern or a GBNF grammar. */
static bool is_whole_text(struct grammar *g, struct thread t)
{
    uint32_t n;
    const struct thread *below = config_threads(g, t.below, &n);
    return n == 1 && thread_head(below[0]) == H_END && !thread_a(below[0]);
}

static void mask_thread(struct mask_cache *k, struct thread t)
{
    k->first = t;
    if (thread_head(t) == H_STRING) {
        mask_string(k, t);
    } else if (thread_head(t) == H_KEY) {
        mask_key(k, t);
    } else if (thread_head(t) == H_RAW && is_whole_text(k->g, t)) {
        struct local *l = find_local(k, thread_a(t), 0);
        if (l) add_bits(k, l->bits);
    } else {
        walk(k, &k->v->all, 0, t, k->n_text);
    }
}

/* Masks that take tokens out again are made by themselves. */
static void compute(struct mask_cache *k, node config, uint32_t *out)
{
    uint32_t n;
    const struct thread *t = config_threads(k->g, config, &n);
    size_t size = k->v->n_words * sizeof *out;
    memset(out, 0, size);
    for (uint32_t i = 0; i < n; i++) {
        bool alone = i == 0 || (thread_head(t[i]) != H_STRING && thread_head(t[i]) != H_KEY);
        k->bits = alone ? out : k->spare;
        if (!alone) memset(k->spare, 0, size);
        mask_thread(k, t[i]);
        for (uint32_t w = 0; w < k->v->n_words && !alone; w++) out[w] |= k->spare[w];
    }
    for (uint32_t i = 0; i < k->v->n_ends && config_may_end(k->g, config); i++)
        out[k->v->ends[i] / 32] |= 1u << k->v->ends[i] % 32;
    k->bits = out;
    if (k->g->one_spelling) mask_unique(k, config);
}

const uint32_t *mask_find(struct mask_cache *k, node config, char *text, size_t n)
{
    struct kept *oldest = &k->kept[0];
    for (uint32_t i = 0; i < N_KEPT; i++) {
        struct kept *c = &k->kept[i];
        if (c->bits && c->config == config) {
            c->used = ++k->clock;
            return c->bits;
        }
        if (c->used < oldest->used) oldest = c;
    }
    if (!oldest->bits) oldest->bits = mem_alloc(k->v->n_words, sizeof *oldest->bits);
    if (!oldest->bits) {
        store_fail(&k->g->s, BZ_ERR_MEMORY, "out of memory for a mask");
        return NULL;
    }
    k->text = text;
    k->n_text = n;
    k->doubt = (struct doubt) { .begin = n };
    oldest->config = config;
    oldest->used = ++k->clock;
    compute(k, config, oldest->bits);
    if (k->g->s.status || k->doubt.looked_back) oldest->config = 0; /* of this text alone */
    return k->g->s.status ? NULL : oldest->bits;
}
