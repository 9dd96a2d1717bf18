/* matcher.c - one text being written: where it stands, and how it got there. */
#include "grammar/matcher_impl.h"

#include <stdlib.h>

static enum bz_status status_of(const struct matcher *m, struct bz_err *err)
{
    if (m->g->s.status && err) *err = m->g->s.err;
    if (!m->g->s.status && m->stuck)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "no token of the vocabulary can follow byte %zu of the text", m->text.n);
    return m->g->s.status;
}

enum bz_status matcher_status(const struct matcher *m, struct bz_err *err)
{
    return status_of(m, err);
}

enum bz_status matcher_open(struct matcher **out, struct grammar *g, struct vocab *v,
                            struct bz_err *err)
{
    struct matcher *m = mem_alloc(1, sizeof *m);
    if (!m) return fail_memory(err, sizeof *m);
    m->g = g;
    m->v = v;
    m->config = g->start;
    if (v && g->masks_of != v) {
        mask_cache_close(g->masks);
        g->masks = NULL;
        g->masks_of = NULL;
        enum bz_status st = mask_cache_open(&g->masks, g, v, err);
        if (st) {
            matcher_close(m);
            return st;
        }
        g->masks_of = v;
    }
    *out = m;
    return BZ_OK;
}

enum bz_status matcher_clone(struct matcher **out, const struct matcher *m, struct bz_err *err)
{
    struct matcher *c = NULL;
    enum bz_status st = matcher_open(&c, m->g, m->v, err);
    if (st) return st;
    c->config = m->config;
    buf_put_str(&c->text, buf_str(&m->text));
    vec_put(&m->g->s, &c->past, m->past.w, m->past.n);
    st = c->text.failed ? fail_memory(err, m->text.n) : status_of(c, err);
    if (st) matcher_close(c);
    else *out = c;
    return st;
}

void matcher_close(struct matcher *m)
{
    if (!m) return;
    buf_free(&m->text);
    threads_free(&m->now);
    threads_free(&m->next);
    vec_free(&m->past);
    mem_free(m);
}

/* ---- reading ---- */

/* Room behind the text for a token that is tried. */
static bool make_room(struct matcher *m)
{
    static const char room[MAX_TOKEN_BYTES + 1];
    size_t n = m->text.n;
    buf_put(&m->text, room, sizeof room);
    m->text.n = n;
    if (m->text.failed) store_fail(&m->g->s, BZ_ERR_MEMORY, "out of memory for a text");
    return !m->text.failed;
}

static void load(struct matcher *m)
{
    uint32_t n;
    const struct thread *t = config_threads(m->g, m->config, &n);
    m->now.n = 0;
    for (uint32_t i = 0; i < n; i++) threads_put(m->g, &m->now, t[i]);
}

/* One byte from `now` to `now`; false: it cannot follow. */
static bool read_byte(struct matcher *m, unsigned char byte)
{
    buf_putc(&m->text, (char)byte);
    if (m->text.failed) store_fail(&m->g->s, BZ_ERR_MEMORY, "out of memory for a text");
    if (m->g->s.status) return false;
    struct machine machine = { m->g, m->text.data, m->text.n - 1, NULL };
    m->next.n = 0;
    for (uint32_t i = 0; i < m->now.n; i++) machine_step(&machine, m->now.at[i], byte, &m->next);
    if (m->next.n == 0 || m->g->s.status) {
        m->text.n--;
        return false;
    }
    if (m->next.n > 1) threads_merge(m->g, &m->next);
    struct unique_place p;
    bool unique = m->g->one_spelling && unique_find(m->g, &m->next, buf_str(&m->text), &p);
    if (unique && !unique_live(m->g, &m->next, buf_str(&m->text), &p)) {
        m->text.n--;
        return false;
    }
    struct threads t = m->now;
    m->now = m->next;
    m->next = t;
    return true;
}

/* All bytes or, when one cannot follow, none. */
static bool read_all(struct matcher *m, const char *p, size_t n, size_t *n_read)
{
    size_t before = m->text.n;
    load(m);
    *n_read = 0;
    while (*n_read < n && read_byte(m, (unsigned char)p[*n_read])) ++*n_read;
    if (*n_read < n) {
        m->text.n = before;
        return false;
    }
    node config = config_of(m->g, &m->now);
    vec_put(&m->g->s, &m->past, (const uint32_t[]) { m->config, (uint32_t)before }, 2);
    if (!m->g->s.status) m->config = config;
    return !m->g->s.status;
}

enum bz_status matcher_read(struct matcher *m, struct str bytes, size_t *n_read, struct bz_err *err)
{
    read_all(m, bytes.p, bytes.n, n_read);
    return status_of(m, err);
}

enum bz_status matcher_advance(struct matcher *m, int32_t token, bool *accepted, struct bz_err *err)
{
    char bytes[MAX_TOKEN_BYTES];
    size_t n, n_read;
    *accepted = false;
    if (tokenizer_is_end(m->v->t, token)) {
        *accepted = matcher_may_end(m);
        if (*accepted)
            vec_put(&m->g->s, &m->past, (const uint32_t[]) { m->config, (uint32_t)m->text.n }, 2);
        return status_of(m, err);
    }
    if (token < 0 || tokenizer_text(m->v->t, token).n > MAX_TOKEN_BYTES) return status_of(m, err);
    if (vocab_bytes(m->v->t, (uint32_t)token, bytes, &n) && n)
        *accepted = read_all(m, bytes, n, &n_read);
    return status_of(m, err);
}

void matcher_rollback(struct matcher *m, uint32_t n)
{
    for (; n > 0 && m->past.n; n--) {
        m->past.n -= 2;
        m->config = m->past.w[m->past.n];
        m->text.n = m->past.w[m->past.n + 1];
    }
}

/* ---- questions ---- */

/* Where text is written a mask has a token: if not, a search gave up that ought to have seen that
 * nothing can follow, or the vocabulary lacks a byte. */
const uint32_t *matcher_mask(struct matcher *m)
{
    if (!make_room(m)) return NULL;
    const uint32_t *mask = mask_find(m->g->masks, m->config, m->text.data, m->text.n);
    m->stuck = mask && !m->g->options.any_form;
    for (uint32_t i = 0; m->stuck && i < vocab_mask_words(m->v); i++) m->stuck = mask[i] == 0;
    return m->stuck ? NULL : mask;
}

struct str matcher_text(const struct matcher *m)
{
    return buf_str(&m->text);
}

bool matcher_may_end(const struct matcher *m)
{
    return config_may_end(m->g, m->config);
}

/* The only byte that the threads `now` can read: -1, if there are several or none. */
static int only_byte(struct matcher *m)
{
    struct machine machine = { m->g, m->text.data, m->text.n, NULL };
    unsigned char first[32];
    int found = -1;
    for (uint32_t i = 0; i < m->now.n; i++) {
        uint32_t n = mask_first_bytes(m->g, m->now.at[i], first);
        for (uint32_t k = 0; k < (n ? n : 256); k++) {
            unsigned byte = n ? first[k] : k;
            if ((int)byte == found) continue;
            m->next.n = 0;
            m->text.data[m->text.n] = (char)byte;
            machine_step(&machine, m->now.at[i], byte, &m->next);
            if (m->next.n == 0) continue;
            if (found >= 0) return -1;
            found = (int)byte;
        }
    }
    return found;
}

enum { MAX_FORCED = 4096 };

enum bz_status matcher_forced(struct matcher *m, struct buf *out, struct bz_err *err)
{
    size_t before = m->text.n, start = out->n;
    load(m);
    if (!make_room(m) || matcher_may_end(m)) return status_of(m, err);
    while (out->n - start < MAX_FORCED && make_room(m)) {
        int byte = only_byte(m);
        if (byte < 0 || !read_byte(m, (unsigned char)byte)) break;
        buf_putc(out, (char)byte);
        if (config_may_end(m->g, config_of(m->g, &m->now))) break;
    }
    m->text.n = before;
    if (out->failed) return fail_memory(err, out->n);
    return status_of(m, err);
}

bool matcher_is_over(struct matcher *m)
{
    if (!matcher_may_end(m) || !make_room(m)) return false;
    struct machine machine = { m->g, m->text.data, m->text.n, NULL };
    load(m);
    m->next.n = 0;
    for (uint32_t i = 0; i < m->now.n; i++)
        for (unsigned byte = 0; byte < 256 && !m->next.n; byte++)
            machine_step(&machine, m->now.at[i], byte, &m->next);
    return m->next.n == 0;
}
