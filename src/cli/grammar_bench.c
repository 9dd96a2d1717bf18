/* grammar_bench.c - `bezel grammar`, and its command maskbench: MaskBench's instances are written
 * as Python's json.dumps(data, ensure_ascii=False) does, and fed token by token through masks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/grammar_cmd.h"
#include "engine.h"

/* ---- instances as Python writes them ---- */

/* repr(float): exponents from -5 down and from 16 up. */
static void put_python_float(struct buf *b, double d)
{
    char digits[32], text[40];
    int n = 0, exponent = 0;
    for (int p = 1; p <= 17; p++) {
        snprintf(text, sizeof text, "%.*e", p - 1, d);
        if (strtod(text, NULL) == d) break;
    }
    exponent = atoi(strchr(text, 'e') + 1);
    for (const char *c = text; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    if (text[0] == '-') buf_putc(b, '-');
    if (exponent < -4 || exponent >= 16) {
        buf_printf(b, "%c%s%.*se%c%02d", digits[0], n > 1 ? "." : "", n - 1, digits + 1,
                   exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        buf_printf(b, "0.%.*s%.*s", -exponent - 1, "0000", n, digits);
    } else {
        for (int i = 0; i <= exponent; i++) buf_putc(b, i < n ? digits[i] : '0');
        buf_printf(b, ".%.*s", n > exponent + 1 ? n - exponent - 1 : 1,
                   n > exponent + 1 ? digits + exponent + 1 : "0");
    }
}

static void put_python(struct buf *b, const struct json *j)
{
    bool object = j->type == JSON_OBJECT;
    if (j->type == JSON_FLOAT && memchr(j->text.p, '.', j->text.n) == NULL &&
        memchr(j->text.p, 'e', j->text.n) == NULL && memchr(j->text.p, 'E', j->text.n) == NULL) {
        buf_put_str(b, j->text); /* an integer of more than 64 bits */
        return;
    }
    if (j->type == JSON_FLOAT) {
        put_python_float(b, j->number);
        return;
    }
    if (!object && j->type != JSON_ARRAY) {
        json_put(b, j);
        return;
    }
    buf_putc(b, object ? '{' : '[');
    for (const struct json *c = j->child; c; c = c->next) {
        if (object) {
            json_put_string(b, c->key);
            buf_puts(b, ": ");
        }
        put_python(b, c);
        if (c->next) buf_puts(b, ", ");
    }
    buf_putc(b, object ? '}' : ']');
}

/* ---- maskbench ---- */

/* Processor time of this thread: what other programs take of the machine is not counted. */
static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static bool allows(const uint32_t *mask, int32_t id)
{
    return mask[id / 32] >> id % 32 & 1;
}

/* One instance through masks, a token at a time. *why: the mask and the matcher disagree. */
static enum bz_status run_test(const struct grammar_source *b, struct grammar *g,
                               const struct json *test, struct buf *out, struct bz_err *err)
{
    struct buf text = { 0 };
    struct matcher *m = NULL;
    int32_t *ids = NULL;
    size_t n = 0, done = 0;
    const struct json *valid = json_get(test, "valid"), *data = json_get(test, "data");
    if (!valid || !data) return fail(err, BZ_ERR_FORMAT, "a test has no \"valid\" or no \"data\"");
    put_python(&text, data);
    enum bz_status st = bz_tokenize(b->e, text.data, text.n, false, true, &ids, &n, err);
    if (st == BZ_OK) st = matcher_open(&m, g, b->v, err);
    bool accepted = true;
    struct buf times = { 0 };
    for (; done < n && accepted && st == BZ_OK; done++) {
        double start = now_us();
        const uint32_t *mask = matcher_mask(m);
        bool allowed = mask && allows(mask, ids[done]);
        st = mask ? matcher_advance(m, ids[done], &accepted, err) : matcher_status(m, err);
        buf_printf(&times, "%s%.2f", done ? "," : "", now_us() - start);
        if (st == BZ_OK && allowed != accepted)
            st = fail(err, BZ_ERR_UNSUPPORTED, "bug: mask and matcher disagree at token %zu", done);
    }
    if (st == BZ_OK && accepted) accepted = matcher_may_end(m);
    buf_printf(out, "{\"valid\":%s,\"accepted\":%s,\"tokens\":%zu,\"mask_us\":[%s]",
               valid->boolean ? "true" : "false", accepted ? "true" : "false", done,
               times.data ? times.data : "");
    if (st) {
        buf_puts(out, ",\"error\":");
        json_put_string(out, str_of(err->text));
    }
    buf_putc(out, '}');
    bz_free(ids);
    matcher_close(m);
    buf_free(&text);
    buf_free(&times);
    return BZ_OK;
}

static enum bz_status run_file(const struct grammar_source *b, const char *path, struct bz_err *err)
{
    struct buf input = { 0 }, schema = { 0 }, out = { 0 };
    struct arena a = { 0 };
    struct json *j = NULL;
    struct grammar *g = NULL;
    enum bz_status st = cli_read_file(path, &input, err);
    if (st == BZ_OK) st = json_parse(&j, buf_str(&input), &a, err);
    if (st == BZ_OK && !json_get(j, "schema"))
        st = fail(err, BZ_ERR_FORMAT, "%s: no \"schema\"", path);
    if (st == BZ_OK) {
        struct bz_err why = { "" };
        json_put(&schema, json_get(j, "schema"));
        double start = now_us();
        enum bz_status compiled = grammar_of_schema(&g, buf_str(&schema), &b->options, &why);
        double us = now_us() - start;
        const struct json *tests = json_get(j, "tests");
        buf_puts(&out, "{\"file\":");
        json_put_string(&out, str_of(path));
        buf_printf(&out, ",\"compile_us\":%.1f,\"error\":", us);
        if (compiled) json_put_string(&out, str_of(why.text));
        else buf_puts(&out, "null");
        buf_puts(&out, ",\"tests\":[");
        for (const struct json *t = g && tests ? tests->child : NULL; t && !st; t = t->next) {
            st = run_test(b, g, t, &out, err);
            if (t->next) buf_putc(&out, ',');
        }
        buf_puts(&out, "]}\n");
    }
    if (st == BZ_OK) fwrite(out.data, 1, out.n, stdout);
    grammar_close(g);
    arena_free(&a);
    buf_free(&input);
    buf_free(&schema);
    buf_free(&out);
    return st;
}

int grammar_maskbench(int argc, char **argv)
{
    struct grammar_source b = { .options.any_form = true };
    bool json = false;
    static const char *files[20000];
    const struct cli_option options[] = {
        { "--model", "MODEL", "whose vocabulary (needed)", CLI_STR, &b.model, NULL },
        { "--json", NULL, "a line of JSON for each file", CLI_FLAG, &json, NULL },
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &b.store,
          NULL },
    };
    const struct cli_command c = { "grammar maskbench",
                                   "FILE... --model M --json",
                                   "MaskBench's files through masks.",
                                   options,
                                   sizeof options / sizeof *options,
                                   1,
                                   sizeof files / sizeof *files };
    int code;
    int n = cli_parse(&c, argc, argv, files, &code);
    if (n < 0) return code;
    if (!b.model) return cli_misuse(&c, "--model is needed");
    struct bz_err err;
    enum bz_status st = grammar_source_vocab(&b, &err);
    for (int i = 0; i < n && st == BZ_OK; i++) st = run_file(&b, files[i], &err);
    grammar_source_close(&b);
    return st ? cli_fail(&c, &err) : CLI_OK;
}

/* ---- the command ---- */

static void print_help(FILE *to)
{
    fprintf(to, "usage: bezel grammar COMMAND [ARGUMENTS]\n\n"
                "  check        do texts keep to a schema, a grammar or a pattern\n"
                "  sample       random texts of a schema, a grammar or a pattern\n"
                "  maskbench    MaskBench's files through masks, and how long each mask takes\n\n"
                "bezel grammar COMMAND --help says more.\n");
}

int cmd_grammar(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "check") == 0) return grammar_check(argc - 1, argv + 1);
    if (strcmp(name, "sample") == 0) return grammar_sample(argc - 1, argv + 1);
    if (strcmp(name, "maskbench") == 0) return grammar_maskbench(argc - 1, argv + 1);
    bool help = strcmp(name, "--help") == 0;
    print_help(help ? stdout : stderr);
    return help ? CLI_OK : CLI_USAGE;
}
