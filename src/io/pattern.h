/* pattern.h - does the end of a module's path match a pattern from a LoRA configuration?
 *
 * PEFT reads the keys of rank_pattern and alpha_pattern as regular expressions that must cover a
 * tail of the path starting at a component: "q_proj", "layers\.[0-3]\.mlp\..*". Bezel reads the
 * part of that language that such keys use: literals, '.', classes, \d \w \s, groups, '|', '*',
 * '+', '?', '^' and '$'. Anything else is an error, never a wrong answer.
 */
#ifndef BEZEL_IO_PATTERN_H
#define BEZEL_IO_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* *work grows by the time of the answer, in steps of about a nanosecond: a caller with many
 * patterns and many paths sets a limit. */
enum bz_status pattern_match_tail(bool *out, struct str pattern, struct str path, uint64_t *work,
                                  struct bz_err *err);

#endif
