#include "base/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum bz_status fail(struct bz_err *err, enum bz_status st, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
    }
    return st;
}

enum bz_status fail_prefix(struct bz_err *err, enum bz_status st, const char *fmt, ...)
{
    if (err) {
        char old[sizeof err->text];
        memcpy(old, err->text, sizeof old);
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof err->text)
            snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", old);
    }
    return st;
}

enum bz_status fail_memory(struct bz_err *err, uint64_t n_bytes)
{
    return fail(err, BZ_ERR_MEMORY, "not enough memory for %" PRIu64 " bytes", n_bytes);
}
