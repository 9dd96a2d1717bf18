/* tokenizer.h - text to token ids and back (Gemma 4's SentencePiece-flavoured BPE).
 *
 * Special tokens are found by their text and type in the file; no id is assumed.
 */
#ifndef BEZEL_TEXT_TOKENIZER_H
#define BEZEL_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "io/gguf.h"

enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6,
};

/* Tokens that code has to know, by their text. -1 when the vocabulary has none. */
enum special {
    SPECIAL_PAD,          /* <pad> */
    SPECIAL_EOS,          /* <eos> */
    SPECIAL_BOS,          /* <bos> */
    SPECIAL_UNK,          /* <unk> */
    SPECIAL_MASK,         /* <mask> */
    SPECIAL_THINK,        /* <|think|> */
    SPECIAL_CHANNEL,      /* <|channel> */
    SPECIAL_CHANNEL_END,  /* <channel|> */
    SPECIAL_TURN,         /* <|turn> */
    SPECIAL_TURN_END,     /* <turn|> */
    SPECIAL_TOOL,         /* <|tool> */
    SPECIAL_TOOL_END,     /* <tool|> */
    SPECIAL_CALL,         /* <|tool_call> */
    SPECIAL_CALL_END,     /* <tool_call|> */
    SPECIAL_RESPONSE,     /* <|tool_response> */
    SPECIAL_RESPONSE_END, /* <tool_response|> */
    SPECIAL_QUOTE,        /* <|"|> */
    SPECIAL_IMAGE_BEGIN,  /* <|image> */
    SPECIAL_IMAGE,        /* <|image|> */
    SPECIAL_IMAGE_END,    /* <image|> */
    SPECIAL_AUDIO_BEGIN,  /* <|audio> */
    SPECIAL_AUDIO,        /* <|audio|> */
    SPECIAL_AUDIO_END,    /* <audio|> */
    SPECIAL_VIDEO,        /* <|video|> */
    N_SPECIAL,
};

struct str special_text(enum special which); /* as a vocabulary spells it */

struct tokenizer; /* opaque */

/* Read the vocabulary of a GGUF (a vocabulary-only file is enough). Copies what it keeps. The known
 * special tokens and the byte tokens have the type that their text says, whatever the file says. On
 * failure *out is untouched. */
enum bz_status tokenizer_open(struct tokenizer **out, const struct gguf *g, struct bz_err *err);

/* Read a tokenizer in pieces of n entries: tokens, then merges. Before that only the number of
 * tokens is known, and the tokens that are never drawn. While there are more pieces the gguf must
 * stay, and nothing else may be asked. */
enum bz_status tokenizer_begin(struct tokenizer **out, const struct gguf *g, struct bz_err *err);
enum bz_status tokenizer_read_on(struct tokenizer *t, uint32_t n, bool *more, struct bz_err *err);
void tokenizer_close(struct tokenizer *t);

uint32_t tokenizer_size(const struct tokenizer *t);
int32_t tokenizer_special(const struct tokenizer *t, enum special which);

/* An id outside the vocabulary is no end and not special, is unused, and has no text. */
bool tokenizer_is_end(const struct tokenizer *t, int32_t id);     /* end of generation */
bool tokenizer_is_special(const struct tokenizer *t, int32_t id); /* one of enum special */
enum token_type tokenizer_type(const struct tokenizer *t, int32_t id);
struct str tokenizer_text(const struct tokenizer *t, int32_t id);   /* as in the file */
int32_t tokenizer_find(const struct tokenizer *t, struct str text); /* -1 when absent */

/* Ids that must never be drawn (tokenizer.ggml.suppress_tokens). */
const int32_t *tokenizer_suppressed(const struct tokenizer *t, size_t *n);

/* A growing list of ids; zero is empty. */
struct ids {
    int32_t *data;
    size_t n, cap;
};
bool ids_push(struct ids *v, int32_t id);
void ids_free(struct ids *v);

struct tokenize_options {
    bool no_bos; /* do not put <bos> in front (it is never doubled in any case) */
    bool plain;  /* no text is a special token; user-defined tokens that are only words of the
                  * vocabulary, and none of enum special, are still matched */
};

/* Append the ids of text to out. On failure out holds what it held. May be called from several
 * threads at once. */
enum bz_status tokenizer_encode(const struct tokenizer *t, struct str text,
                                struct tokenize_options opt, struct ids *out, struct bz_err *err);

/* A text and the places where it has special tokens. Nothing else in it is a special token,
 * whatever it spells. So a prompt holds what people wrote beside the marks of the chat format, and
 * neither is taken for the other. Zero is empty. A failed allocation is remembered in
 * text.failed. */
struct marked {
    struct buf text;
    struct mark {
        size_t at; /* where in the text special_text(which) stands */
        enum special which;
    } *marks;
    size_t n_marks, cap;
};
void marked_put(struct marked *m, enum special which);
void marked_cut(struct marked *m, size_t n); /* keep the first n bytes */
void marked_free(struct marked *m);

/* As tokenizer_encode: marks are tokens, all else is plain. */
enum bz_status tokenizer_encode_marked(const struct tokenizer *t, const struct marked *m,
                                       bool no_bos, struct ids *out, struct bz_err *err);

/* Streaming decode: feed ids one by one, get whole code points only. Zero is the start. */
struct detok {
    unsigned char held[4]; /* an unfinished code point from byte tokens */
    unsigned n_held;
};

/* Append the text of one id to out. `specials`: control tokens show their text. Bytes that cannot
 * become a code point turn into U+FFFD. */
void detok_feed(struct detok *d, const struct tokenizer *t, int32_t id, bool specials,
                struct buf *out);
/* What is held back at the end of the stream comes out as U+FFFD. */
void detok_end(struct detok *d, struct buf *out);

#endif
