#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"

static void print_help(const struct cli_command *c)
{
    printf("usage: bezel %s %s\n\n%s\n", c->name, c->usage, c->about);
    if (c->n_options) printf("\noptions:\n");
    for (size_t i = 0; i < c->n_options; i++) {
        const struct cli_option *o = &c->options[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        printf("  %-24s %s\n", left, o->help);
    }
    printf("  %-24s %s\n", "--help", "this text");
}

int cli_fail(const struct cli_command *c, const struct bz_err *err)
{
    fflush(stdout);
    fprintf(stderr, "bezel %s: %s\n", c->name, err->text);
    return CLI_FAILED;
}

int cli_misuse(const struct cli_command *c, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "bezel %s: ", c->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, " (see: bezel %s --help)\n", c->name);
    return CLI_USAGE;
}

/* Store one value; false when it is not of the option's type. */
static bool take_value(const struct cli_option *o, const char *value)
{
    char *end = NULL;
    errno = 0;
    switch (o->type) {
    case CLI_FLAG: return false;
    case CLI_STR: *(const char **)o->out = value; return true;
    case CLI_STRS: {
        struct cli_strs *list = o->out;
        if (list->n == sizeof list->v / sizeof *list->v) return false;
        list->v[list->n++] = value;
        return true;
    }
    case CLI_U64:
        *(uint64_t *)o->out = strtoull(value, &end, 10);
        return isdigit((unsigned char)*value) && !*end && !errno;
    case CLI_F64: {
        double number = strtod(value, &end);
        *(double *)o->out = number;
        return end != value && !*end && !errno && isfinite(number);
    }
    }
    return false;
}

/* One option at argv[*i]; returns false when usage was wrong (and says so). */
static bool take_option(const struct cli_command *c, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    for (size_t k = 0; k < c->n_options; k++) {
        const struct cli_option *o = &c->options[k];
        if (strlen(o->name) != n || memcmp(o->name, word, n) != 0) continue;
        if (o->seen) *o->seen = true;
        if (o->type == CLI_FLAG) {
            if (equals) break;
            *(bool *)o->out = true;
            return true;
        }
        const char *value = equals ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
        if (!value) {
            cli_misuse(c, "%s needs a value", o->name);
            return false;
        }
        if (take_value(o, value)) return true;
        cli_misuse(c, "%s cannot be \"%s\"", o->name, value);
        return false;
    }
    cli_misuse(c, "no option %s", word);
    return false;
}

int cli_parse(const struct cli_command *c, int argc, char **argv, const char **args, int *code)
{
    int n = 0;
    bool options = true;
    *code = CLI_USAGE;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            print_help(c);
            *code = CLI_OK;
            return -1;
        } else if (options && word[0] == '-' && word[1] == '-') {
            if (!take_option(c, argc, argv, &i)) return -1;
        } else if (n == c->max_args) {
            cli_misuse(c, "one argument too many: %s", word);
            return -1;
        } else {
            args[n++] = word;
        }
    }
    if (n < c->min_args) {
        cli_misuse(c, "usage: bezel %s %s", c->name, c->usage);
        return -1;
    }
    return n;
}

enum bz_status cli_read_stdin(struct buf *out, struct bz_err *err)
{
    char piece[65536];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail(err, BZ_ERR_IO, "cannot read standard input: %s", strerror(errno));
        if (n == 0) break;
        buf_put(out, piece, (size_t)n);
    }
    return out->failed ? fail_memory(err, out->n) : BZ_OK;
}

enum bz_status cli_read_file(const char *path, struct buf *out, struct bz_err *err)
{
    char piece[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f) return fail(err, BZ_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) buf_put(out, piece, n);
    enum bz_status st = ferror(f)
                            ? fail(err, BZ_ERR_IO, "cannot read %s: %s", path, strerror(errno))
                        : out->failed ? fail_memory(err, out->n)
                                      : BZ_OK;
    fclose(f);
    return st;
}

bool cli_put_text(struct str text)
{
    bool terminal = isatty(STDOUT_FILENO);
    for (size_t used; text.n; text.p += used, text.n -= used) {
        uint32_t c = utf8_decode(text.p, text.n, &used);
        if (terminal && utf8_is_control(c) && c != '\n' && c != '\t')
            fputs("\xef\xbf\xbd", stdout); /* U+FFFD */
        else fwrite(text.p, 1, used, stdout);
    }
    return fflush(stdout) == 0 && !ferror(stdout);
}

enum bz_status cli_read_ids(const char *text, int32_t **ids, size_t *n, struct bz_err *err)
{
    *n = 0;
    *ids = mem_alloc(strlen(text) / 2 + 1, sizeof **ids);
    if (!*ids) return fail_memory(err, strlen(text));
    for (const char *p = text; *p;) {
        if (*p == ',' || isspace((unsigned char)*p) || *p == '[' || *p == ']') {
            p++;
            continue;
        }
        char *end;
        errno = 0;
        long v = strtol(p, &end, 10);
        if (end == p || errno || v < 0 || v > INT32_MAX) {
            mem_free(*ids);
            *ids = NULL;
            return fail(err, BZ_ERR_ARGUMENT, "\"%.20s\" is not a token id", p);
        }
        (*ids)[(*n)++] = (int32_t)v;
        p = end;
    }
    return BZ_OK;
}
