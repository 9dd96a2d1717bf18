/* regex.h - ECMA-262 regular expressions, as schemas use them, to expressions.
 *
 * With the flag u in mind, and as lenient as engines are without it where that is unambiguous:
 * groups, classes, Unicode properties, greedy and lazy quantifiers (the same set of texts), ^ and $
 * anywhere, lookahead anywhere. Back references, lookbehind and \b are refused: the first is no
 * regular language.
 */
#ifndef BEZEL_GRAMMAR_REGEX_H
#define BEZEL_GRAMMAR_REGEX_H

#include "grammar/re.h"

/* Texts in which the pattern is found somewhere. On failure the store's sentence says why, and
 * where in the pattern. */
node regex_search(struct store *s, struct str pattern);

/* Texts that the pattern matches from beginning to end. */
node regex_whole(struct store *s, struct str pattern);

/* Add the code points of \p{name}; false: there is no such property here. (unicode.c) */
bool unicode_property(struct store *s, struct str name, struct vec *set);

#endif
