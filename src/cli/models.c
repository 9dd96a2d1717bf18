/* models.c - the commands for what is in the store: show, cp, rm; and pull, which this tool leaves
 * to the other one. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/inspect.h"
#include "io/source.h"

#define MAX_SHOWN (1u << 20) /* a longer text is not shown */
enum { MAX_NAMES = 64, GAP = 4, HEAD = 2 };

#define STORE_OPTION(store)                                                                        \
    { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &(store), NULL }

/* --- rm and cp --- */

int cmd_rm(int argc, char **argv)
{
    const char *names[MAX_NAMES], *store = NULL;
    const struct cli_option options[] = { STORE_OPTION(store) };
    const struct cli_command c = {
        "rm",
        "NAME... [options]",
        "Delete models of the Ollama store, and what no other model of it needs.",
        options,
        sizeof options / sizeof *options,
        1,
        MAX_NAMES
    };
    int code, n = cli_parse(&c, argc, argv, names, &code);
    if (n < 0) return code;
    struct bz_err err;
    char *root = NULL;
    enum bz_status st = ollama_find_root(&root, store, &err);
    for (int i = 0; i < n && !st; i++) {
        st = ollama_remove(root, names[i], &err);
        if (!st) printf("deleted '%s'\n", names[i]);
    }
    mem_free(root);
    return st ? cli_fail(&c, &err) : CLI_OK;
}

int cmd_cp(int argc, char **argv)
{
    const char *names[2], *store = NULL;
    const struct cli_option options[] = { STORE_OPTION(store) };
    const struct cli_command c = {
        "cp",
        "NAME NEW [options]",
        "Give a model of the Ollama store a second name. Its weights are there once.",
        options,
        sizeof options / sizeof *options,
        2,
        2
    };
    int code;
    if (cli_parse(&c, argc, argv, names, &code) < 0) return code;
    struct bz_err err;
    char *root = NULL;
    enum bz_status st = ollama_find_root(&root, store, &err);
    if (!st) st = ollama_copy(root, names[0], names[1], &err);
    if (!st) printf("copied '%s' to '%s'\n", names[0], names[1]);
    mem_free(root);
    return st ? cli_fail(&c, &err) : CLI_OK;
}

/* --- show --- */

/* Adds the text of a layer; none of one that is too long. */
static enum bz_status add_text(struct buf *b, const struct ollama_layer *l, struct bz_err *err)
{
    struct source src;
    if (l->size > MAX_SHOWN) return BZ_OK;
    enum bz_status st = source_open_file(&src, l->path, err);
    if (st) return st;
    struct buf text = { 0 };
    st = source_read_all(&src, MAX_SHOWN, &text, err);
    if (!st) buf_put_str(b, buf_str(&text));
    buf_free(&text);
    source_close(&src);
    return st;
}

/* The text of a kind: of several layers the last, as Ollama takes it, but all licences. */
static enum bz_status text_of(struct buf *b, const struct inspect *x, enum ollama_kind kind,
                              struct bz_err *err)
{
    const struct ollama_manifest *m = &x->file.store.manifest;
    const struct ollama_layer *l;
    enum bz_status st = BZ_OK;
    if (!x->is_open || !x->file.from_store) return BZ_OK;
    for (size_t i = 0; !st && (l = ollama_layer_at(m, kind, i)); i++) {
        if (kind != OLLAMA_LAYER_LICENSE && ollama_layer_at(m, kind, i + 1)) continue;
        if (i && kind == OLLAMA_LAYER_LICENSE) buf_putc(b, '\n');
        st = add_text(b, l, err);
    }
    return st;
}

static void put_value(struct buf *b, const struct json *j)
{
    if (j->type == JSON_FLOAT) json_put_f64(b, j->number); /* 1.0 is 1, as elsewhere */
    else json_put(b, j);
}

static void put_row(struct buf *b, struct str key, const struct json *value, size_t wide,
                    const char *before, const char *after)
{
    buf_printf(b, "%s%-*.*s%s", before, (int)wide, STR_ARG(key), after);
    put_value(b, value);
    buf_putc(b, '\n');
}

/* A line for each value. `wide` 0: as wide as the longest key and a gap. */
static enum bz_status put_parameters(struct buf *b, struct str params, size_t wide,
                                     const char *before, const char *after, struct bz_err *err)
{
    struct arena a = { 0 };
    struct json *all;
    enum bz_status st = json_parse(&all, params, &a, err);
    const struct json *first = !st && all->type == JSON_OBJECT ? all->child : NULL;
    size_t longest = 0;
    for (const struct json *j = first; j; j = j->next)
        if (j->key.n > longest) longest = j->key.n;
    size_t columns = wide ? wide : longest + GAP;
    for (const struct json *j = first; j; j = j->next) {
        if (j->type != JSON_ARRAY) put_row(b, j->key, j, columns, before, after);
        for (const struct json *v = j->type == JSON_ARRAY ? j->child : NULL; v; v = v->next)
            put_row(b, j->key, v, columns, before, after);
    }
    arena_free(&a);
    return st ? fail_prefix(err, st, "params") : BZ_OK;
}

static struct str trimmed(struct str s)
{
    while (s.n && strchr(" \t\r\v\f", s.p[0])) s.p++, s.n--;
    while (s.n && strchr(" \t\r\v\f", s.p[s.n - 1])) s.n--;
    return s;
}

/* The first lines of a long text. */
static void put_beginning(struct buf *b, const char *title, struct str text)
{
    int lines = 0;
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        struct str line = trimmed((struct str) { text.p, n });
        text.p += end ? n + 1 : n;
        text.n -= end ? n + 1 : n;
        if (!line.n) continue;
        if (lines++ == 0) buf_printf(b, "  %s\n", title);
        if (lines > HEAD) {
            buf_puts(b, "    ...\n");
            break;
        }
        buf_puts(b, "    ");
        buf_put_str(b, line);
        buf_putc(b, '\n');
    }
    if (lines) buf_putc(b, '\n');
}

static void put_fact(struct buf *b, const char *key, struct str value)
{
    if (value.n) buf_printf(b, "    %-20s%.*s\n", key, STR_ARG(value));
}

static void put_count(struct buf *b, const char *key, uint64_t value)
{
    if (value) buf_printf(b, "    %-20s%" PRIu64 "\n", key, value);
}

static void put_model(struct buf *b, const struct inspect *x)
{
    struct str type = x->is_open && x->file.from_store ? x->file.store.config.model_type
                                                       : (struct str) { NULL, 0 };
    buf_puts(b, "  Model\n");
    put_fact(b, "architecture", x->arch);
    if (type.n) put_fact(b, "parameters", type);
    else put_count(b, "parameters", x->all.n_params);
    if (x->has_config) put_count(b, "context length", x->config.n_ctx);
    if (x->has_config) put_count(b, "embedding length", x->config.n_embd);
    if (x->file_type) put_fact(b, "quantization", str_of(x->file_type));
    buf_putc(b, '\n');
}

static enum bz_status put_overview(struct buf *b, const struct inspect *x, struct bz_err *err)
{
    struct buf params = { 0 }, system = { 0 }, license = { 0 };
    put_model(b, x);
    enum bz_status st = text_of(&params, x, OLLAMA_LAYER_PARAMS, err);
    if (!st) st = text_of(&system, x, OLLAMA_LAYER_SYSTEM, err);
    if (!st) st = text_of(&license, x, OLLAMA_LAYER_LICENSE, err);
    if (!st && params.n) {
        buf_puts(b, "  Parameters\n");
        st = put_parameters(b, buf_str(&params), 0, "    ", "", err);
        buf_putc(b, '\n');
    }
    put_beginning(b, "System", buf_str(&system));
    put_beginning(b, "License", buf_str(&license));
    buf_free(&params);
    buf_free(&system);
    buf_free(&license);
    return st;
}

/* One text, all of it. */
static enum bz_status put_one(struct buf *b, const struct inspect *x, enum ollama_kind kind,
                              const char *what, struct bz_err *err)
{
    struct buf text = { 0 };
    enum bz_status st = text_of(&text, x, kind, err);
    if (!st && text.n && kind == OLLAMA_LAYER_PARAMS)
        st = put_parameters(b, buf_str(&text), 30, "", " ", err);
    else buf_put_str(b, buf_str(&text));
    if (!st && !b->n) st = fail(err, BZ_ERR_NOT_FOUND, "%.200s has no %s", x->model, what);
    if (b->n && b->data[b->n - 1] != '\n') buf_putc(b, '\n');
    buf_free(&text);
    return st;
}

int cmd_show(int argc, char **argv)
{
    static const struct {
        enum ollama_kind kind;
        const char *what;
    } texts[] = { { OLLAMA_LAYER_LICENSE, "license" },
                  { OLLAMA_LAYER_PARAMS, "parameters" },
                  { OLLAMA_LAYER_SYSTEM, "system" },
                  { OLLAMA_LAYER_TEMPLATE, "template" } };
    bool wish[4] = { false };
    const char *model, *store = NULL;
    const struct cli_option options[] = {
        { "--license", NULL, "the licence alone, all of it", CLI_FLAG, &wish[0], NULL },
        { "--parameters", NULL, "the parameters alone", CLI_FLAG, &wish[1], NULL },
        { "--system", NULL, "the system prompt alone", CLI_FLAG, &wish[2], NULL },
        { "--template", NULL, "the template alone, which Ollama may use", CLI_FLAG, &wish[3],
          NULL },
        STORE_OPTION(store),
    };
    const struct cli_command c = {
        "show",
        "NAME|FILE [options]",
        "What a model is: its size, parameters, system prompt and licence. More: bezel inspect.",
        options,
        sizeof options / sizeof *options,
        1,
        1
    };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    if (wish[0] + wish[1] + wish[2] + wish[3] > 1) return cli_misuse(&c, "one text at a time");
    struct bz_err err;
    struct inspect x = { 0 };
    struct buf b = { 0 };
    enum bz_status st = inspect_open(&x, model, store, &err);
    bool one = false;
    for (int i = 0; i < 4 && !st && !one; i++)
        if ((one = wish[i])) st = put_one(&b, &x, texts[i].kind, texts[i].what, &err);
    if (!st && !one) st = put_overview(&b, &x, &err);
    if (!st && b.failed) st = fail_memory(&err, b.n);
    if (!st) cli_put_text(buf_str(&b));
    buf_free(&b);
    inspect_close(&x);
    return st ? cli_fail(&c, &err) : CLI_OK;
}

/* --- pull --- */

/* Sites that give models away speak TLS, which this tool has none of and takes no library for. */
int cmd_pull(int argc, char **argv)
{
    const char *name;
    const struct cli_command c = {
        "pull",
        "NAME",
        "Bring a model into the Ollama store. This tool has no TLS; the npm package's does it:\n"
        "npx bezel pull NAME. What that brings, this tool reads.",
        NULL,
        0,
        1,
        1
    };
    int code;
    if (cli_parse(&c, argc, argv, &name, &code) < 0) return code;
    struct bz_err err;
    fail(&err, BZ_ERR_UNSUPPORTED,
         "this tool has no TLS: `npx bezel pull %.200s` brings the model into the store that it "
         "reads",
         name);
    return cli_fail(&c, &err);
}
