/* tags.h - tags of the chat format as single bytes that UTF-8 does not have.
 *
 * Text may spell a tag and is still text: a string with <|"|> in it is written by other tokens than
 * the tag is. Where that matters, texts hold these bytes for tags.
 */
#ifndef BEZEL_TEXT_TAGS_H
#define BEZEL_TEXT_TAGS_H

#include "text/tokenizer.h"

enum tag_byte {
    BYTE_FIRST = 0xf8,
    BYTE_CALL = BYTE_FIRST,
    BYTE_CALL_END,
    BYTE_QUOTE,
    BYTE_CHANNEL,
    BYTE_CHANNEL_END,
    BYTE_RESPONSE,
    BYTE_END /* and one more */
};

/* The byte of a token; 0: it is none of these tags. */
unsigned tag_byte(const struct tokenizer *t, int32_t id);
enum special tag_special(unsigned byte);
/* The byte of the tag that a text ends with; 0: it ends with none. */
unsigned tag_at_end(struct str text);

/* ---- values of a call's arguments, piece by piece ---- */

/* A value in the notation of calls, with tags as bytes, to JSON. Zero is before a value. The text
 * must be such a value or its beginning, as a grammar keeps it: what is not makes no JSON. */
struct call_json {
    enum { CALL_VALUE, CALL_STRING, CALL_KEY_START, CALL_KEY, CALL_QUOTED_KEY } state;
    uint32_t depth;        /* brackets that are open */
    uint32_t is_object[8]; /* bits, of the outermost 256 */
};

/* Append JSON to out. Pieces end between code points. Returns how much of the text was read: all,
 * or up to the end of an object or array that was the whole value. */
size_t call_json_put(struct call_json *c, struct str text, struct buf *out);

#endif
