/* line.h - a line typed at a terminal, with editing and history.
 *
 * Arrows, Home, End, Ctrl-A/E/B/F move; Backspace, Delete, Ctrl-W/U/K erase; Up and Down (Ctrl-P/N)
 * bring back earlier lines of this run; Ctrl-L clears the screen. A pasted text of several lines
 * stays one line. Lines are not written to disk: what was typed stays in this process.
 */
#ifndef BEZEL_CLI_LINE_H
#define BEZEL_CLI_LINE_H

#include "base/str.h"

enum line_result { LINE_READ, LINE_INTERRUPT, LINE_END };

struct line_history {
    char **lines;
    size_t n, cap;
};

/* Fill *out with what was typed, without its newline. If standard input is no terminal, or its
 * cursor cannot move (TERM=dumb), the line is read as it comes; `prompt` is still shown if
 * `interactive`. LINE_INTERRUPT: Ctrl-C, nothing read. LINE_END: Ctrl-D on an empty line, or the
 * end of the input. */
enum line_result line_read(struct line_history *h, const char *prompt, bool interactive,
                           struct buf *out);

void line_history_add(struct line_history *h, struct str line);
void line_history_free(struct line_history *h);

/* Restore the terminal's settings. Safe in a signal handler, and when nothing is to restore. */
void line_restore_terminal(void);

#endif
