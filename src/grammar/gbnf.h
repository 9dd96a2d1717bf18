/* gbnf.h - llama.cpp's grammars (GBNF) to expressions. */
#ifndef BEZEL_GRAMMAR_GBNF_H
#define BEZEL_GRAMMAR_GBNF_H

#include "grammar/re.h"

/* The rule `root`. On failure the store's sentence names the line or the rule. */
node gbnf_read(struct store *s, struct str text);

#endif
