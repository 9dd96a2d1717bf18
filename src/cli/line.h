/* line.h - a line typed at a terminal, with editing and the lines before it.
 *
 * Arrows, Home, End, Ctrl-A/E/B/F move; Backspace, Delete, Ctrl-W/U/K erase; Up and Down (Ctrl-P/N) bring
 * earlier lines of this run back; Ctrl-L clears the screen. A pasted text of several lines stays one
 * line. Lines are not written to disk: what was typed stays in this process.
 */
#ifndef BEZEL_CLI_LINE_H
#define BEZEL_CLI_LINE_H

#include "base/str.h"

enum line_result { LINE_READ, LINE_INTERRUPT, LINE_END };

struct line_history {
    char **lines;
    size_t n, cap;
};

/* Fill *out with what was typed, without its newline. Where standard input is no terminal, or one that
 * cannot move its cursor (TERM=dumb), the line is read as it comes and `prompt` is still shown if
 * `interactive`. LINE_INTERRUPT: Ctrl-C, with nothing read. LINE_END: Ctrl-D on an empty line, or the
 * input's end. */
enum line_result line_read(struct line_history *h, const char *prompt, bool interactive,
                           struct buf *out);

void line_history_add(struct line_history *h, struct str line);
void line_history_free(struct line_history *h);

/* Give the terminal back as it was; may be called from a signal handler, also when nothing is to do. */
void line_restore_terminal(void);

#endif
