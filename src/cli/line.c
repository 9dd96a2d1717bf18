#include "cli/line.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "base/mem.h"
#include "base/utf8.h"

enum {
    CTRL_A = 1,
    CTRL_B = 2,
    CTRL_C = 3,
    CTRL_D = 4,
    CTRL_E = 5,
    CTRL_F = 6,
    CTRL_H = 8,
    CTRL_K = 11,
    CTRL_L = 12,
    CTRL_N = 14,
    CTRL_P = 16,
    CTRL_U = 21,
    CTRL_W = 23,
    ESCAPE = 27,
    BACKSPACE = 127,
    DELETE = 256, /* from here on keys that arrive as escape sequences */
    PASTE_BEGIN,
    PASTE_END,
    UNKNOWN_KEY,
    INPUT_END,
};

struct editor {
    const char *prompt;
    struct buf *text;
    size_t cursor; /* bytes before it */
    struct line_history *history;
    size_t line;    /* of the history; == n: the new line */
    char *new_line; /* while an earlier line is shown; owned */
    bool pasting;
};

/* ---- the terminal ---- */

static struct termios before;
static volatile sig_atomic_t is_raw;

void line_restore_terminal(void)
{
    static const char no_paste_marks[] = "\033[?2004l";
    if (!is_raw) return;
    is_raw = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    ssize_t n = write(STDOUT_FILENO, no_paste_marks, sizeof no_paste_marks - 1);
    (void)n; /* a terminal that is gone needs no marks */
}

static bool make_raw(void)
{
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return false;
    if (!term || strcmp(term, "dumb") == 0 || tcgetattr(STDIN_FILENO, &before)) return false;
    struct termios raw = before;
    raw.c_iflag &= (tcflag_t) ~(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    raw.c_lflag &= (tcflag_t) ~(ECHO | ICANON | IEXTEN | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)) return false;
    is_raw = 1;
    setlocale(LC_CTYPE, "");      /* for wcwidth */
    fputs("\033[?2004h", stdout); /* pasted text comes between marks */
    return true;
}

static int read_byte(void)
{
    unsigned char c;
    ssize_t n;
    do n = read(STDIN_FILENO, &c, 1);
    while (n < 0 && errno == EINTR);
    return n == 1 ? c : INPUT_END;
}

/* ESC [ ... or ESC O ..., after the ESC. */
static int read_sequence(void)
{
    int kind = read_byte(), number = 0, c;
    if (kind != '[' && kind != 'O') return UNKNOWN_KEY;
    for (c = read_byte(); (c >= '0' && c <= '9') || c == ';'; c = read_byte())
        if (c != ';' && number < 1000) number = number * 10 + (c - '0');
    switch (c) {
    case 'A': return CTRL_P;
    case 'B': return CTRL_N;
    case 'C': return CTRL_F;
    case 'D': return CTRL_B;
    case 'H': return CTRL_A;
    case 'F': return CTRL_E;
    case '~': break;
    default: return UNKNOWN_KEY;
    }
    switch (number) {
    case 1:
    case 7: return CTRL_A;
    case 4:
    case 8: return CTRL_E;
    case 3: return DELETE;
    case 200: return PASTE_BEGIN;
    case 201: return PASTE_END;
    default: return UNKNOWN_KEY;
    }
}

static size_t columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20) return 80;
    return size.ws_col;
}

/* ---- what is shown ---- */

static size_t char_bytes(const struct buf *b, size_t at)
{
    size_t used;
    utf8_decode(b->data + at, b->n - at, &used);
    return used;
}

static bool is_control(const struct buf *b, size_t at)
{
    size_t used;
    return utf8_is_control(utf8_decode(b->data + at, b->n - at, &used));
}

static size_t char_columns(const struct buf *b, size_t at)
{
    size_t used;
    int width = wcwidth((wchar_t)utf8_decode(b->data + at, b->n - at, &used));
    return width < 0 ? 1 : (size_t)width;
}

/* Colours in the prompt take no room. */
static size_t prompt_columns(const char *prompt)
{
    size_t n = 0;
    for (; *prompt; prompt++) {
        if (*prompt == '\033')
            while (*prompt && *prompt != 'm') prompt++;
        else n++;
    }
    return n;
}

static size_t columns_between(const struct buf *b, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t at = from; at < to; at += char_bytes(b, at)) n += char_columns(b, at);
    return n;
}

/* One row of the terminal: a longer line is shown around the cursor. */
static void show(const struct editor *e)
{
    const struct buf *b = e->text;
    size_t room = columns() - prompt_columns(e->prompt) - 1, from = 0, to, shown = 0;
    size_t ahead = columns_between(b, 0, e->cursor);
    for (; ahead > room; from += char_bytes(b, from)) ahead -= char_columns(b, from);
    printf("\r%s", e->prompt);
    for (to = from; to < b->n; to += char_bytes(b, to)) {
        shown += char_columns(b, to);
        if (shown > room) break;
        if (is_control(b, to)) putchar(' '); /* such as a pasted newline */
        else fwrite(b->data + to, 1, char_bytes(b, to), stdout);
    }
    printf("\033[K\r");
    size_t right = prompt_columns(e->prompt) + ahead;
    if (right) printf("\033[%zuC", right);
    fflush(stdout);
}

/* ---- what keys do ---- */

static void erase(struct editor *e, size_t from, size_t to)
{
    struct buf *b = e->text;
    if (to > b->n || from >= to) return;
    memmove(b->data + from, b->data + to, b->n - to);
    b->n -= to - from;
    b->data[b->n] = 0;
    e->cursor = from;
}

static void insert(struct editor *e, char c)
{
    struct buf *b = e->text;
    buf_putc(b, c);
    if (b->failed) return;
    memmove(b->data + e->cursor + 1, b->data + e->cursor, b->n - 1 - e->cursor);
    b->data[e->cursor++] = c;
}

static size_t char_before(const struct editor *e)
{
    size_t at = e->cursor;
    while (at > 0 && (e->text->data[--at] & 0xc0) == 0x80) continue;
    return at;
}

static size_t word_before(const struct editor *e)
{
    size_t at = e->cursor;
    while (at > 0 && e->text->data[at - 1] == ' ') at--;
    while (at > 0 && e->text->data[at - 1] != ' ') at--;
    return at;
}

static void show_line(struct editor *e, size_t line)
{
    if (line > e->history->n || line == e->line) return;
    if (e->line == e->history->n) {
        mem_free(e->new_line);
        e->new_line = mem_copy_str(e->text->data ? e->text->data : "", e->text->n);
    }
    const char *text = line < e->history->n ? e->history->lines[line] : e->new_line;
    e->line = line;
    e->text->n = 0;
    buf_puts(e->text, text ? text : "");
    e->cursor = e->text->n;
}

static void press(struct editor *e, int key)
{
    switch (key) {
    case CTRL_A: e->cursor = 0; break;
    case CTRL_E: e->cursor = e->text->n; break;
    case CTRL_B: e->cursor = char_before(e); break;
    case CTRL_F:
        if (e->cursor < e->text->n) e->cursor += char_bytes(e->text, e->cursor);
        break;
    case BACKSPACE:
    case CTRL_H: erase(e, char_before(e), e->cursor); break;
    case CTRL_D:
    case DELETE:
        if (e->cursor < e->text->n) erase(e, e->cursor, e->cursor + char_bytes(e->text, e->cursor));
        break;
    case CTRL_K: erase(e, e->cursor, e->text->n); break;
    case CTRL_U: erase(e, 0, e->cursor); break;
    case CTRL_W: erase(e, word_before(e), e->cursor); break;
    case CTRL_L: fputs("\033[H\033[2J", stdout); break;
    case CTRL_P:
        if (e->line > 0) show_line(e, e->line - 1);
        break;
    case CTRL_N: show_line(e, e->line + 1); break;
    default:
        if (key >= ' ' && key < DELETE) insert(e, (char)key);
    }
}

/* The bytes of one character are not shown one by one. */
static bool is_whole(const struct editor *e)
{
    size_t at = char_before(e);
    return at == e->cursor || utf8_len((unsigned char)e->text->data[at]) <= e->cursor - at;
}

static enum line_result edit(struct editor *e)
{
    show(e);
    for (;;) {
        int key = read_byte();
        if (key == ESCAPE) key = read_sequence();
        if (key == INPUT_END) return LINE_END;
        if (key == PASTE_BEGIN || key == PASTE_END) {
            e->pasting = key == PASTE_BEGIN;
        } else if (e->pasting) {
            if (key == '\r' || key == '\n') insert(e, '\n');
            else if (key == '\t' || (key >= ' ' && key < DELETE)) insert(e, (char)key);
        } else if (key == '\r' || key == '\n') {
            e->cursor = e->text->n;
            show(e);
            return LINE_READ;
        } else if (key == CTRL_C) {
            return LINE_INTERRUPT;
        } else if (key == CTRL_D && e->text->n == 0) {
            return LINE_END;
        } else {
            press(e, key);
        }
        if (!e->pasting && is_whole(e)) show(e);
    }
}

/* ---- a line as it comes ---- */

static enum line_result read_plain(const char *prompt, bool interactive, struct buf *out)
{
    if (interactive) {
        fputs(prompt, stdout);
        fflush(stdout);
    }
    char *line = NULL;
    size_t cap = 0;
    errno = 0;
    ssize_t n = getline(&line, &cap, stdin);
    bool interrupted = n < 0 && errno == EINTR;
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) n--;
    if (n > 0) buf_put(out, line, (size_t)n);
    free(line);
    if (interrupted) clearerr(stdin);
    return n >= 0 ? LINE_READ : interrupted ? LINE_INTERRUPT : LINE_END;
}

enum line_result line_read(struct line_history *h, const char *prompt, bool interactive,
                           struct buf *out)
{
    out->n = 0;
    if (!interactive || !make_raw()) return read_plain(prompt, interactive, out);
    struct editor e = { .prompt = prompt, .text = out, .history = h, .line = h->n };
    enum line_result r = edit(&e);
    mem_free(e.new_line);
    line_restore_terminal();
    if (r != LINE_END) putchar('\n');
    fflush(stdout);
    return r;
}

void line_history_add(struct line_history *h, struct str line)
{
    if (h->n && str_is(line, h->lines[h->n - 1])) return;
    if (h->n == h->cap) {
        size_t cap = h->cap ? 2 * h->cap : 64;
        char **lines = mem_grow(h->lines, cap, sizeof *lines);
        if (!lines)
            return; /* a line that cannot be brought back is no reason to end a conversation */
        h->lines = lines;
        h->cap = cap;
    }
    char *copy = mem_copy_str(line.p, line.n);
    if (copy) h->lines[h->n++] = copy;
}

void line_history_free(struct line_history *h)
{
    for (size_t i = 0; i < h->n; i++) mem_free(h->lines[i]);
    mem_free(h->lines);
    *h = (struct line_history) { 0 };
}
