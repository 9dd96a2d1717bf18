/* json.h - JSON in and out.
 *
 * The reader builds a tree in one arena. Integers stay integers (a tool argument 3 must not become
 * 3.0), object members keep their order, strings are UTF-8 with escapes resolved. Hostile input
 * meets a depth limit of 128 and one sentence with the byte offset.
 */
#ifndef BEZEL_BASE_JSON_H
#define BEZEL_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_INT, JSON_FLOAT, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_type type;
    bool boolean;
    int64_t integer;           /* JSON_INT; integers past 64 bits are JSON_FLOAT */
    double number;             /* JSON_INT and JSON_FLOAT; finite */
    struct str text;           /* JSON_STRING: the value. JSON_INT, JSON_FLOAT: as written. */
    struct str key;            /* set when the parent is an object */
    struct json *child, *next; /* first element / member, next sibling */
    size_t n;                  /* elements or members */
};

/* Parse one value and nothing after it but space. The tree lives in `a`; text is copied. */
enum bz_status json_parse(struct json **out, struct str text, struct arena *a, struct bz_err *err);

/* Member of an object by key (the last one wins when repeated), or NULL; j may be NULL. */
const struct json *json_get(const struct json *j, const char *key);
const struct json *json_at(const struct json *j, size_t i);

/* The string member `key`, or an empty str with p == NULL. */
struct str json_get_str(const struct json *j, const char *key);

/* A JSON string literal, quotes included; bytes that are not UTF-8 become U+FFFD. */
void json_put_string(struct buf *b, struct str s);

/* Compact JSON of a tree. A number with `text` is put as it was written. */
void json_put(struct buf *b, const struct json *j);

/* The shortest decimal that reads back as the same float (f32) or double, laid out as JavaScript
 * does (100 has no point, 1e+21 has an exponent). NaN and infinities, which JSON cannot say, become
 * null. */
void json_put_f32(struct buf *b, float f);
void json_put_f64(struct buf *b, double d);

#endif
