#include "cli/watch.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/str.h"
#include "base/utf8.h"

void watch_begin(struct watch *w, const bz_engine *e, uint32_t n_steps)
{
    setlocale(LC_CTYPE, ""); /* for wcwidth */
    setlocale(LC_NUMERIC, "C");
    *w = (struct watch) { .engine = e, .n_steps = n_steps, .terminal = isatty(STDOUT_FILENO) };
    w->color = w->terminal && !getenv("NO_COLOR");
}

/* Room for a canvas of n tokens of about six letters, below the cursor's line. */
static void reserve(struct watch *w, uint32_t n)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20;
    uint32_t rows = known && size.ws_row > 4 ? size.ws_row - 2u : 20;
    w->columns = known ? size.ws_col : 80;
    w->lines = n * 6 / w->columns + 3;
    if (w->lines > rows) w->lines = rows;
    for (uint32_t i = 0; i < w->lines; i++) putchar('\n');
    printf("\033[%uA\0337", w->lines); /* and remember the place */
}

void watch_end(struct watch *w)
{
    if (w->lines) printf("\r\033[J");
    w->lines = 0;
}

/* A token's text as it can stand inside a line. */
static void put_piece(struct buf *out, const struct watch *w, int32_t id, uint32_t *used)
{
    struct bz_err err;
    char *text;
    size_t n, size;
    if (bz_detokenize(w->engine, &id, 1, true, &text, &n, &err)) return;
    for (size_t at = 0; at < n; at += size) {
        uint32_t c = utf8_decode(text + at, n - at, &size);
        int width = wcwidth((wchar_t)c);
        if (utf8_is_control(c) || width < 0) {
            buf_putc(out, ' ');
            *used += 1;
        } else {
            buf_put(out, text + at, size);
            *used += (uint32_t)width;
        }
    }
    bz_free(text);
}

/* The likely tokens: solid where the step accepted them, faint elsewhere. */
static void put_tokens(struct buf *out, const struct watch *w, const struct bz_canvas *c)
{
    uint32_t used = 0, room = w->terminal ? (w->lines - 1) * w->columns : UINT32_MAX;
    bool faint = false;
    for (uint32_t i = 0; i < c->n; i++) {
        bool is_faint = !(c->accepted[i / 32] >> i % 32 & 1);
        size_t before = out->n;
        if (w->color && is_faint != faint) buf_puts(out, is_faint ? "\033[2m" : "\033[0m");
        put_piece(out, w, c->best[i], &used);
        if (used >= room) {
            out->n = before;
            break;
        }
        faint = is_faint;
    }
    if (w->color) buf_puts(out, "\033[0m");
}

bool watch_step(struct watch *w, const struct bz_canvas *c)
{
    struct buf out = { 0 };
    if (w->terminal && !w->lines) reserve(w, c->n);
    if (w->terminal) buf_puts(&out, "\r\033[J");
    buf_printf(&out, "canvas %u, step %u of %u: %u of %u accepted, entropy %.3f%s", c->canvas + 1,
               c->step, w->n_steps, c->n_accepted, c->n, (double)c->mean_entropy,
               w->terminal ? "\n" : ": ");
    put_tokens(&out, w, c);
    if (w->terminal) buf_puts(&out, "\0338");
    else buf_putc(&out, '\n');
    bool ok = !out.failed && fwrite(out.data, 1, out.n, stdout) == out.n;
    buf_free(&out);
    return ok && fflush(stdout) == 0;
}
