/* matcher_impl.h - a matcher. Private to matcher.c and finish.c. */
#ifndef BEZEL_GRAMMAR_MATCHER_IMPL_H
#define BEZEL_GRAMMAR_MATCHER_IMPL_H

#include "grammar/mask.h"
#include "grammar/unique.h"

struct matcher {
    struct grammar *g;
    struct vocab *v;
    struct buf text;          /* all bytes so far */
    struct threads now, next; /* where it stands */
    node config;              /* the same as a node */
    struct vec past;          /* configurations and lengths of the text before each advance */
    bool stuck;               /* the last mask had no token */
};

#endif
