#include "text/stop.h"

/* How many bytes at the end of `held` could be the beginning of string z. */
static size_t overlap(struct str held, const char *z)
{
    size_t n = strlen(z);
    size_t most = held.n < n ? held.n : n - 1;
    for (size_t k = most; k > 0; k--)
        if (memcmp(held.p + held.n - k, z, k) == 0) return k;
    return 0;
}

/* Where the stop string begins that is complete first; of several that end together, the longest.
 * (So the cut does not depend on how the text arrives.) SIZE_MAX when there is none. */
static size_t first_match(const struct stop_filter *f)
{
    size_t best = SIZE_MAX, best_end = SIZE_MAX;
    for (size_t i = 0; i < f->n_strings; i++) {
        size_t n = strlen(f->strings[i]), at = 0;
        if (n == 0) continue;
        while (at + n <= f->held.n && memcmp(f->held.data + at, f->strings[i], n) != 0) at++;
        size_t end = at + n;
        if (end > f->held.n || end > best_end || (end == best_end && at > best)) continue;
        best = at;
        best_end = end;
    }
    return best;
}

bool stop_feed(struct stop_filter *f, struct str text, struct buf *out)
{
    if (f->stopped) return true;
    buf_put_str(&f->held, text);
    if (f->held.failed) out->failed = true;
    size_t at = first_match(f);
    if (at != SIZE_MAX) {
        buf_put(out, f->held.data, at);
        f->stopped = true;
        f->held.n = 0;
        return true;
    }
    size_t keep = 0;
    for (size_t i = 0; i < f->n_strings; i++) {
        size_t k = f->strings[i][0] ? overlap(buf_str(&f->held), f->strings[i]) : 0;
        if (k > keep) keep = k;
    }
    size_t ready = f->held.n - keep;
    buf_put(out, f->held.data, ready);
    if (keep) memmove(f->held.data, f->held.data + ready, keep);
    f->held.n = keep;
    return false;
}

void stop_end(struct stop_filter *f, struct buf *out)
{
    if (!f->stopped) buf_put_str(out, buf_str(&f->held));
    f->held.n = 0;
}

void stop_free(struct stop_filter *f)
{
    buf_free(&f->held);
}
