/* synth_vocab.c - makes the pieces of a vocabulary, gives them ids, and lists their merges.
 *
 * Pieces are made one by one. A new piece is taken only when BPE over the pieces so far leaves
 * exactly two symbols of it. Then those two merge into it, and later pieces cannot get in the way,
 * since they have higher ranks. So every piece is reachable. "a b" is a merge exactly when a, b and
 * ab are pieces, and its rank is the rank of ab; making more pieces needs no table of merges.
 */
#include "cli/synth_vocab.h"

#include <assert.h>
#include <stdio.h>

#include "base/rng.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "cli/synth_words.h"
#include "text/tokenizer.h"

#define MAX_SYMBOLS 64u
#define NO_PIECE    UINT32_MAX

/* The published layout. */
#define FULL_NEWLINES 107u
#define FULL_SPACES   138u
#define FULL_BYTES    238u
#define FULL_PIECES   494u
#define FULL_CHARS    236743u
#define FULL_TABS     255968u
#define FULL_THOUGHT  45518u
#define FULL_LEGACY   212u /* </s>, an ordinary token */
#define FULL_RUN      31u

/* Words; the rest are ideographs, so that the number of merges comes out right. */
#define FULL_WORDS 80000u

static const struct {
    const char *text;
    uint32_t id; /* at the full size */
    enum token_type type;
} specials[] = {
    { "<pad>", 0, TOKEN_CONTROL },
    { "<eos>", 1, TOKEN_NORMAL }, /* as published: the reader has to know better */
    { "<bos>", 2, TOKEN_CONTROL },
    { "<unk>", 3, TOKEN_CONTROL },
    { "<mask>", 4, TOKEN_CONTROL },
    { "<|tool>", 46, TOKEN_CONTROL },
    { "<tool|>", 47, TOKEN_CONTROL },
    { "<|tool_call>", 48, TOKEN_USER_DEFINED },
    { "<tool_call|>", 49, TOKEN_USER_DEFINED },
    { "<|tool_response>", 50, TOKEN_USER_DEFINED }, /* likewise */
    { "<tool_response|>", 51, TOKEN_USER_DEFINED },
    { "<|\"|>", 52, TOKEN_USER_DEFINED },
    { "<|think|>", 98, TOKEN_CONTROL },
    { "<|channel>", 100, TOKEN_USER_DEFINED },
    { "<channel|>", 101, TOKEN_USER_DEFINED },
    { "<|turn>", 105, TOKEN_CONTROL },
    { "<turn|>", 106, TOKEN_CONTROL },
    { "<|image>", 255999, TOKEN_CONTROL },
    { "<|audio>", 256000, TOKEN_CONTROL },
    { "<|image|>", 258880, TOKEN_CONTROL },
    { "<|audio|>", 258881, TOKEN_CONTROL },
    { "<image|>", 258882, TOKEN_CONTROL },
    { "<audio|>", 258883, TOKEN_CONTROL },
    { "<|video|>", 258884, TOKEN_CONTROL },
};

#define N_SPECIALS ((uint32_t)(sizeof specials / sizeof *specials))

/* Single characters, the most useful first. */
static const struct {
    uint32_t first, last;
} ranges[] = {
    { 0x2581, 0x2581 }, { '!', '~' },         { 0xa1, 0xac },     { 0xae, 0xff },
    { 0x2013, 0x2014 }, { 0x2018, 0x201d },   { 0x2026, 0x2026 }, { 0x20ac, 0x20ac },
    { 0x100, 0x17f },   { 0x391, 0x3a1 },     { 0x3a3, 0x3c9 },   { 0x400, 0x45f },
    { 0x5d0, 0x5ea },   { 0x621, 0x63a },     { 0x904, 0x939 },   { 0xe01, 0xe3a },
    { 0x2190, 0x2199 }, { 0x2200, 0x222b },   { 0x3041, 0x3096 }, { 0x30a1, 0x30fa },
    { 0xfffd, 0xfffd }, { 0x1f600, 0x1f64f }, { 0x4e00, 0x9fa5 },
};

#define N_ASCII 95u  /* characters that no vocabulary is without: the space and what prints */
#define N_LATIN 199u /* with the second row of Latin letters and the typographer's marks */
#define CJK     0x4e00u

/* Where each kind of token goes, and how many there are. */
struct plan {
    uint32_t n_tokens, n_chars, n_newlines, n_spaces, n_tabs, n_pieces;
    uint32_t newlines, spaces, tabs, bytes, chars, pieces; /* first ids */
    bool full;
};

struct build {
    struct synth_vocab *v;
    struct plan plan;
    struct str *made;    /* pieces in the order made, so the index is the rank */
    uint32_t *id;        /* their ids */
    uint32_t n_made;     /* single characters and runs count as well */
    uint32_t next_piece; /* how many have an id from plan.pieces on */
    struct strmap by_text;
    bool failed; /* an allocation did; sticky */
};

/* ---- pieces ---- */

static void add_piece(struct build *b, struct str s, uint32_t id)
{
    char *p = arena_copy_str(&b->v->text, s.p, s.n);
    if (!p) {
        b->failed = true;
        return;
    }
    b->made[b->n_made] = (struct str) { p, s.n };
    b->id[b->n_made] = id;
    strmap_add(&b->by_text, b->made[b->n_made], b->n_made);
    b->n_made++;
}

static bool words_full(const struct build *b, uint32_t n)
{
    return b->failed || b->next_piece == n;
}

static void add_made(struct build *b, struct str s)
{
    add_piece(b, s, b->plan.pieces + b->next_piece++);
}

static uint32_t rank_of(const struct build *b, struct str s)
{
    uint32_t rank;
    return strmap_find(&b->by_text, s, &rank) ? rank : NO_PIECE;
}

/* BPE over the pieces so far. cuts[0..n]: where each of the n symbols left begins, and the end. */
static uint32_t bpe(const struct build *b, struct str s, uint32_t *cuts)
{
    uint32_t n = 0, rank[MAX_SYMBOLS];
    size_t used;
    for (size_t at = 0; at < s.n; at += used) {
        assert(n < MAX_SYMBOLS);
        cuts[n++] = (uint32_t)at;
        utf8_decode(s.p + at, s.n - at, &used);
    }
    cuts[n] = (uint32_t)s.n;
    for (uint32_t from = 0, to = n;;) { /* ranks of the pairs in [from, to) are out of date */
        for (uint32_t i = from; i < to && i + 1 < n; i++)
            rank[i] = rank_of(b, (struct str) { s.p + cuts[i], cuts[i + 2] - cuts[i] });
        uint32_t best = 0;
        for (uint32_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (n < 2 || rank[best] == NO_PIECE) return n;
        n--;
        for (uint32_t i = best + 1; i <= n; i++) cuts[i] = cuts[i + 1];
        for (uint32_t i = best; i + 1 < n; i++) rank[i] = rank[i + 1];
        from = best ? best - 1 : 0;
        to = best + 1;
    }
}

/* Are both parts of s pieces? A character that is no piece stays a symbol, but merges nothing. */
static bool are_pieces(const struct build *b, struct str s, uint32_t cut)
{
    return rank_of(b, (struct str) { s.p, cut }) != NO_PIECE &&
           rank_of(b, (struct str) { s.p + cut, s.n - cut }) != NO_PIECE;
}

/* Make a word a piece, and on the way there what it is built from: two neighbours at a time, now
 * here, now there. A join that merges cannot make is given up with the word. */
static void add_word(struct build *b, struct str word, uint32_t limit)
{
    uint32_t cuts[MAX_SYMBOLS + 1], inner[MAX_SYMBOLS + 1];
    for (;;) {
        uint32_t n = bpe(b, word, cuts);
        if (n < 2 || words_full(b, limit)) return;
        uint32_t i = (uint32_t)word.n % (n - 1);
        struct str join = { word.p + cuts[i], cuts[i + 2] - cuts[i] };
        if (bpe(b, join, inner) != 2 || !are_pieces(b, join, inner[1])) return;
        add_made(b, join);
    }
}

static void add_words(struct build *b, uint32_t limit)
{
    struct synth_words words = { 0 };
    while (!words_full(b, limit)) add_word(b, synth_words_next(&words), limit);
}

static struct str ideographs(const uint32_t *cp, uint32_t n, char *out)
{
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) len += utf8_encode(cp[i], out + len);
    return (struct str) { out, len };
}

/* Fill up with exactly so many pieces that have exactly so many merges. All of them are stretches
 * of one long chain of ideographs in which no two neighbours occur twice. A stretch of k has k - 1
 * merges, as long as the stretches of k - 1 in it are pieces. With n of length 2, n - 1 of length
 * 3, and a and b of lengths 4 and 5:
 *     2n - 1 + a + b = pieces        3n - 2 + 3a + 4b = merges        b < a < n - 1
 */
static void add_ideographs(struct build *b, uint32_t pieces, uint32_t merges)
{
    uint32_t n = (4 * pieces - merges + 9) / 6;
    uint32_t five = merges + 3 * n - 3 * pieces - 1;
    uint32_t four = pieces - 2 * n + 1 - five;
    assert(4 * pieces > merges && merges > 2 * pieces && five < four && four < n - 1);
    const uint32_t counts[] = { n, n - 1, four, five };

    uint32_t *chain = mem_alloc((size_t)n + 1, sizeof *chain);
    if (!chain) {
        b->failed = true;
        return;
    }
    struct rng rng = { 4 };
    char z[4 * 5];
    chain[0] = CJK;
    for (uint32_t i = 0; i < n && !b->failed;) {
        chain[i + 1] = CJK + rng_below(&rng, 8192);
        struct str two = ideographs(chain + i, 2, z);
        if (rank_of(b, two) != NO_PIECE) continue; /* drawn before: draw again */
        add_made(b, two);
        i++;
    }
    for (uint32_t k = 1; k < 4; k++)
        for (uint32_t i = 0; i < counts[k] && !b->failed; i++)
            add_made(b, ideographs(chain + i, k + 2, z));
    mem_free(chain);
}

/* Runs of 1..n of one character; the single one counts only where it is not a character already. */
static void add_runs(struct build *b, const char *unit, uint32_t from, uint32_t n, uint32_t id)
{
    char z[3 * FULL_RUN];
    size_t len = strlen(unit);
    for (uint32_t i = 1; i <= n; i++) {
        memcpy(z + (i - 1) * len, unit, len);
        if (i >= from) add_piece(b, (struct str) { z, i * len }, id + i - from);
    }
}

static void add_chars(struct build *b)
{
    char z[4];
    uint32_t n = 0;
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        for (uint32_t cp = ranges[r].first; cp <= ranges[r].last && n < b->plan.n_chars; cp++)
            add_piece(b, (struct str) { z, utf8_encode(cp, z) }, b->plan.chars + n++);
    assert(b->failed || n == b->plan.n_chars);
}

/* ---- merges ---- */

/* Number of ways to cut piece i into two pieces; with out, each way is written there. */
static uint32_t list_merges(struct build *b, uint32_t i, struct str *out)
{
    struct str s = b->made[i];
    uint32_t n = 0;
    for (size_t at = 1; at < s.n; at++) {
        if (!are_pieces(b, s, (uint32_t)at)) continue;
        if (out) {
            char *p = arena_alloc(&b->v->text, s.n + 1, 1);
            if (!p) {
                b->failed = true;
                return n;
            }
            memcpy(p, s.p, at);
            p[at] = ' ';
            memcpy(p + at + 1, s.p + at, s.n - at);
            out[n] = (struct str) { p, s.n + 1 };
        }
        n++;
    }
    return n;
}

static uint32_t count_merges(struct build *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_made; i++) n += list_merges(b, i, NULL);
    return n;
}

static void put_merges(struct build *b)
{
    struct synth_vocab *v = b->v;
    uint32_t n = count_merges(b);
    v->merges = mem_alloc(n, sizeof *v->merges);
    if (!v->merges) {
        b->failed = true;
        return;
    }
    for (uint32_t i = 0; i < b->n_made && !b->failed; i++)
        v->n_merges += list_merges(b, i, v->merges + v->n_merges);
}

/* ---- layout ---- */

static struct plan make_plan(uint32_t n_tokens)
{
    if (n_tokens == SYNTH_VOCAB_FULL)
        return (struct plan) {
            .n_tokens = n_tokens,
            .n_chars = FULL_TABS - FULL_CHARS,
            .n_newlines = FULL_RUN,
            .n_spaces = FULL_RUN,
            .n_tabs = FULL_RUN,
            .n_pieces = FULL_CHARS - FULL_PIECES,
            .newlines = FULL_NEWLINES,
            .spaces = FULL_SPACES,
            .tabs = FULL_TABS,
            .bytes = FULL_BYTES,
            .chars = FULL_CHARS,
            .pieces = FULL_PIECES,
            .full = true,
        };
    uint32_t run = n_tokens < 1024 ? 6 : FULL_RUN;
    struct plan p = {
        .n_tokens = n_tokens,
        .n_chars = n_tokens < 2048    ? N_ASCII
                   : n_tokens < 16384 ? N_LATIN
                                      : n_tokens / 16,
        .n_newlines = run,
        .n_spaces = run,
        .n_tabs = run / 3,
    };
    p.newlines = 256;
    p.spaces = p.newlines + p.n_newlines;
    p.tabs = p.spaces + p.n_spaces - 1;
    p.chars = p.tabs + p.n_tabs;
    p.pieces = p.chars + p.n_chars;
    p.n_pieces = n_tokens - p.pieces - N_SPECIALS;
    return p;
}

static void put_token(struct build *b, uint32_t id, const char *text, enum token_type type)
{
    size_t n = strlen(text);
    char *p = arena_copy_str(&b->v->text, text, n);
    if (!p) b->failed = true;
    b->v->tokens[id] = (struct str) { p, p ? n : 0 };
    b->v->types[id] = (int32_t)type;
}

static void put_tokens(struct build *b)
{
    struct synth_vocab *v = b->v;
    char z[24];
    for (uint32_t i = 0; i < N_SPECIALS; i++) /* at the end, last first, where ids are free */
        put_token(b, b->plan.full ? specials[i].id : v->n_tokens - 1 - i, specials[i].text,
                  specials[i].type);
    for (uint32_t i = 0; i < 256; i++) {
        snprintf(z, sizeof z, "<0x%02X>", (unsigned)i);
        put_token(b, b->plan.bytes + i, z, TOKEN_BYTE);
    }
    for (uint32_t i = 0; i < b->n_made; i++) {
        v->tokens[b->id[i]] = b->made[i];
        v->types[b->id[i]] = TOKEN_NORMAL;
    }
    if (b->plan.full) put_token(b, FULL_LEGACY, "</s>", TOKEN_NORMAL);
    uint32_t n_unused = 0;
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        v->scores[i] = -1000;
        if (v->tokens[i].p) continue;
        snprintf(z, sizeof z, "<unused%u>", (unsigned)n_unused++);
        put_token(b, i, z, TOKEN_NORMAL);
    }
}

/* The word that opens a thinking block has a published id too. */
static void place_thought(struct build *b)
{
    uint32_t thought = rank_of(b, str_of("thought"));
    for (uint32_t i = 0; i < b->n_made && thought != NO_PIECE; i++)
        if (b->id[i] == FULL_THOUGHT) {
            b->id[i] = b->id[thought];
            b->id[thought] = FULL_THOUGHT;
            return;
        }
}

static void fill(struct build *b)
{
    const struct plan *p = &b->plan;
    add_chars(b);
    add_runs(b, "\n", 1, p->n_newlines, p->newlines);
    add_runs(b, SYNTH_SPACE, 2, p->n_spaces, p->spaces);
    add_runs(b, "\t", 1, p->n_tabs, p->tabs);
    add_words(b, p->full ? FULL_WORDS : p->n_pieces);
    if (p->full && !b->failed) {
        uint32_t merges = count_merges(b);
        add_ideographs(b, p->n_pieces - FULL_WORDS, SYNTH_VOCAB_FULL_MERGES - merges);
        place_thought(b);
    }
    if (b->failed) return;
    put_merges(b);
    put_tokens(b);
}

static int32_t find_special(const struct synth_vocab *v, const char *text)
{
    for (uint32_t i = 0; i < v->n_tokens; i++)
        if (str_is(v->tokens[i], text)) return (int32_t)i;
    return -1;
}

enum bz_status synth_vocab_make(struct synth_vocab *out, uint32_t n_tokens, struct bz_err *err)
{
    if (n_tokens < SYNTH_VOCAB_MIN || n_tokens > SYNTH_VOCAB_FULL)
        return fail(err, BZ_ERR_ARGUMENT, "a vocabulary of %u tokens; %u to %u can be made",
                    (unsigned)n_tokens, SYNTH_VOCAB_MIN, SYNTH_VOCAB_FULL);
    struct synth_vocab v = { .n_tokens = n_tokens };
    struct build b = { .v = &v, .plan = make_plan(n_tokens) };
    v.tokens = mem_alloc(n_tokens, sizeof *v.tokens);
    v.types = mem_alloc(n_tokens, sizeof *v.types);
    v.scores = mem_alloc(n_tokens, sizeof *v.scores);
    b.made = mem_alloc(n_tokens, sizeof *b.made);
    b.id = mem_alloc(n_tokens, sizeof *b.id);
    b.failed = !v.tokens || !v.types || !v.scores || !b.made || !b.id ||
               !strmap_init(&b.by_text, n_tokens);
    if (!b.failed) fill(&b);
    mem_free(b.made);
    mem_free(b.id);
    strmap_free(&b.by_text);
    if (b.failed) {
        synth_vocab_free(&v);
        return fail_memory(err, (uint64_t)n_tokens * 64);
    }
    v.bos = find_special(&v, "<bos>");
    v.eos = find_special(&v, "<eos>");
    v.unk = find_special(&v, "<unk>");
    v.pad = find_special(&v, "<pad>");
    v.mask = find_special(&v, "<mask>");
    *out = v;
    return BZ_OK;
}

void synth_vocab_free(struct synth_vocab *v)
{
    mem_free(v->tokens);
    mem_free(v->types);
    mem_free(v->scores);
    mem_free(v->merges);
    arena_free(&v->text);
    *v = (struct synth_vocab) { 0 };
}

void synth_vocab_put_pieces(struct gguf_writer *w, const struct synth_vocab *v)
{
    gguf_put_strs(w, "tokenizer.ggml.tokens", v->tokens, v->n_tokens);
    gguf_put_array(w, "tokenizer.ggml.scores", GGUF_F32, v->scores, v->n_tokens);
    gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, v->types, v->n_tokens);
    gguf_put_strs(w, "tokenizer.ggml.merges", v->merges, v->n_merges);
    gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)v->bos);
    gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)v->eos);
}

void synth_vocab_put(struct gguf_writer *w, const struct synth_vocab *v)
{
    gguf_put_str(w, "tokenizer.ggml.model", str_of("gemma4"));
    synth_vocab_put_pieces(w, v);
    gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", (uint32_t)v->unk);
    gguf_put_u32(w, "tokenizer.ggml.padding_token_id", (uint32_t)v->pad);
    gguf_put_u32(w, "tokenizer.ggml.mask_token_id", (uint32_t)v->mask);
    gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", false);
}
