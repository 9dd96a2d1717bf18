/* stop.h - end a stream of text at the first of some strings, wherever token borders fall. */
#ifndef BEZEL_TEXT_STOP_H
#define BEZEL_TEXT_STOP_H

#include <stdbool.h>

#include "base/str.h"

/* Zero-initialise, set the strings, feed. Text that may still become a stop string is held back. */
struct stop_filter {
    const char *const *strings; /* empty ones are ignored */
    size_t n_strings;
    struct buf held;
    bool stopped;
};

/* Take in text and append to out what is now certain. Returns true once a stop string was met (then
 * the rest is swallowed). */
bool stop_feed(struct stop_filter *f, struct str text, struct buf *out);

/* The stream is over: what was held back comes out. */
void stop_end(struct stop_filter *f, struct buf *out);

void stop_free(struct stop_filter *f);

#endif
