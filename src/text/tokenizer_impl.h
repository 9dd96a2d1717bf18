/* tokenizer_impl.h - the vocabulary as the files of this module see it. Private to src/text.
 *
 * BPE works on symbols, not on strings. A symbol is a number:
 *     below n_tok            that token's text
 *     n_tok + k              extra k: text that a merge makes but that is no token
 *     SYMBOL_CHAR | c        code point c that is neither
 *     SYMBOL_MUTE | c        code point c that is a token apart (below); it never merges
 *
 * A merge is identified by the symbol that it makes and the number of bytes of its left part. The
 * file lists merges by what they make, so reading them needs no search; looking one up needs a
 * search for the text of both parts.
 */
#ifndef BEZEL_TEXT_TOKENIZER_IMPL_H
#define BEZEL_TEXT_TOKENIZER_IMPL_H

#include "base/mem.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

#define SYMBOL_CHAR 0x80000000u
#define SYMBOL_MUTE 0xc0000000u
#define SYMBOL_NONE 0xffffffffu
#define SPACE_CHAR  0x2581u /* in the vocabulary a space is written as this character */
#define N_BMP       0x10000u

/* Its place in the list is its rank. */
struct merge {
    uint32_t before; /* the one before it that makes the same symbol, or SYMBOL_NONE */
    uint32_t n_left; /* bytes of its left part */
};

/* The limit of a special token's length. Each place where a special token might stand, and each
 * pair that might merge, is compared with that many bytes at most; without a limit the vocabulary
 * would decide how long a text takes. Longer special tokens have no use. */
#define MAX_SPECIAL 128u
#define MAX_MERGED  1024u

/* A token that is matched as a whole in the text before any BPE. */
struct special_text {
    struct str text;
    int32_t id;
};

#define KIND_TYPE 0x07 /* enum token_type */
#define KIND_MARK 0x40 /* one of enum special */
#define KIND_END  0x80 /* generation stops here */

struct tokenizer {
    uint32_t n_tok;
    char *text;      /* every token's bytes, one after the other */
    uint32_t *start; /* n_tok + 1: where each begins in text */
    uint8_t *kind;   /* n_tok: type, KIND_MARK, KIND_END */
    struct strmap by_text;
    bool has_twins; /* two tokens of one text: by_text has the first */
    int32_t special[N_SPECIAL];
    int32_t byte_id[256]; /* <0x00> .. <0xFF> */
    int32_t *suppressed;
    size_t n_suppressed;

    struct special_text *specials; /* sorted by their bytes, so a prefix comes first */
    uint32_t n_specials;
    uint32_t special_from[257]; /* those that begin with byte b: [special_from[b], [b + 1]) */
    bool starts[2][256];        /* [plain]: a matched token begins with this byte */

    struct merge *merges;
    uint32_t
        *last_merge; /* of each symbol, tokens and extras: the last that makes it, or SYMBOL_NONE */
    size_t longest;  /* bytes of the longest text that a merge makes */
    uint8_t joins[256][32]; /* bit [a][b]: some merge joins a symbol ending in class a to one
                             * beginning in class b (char_class) */
    uint32_t *chars;        /* N_BMP: symbol of each code point; a space's is SPACE_CHAR's */

    /* Until all is read: where from, how far the tokens are, and, once these are, the merges. */
    const struct gguf *file;
    const struct gguf_kv *tokens;
    uint64_t cursor;
    uint32_t n_copied;
    struct merge_reader *reader;

    struct str *extras; /* text in extra_text */
    uint32_t n_extras, extra_cap;
    struct strmap by_extra;
    struct arena extra_text;
};

static inline struct str token_text(const struct tokenizer *t, uint32_t id)
{
    return (struct str) { t->text + t->start[id], t->start[id + 1] - t->start[id] };
}

static inline enum token_type token_kind(const struct tokenizer *t, uint32_t id)
{
    return (enum token_type)(t->kind[id] & KIND_TYPE);
}

/* Is the token's text matched where control tokens are not? */
static inline bool token_is_word(const struct tokenizer *t, uint32_t id)
{
    return token_kind(t, id) == TOKEN_USER_DEFINED && !(t->kind[id] & KIND_MARK);
}

/* Text reaches these only through the special-token partition or byte by byte. A merge that built
 * one would let ordinary text speak with the voice of a control token, so it does not count. */
static inline bool token_is_apart(const struct tokenizer *t, uint32_t id)
{
    enum token_type type = token_kind(t, id);
    return type == TOKEN_CONTROL || type == TOKEN_UNKNOWN || type == TOKEN_BYTE ||
           (t->kind[id] & KIND_MARK);
}

/* The value of "<0x2F>" (upper-case hex), or -1. */
int tokenizer_byte_value(struct str s);

/* The token or extra of this text; SYMBOL_NONE: there is none, or a token apart (*apart). */
uint32_t tokenizer_symbol(const struct tokenizer *t, struct str s, bool *apart);

/* Symbol for a code point past the BMP. */
uint32_t tokenizer_char_symbol(const struct tokenizer *t, uint32_t cp);

/* Merges, extras, joins and chars, n merges at a time. Tokens and their types must be final. */
enum bz_status tokenizer_begin_merges(struct tokenizer *t, const struct gguf *g,
                                      struct bz_err *err);
enum bz_status tokenizer_read_merges(struct tokenizer *t, uint32_t n, bool *more,
                                     struct bz_err *err);
void tokenizer_end_merges(struct tokenizer *t);

/* Decode as the reference does: surrogates pass, overlong forms decode, anything else malformed is
 * U+FFFD and one byte. (utf8_decode is strict; this one decides only what text means to BPE.) */
static inline uint32_t text_char(const char *p, size_t n, size_t *used)
{
    const unsigned char *b = (const unsigned char *)p;
    *used = 1;
    if (b[0] < 0x80) return b[0];
    size_t len = b[0] < 0xc0 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : b[0] < 0xf8 ? 4 : 0;
    if (len == 0 || len > n) return 0xfffd;
    uint32_t cp = b[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0xfffd;
        cp = cp << 6 | (b[i] & 0x3fu);
    }
    if (cp > 0x10ffff) return 0xfffd;
    *used = len;
    return cp;
}

/* 256 classes of characters: ASCII by itself, the rest by the first byte of its UTF-8. The space's
 * stand-in counts as the space, since that is where words end. */
static inline unsigned char_class(uint32_t cp)
{
    if (cp < 0x80) return cp;
    if (cp == SPACE_CHAR) return ' ';
    if (cp < 0x800) return 0xc0 | cp >> 6;
    if (cp < 0x10000) return 0xe0 | cp >> 12;
    return 0xf0 | cp >> 18;
}

/* The rank of the first merge that makes the symbol out of a left part of so many bytes and a right
 * part, or SYMBOL_NONE. */
static inline uint32_t merge_rank(const struct tokenizer *t, uint32_t symbol, size_t n_left)
{
    uint32_t found = SYMBOL_NONE;
    for (uint32_t m = t->last_merge[symbol]; m != SYMBOL_NONE; m = t->merges[m].before)
        if (t->merges[m].n_left == n_left) found = m;
    return found;
}

#endif
