/* schema.h - JSON Schema, keyword by keyword, to formulas and their values. */
#ifndef BEZEL_GRAMMAR_SCHEMA_H
#define BEZEL_GRAMMAR_SCHEMA_H

#include "grammar/value.h"

/* Read a document, and find what in it has an address. A grammar may have several, which do not
 * refer to each other. */
enum bz_status schema_open(struct grammar *g, struct str json, struct bz_err *err);
void schema_close(struct grammar *g);

/* The formula of the document that was opened last. */
node schema_root(struct grammar *g);

/* Open everything that can be reached from a formula, so that what cannot be kept is an error now
 * and not in the middle of a text. */
void schema_check(struct grammar *g, node f);

/* The VALUE of F_SCHEMA and F_CONST, by their words. */
node schema_value(struct grammar *g, const uint32_t *w);
node schema_const(struct grammar *g, const uint32_t *w);

/* For the files of the schema reader. */

/* A schema that is being read. */
struct reader {
    struct grammar *g;
    const struct json *j;
    uint32_t resource;
    enum draft_number draft;
};

/* The formula of a schema inside this one. */
node reader_sub(struct reader *r, const struct json *j);
node f_const(struct grammar *g, const struct json *j);
/* What $ref leads to (schema_ref.c). */
node reader_ref(struct reader *r, struct str ref);
void schema_find_resources(struct grammar *g, const struct json *root, struct bz_err *err);
/* Fail with the sentence behind "KEYWORD at PATH: ". */
__attribute__((format(printf, 3, 4))) void reader_fail(struct reader *r, const char *keyword,
                                                       const char *fmt, ...);
/* The failure of another module gets the place in front. */
void reader_place(struct reader *r, const char *keyword);
/* Did a keyword fail that is left out, since the reading is lenient? Then nothing has failed. False
 * if something had failed `before` it was read. */
bool reader_leaves_out(struct reader *r, const char *keyword, enum bz_status before);
/* A keyword that is a whole number, or `otherwise`. */
uint32_t reader_count(struct reader *r, const char *keyword, uint32_t otherwise);

node reader_object(struct reader *r);                         /* schema_object.c: an OBJECT */
node reader_array(struct reader *r);                          /* schema_array.c: an ARRAY */
node reader_text(struct reader *r);                           /* schema_scalar.c: an expression */
node reader_number(struct reader *r, unsigned *exponents);    /* likewise */
node schema_enum(struct grammar *g, const struct json *list); /* a VALUE */

/* Texts of a format, or 0 where it is not known (it then says nothing). (format.c) */
node format_text(struct store *s, struct str name);

#endif
