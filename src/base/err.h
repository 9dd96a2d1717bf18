/* err.h - how the world's failures travel: a status, and one sentence for the person.
 *
 * A status says what kind of thing went wrong (a caller can branch on it); the sentence says which
 * file and which fact (a person can act on it). Bugs are not errors: they are asserts.
 */
#ifndef BEZEL_BASE_ERR_H
#define BEZEL_BASE_ERR_H

#include "bezel.h"

/* Write the sentence (err may be NULL) and return st, so that `return fail(...)` is one
 * statement. */
__attribute__((format(printf, 3, 4))) enum bz_status fail(struct bz_err *err, enum bz_status st,
                                                          const char *fmt, ...);

/* Put "prefix: " in front of a sentence already written; returns st. */
__attribute__((format(printf, 3, 4))) enum bz_status fail_prefix(struct bz_err *err,
                                                                 enum bz_status st, const char *fmt,
                                                                 ...);

/* The one sentence for every failed allocation. */
enum bz_status fail_memory(struct bz_err *err, uint64_t n_bytes);

#endif
