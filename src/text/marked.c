/* marked.c - texts with marks (tokenizer.h). It owns the list of places; what a mark spells is the
 * tokenizer's. */
#include "base/mem.h"
#include "text/tokenizer.h"

void marked_put(struct marked *m, enum special which)
{
    if (m->n_marks == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 32;
        struct mark *marks = mem_grow(m->marks, cap, sizeof *marks);
        if (!marks) {
            m->text.failed = true;
            return;
        }
        m->marks = marks;
        m->cap = cap;
    }
    m->marks[m->n_marks++] = (struct mark) { m->text.n, which };
    buf_put_str(&m->text, special_text(which));
}

void marked_cut(struct marked *m, size_t n)
{
    while (m->n_marks && m->marks[m->n_marks - 1].at >= n) m->n_marks--;
    m->text.n = n;
    if (m->text.data) m->text.data[n] = 0;
}

void marked_free(struct marked *m)
{
    buf_free(&m->text);
    mem_free(m->marks);
    *m = (struct marked) { 0 };
}
