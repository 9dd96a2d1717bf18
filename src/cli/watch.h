/* watch.h - a canvas in the terminal, drawn anew after each step. */
#ifndef BEZEL_CLI_WATCH_H
#define BEZEL_CLI_WATCH_H

#include "bezel.h"

struct watch {
    const bz_engine *engine;
    uint32_t n_steps; /* of a canvas at most */
    bool terminal, color;
    uint32_t lines, columns; /* of the drawing; 0: none is there */
};

void watch_begin(struct watch *w, const bz_engine *e, uint32_t n_steps);

/* On a terminal the drawing is replaced; elsewhere each step is a line. False: it cannot be
 * written. */
bool watch_step(struct watch *w, const struct bz_canvas *c);

/* Take the drawing away; text goes where it was. */
void watch_end(struct watch *w);

#endif
