/* calls.c - what calls of tools may be: a thread for each name, and behind it the formula of its
 * arguments. How they are spelled is the machine's matter. */
#include "grammar/calls.h"

#include "grammar/machine.h"
#include "grammar/object.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

/* Every object, and nothing else. */
static node any_object(struct grammar *g)
{
    node object = object_any(g);
    struct value v = { .objects = &object, .n_objects = 1 };
    return store_put(&g->s, F_VALUE, (node[]) { value_put(g, &v) }, 1);
}

/* The formula of a tool's arguments. */
static enum bz_status read_arguments(struct grammar *g, const struct tool *tool, node *f,
                                     struct bz_err *err)
{
    struct buf text = { 0 };
    *f = any_object(g);
    if (!tool->strict) return BZ_OK;
    if (tool->parameters) json_put(&text, tool->parameters);
    else buf_puts(&text, "{\"additionalProperties\":false}");
    enum bz_status st =
        text.failed ? fail_memory(err, text.n) : schema_open(g, buf_str(&text), err);
    buf_free(&text);
    if (st) return st;
    *f = f_and2(g, schema_root(g), *f);
    schema_check(g, *f);
    if (f_empty(g, *f))
        store_fail(&g->s, BZ_ERR_UNSUPPORTED, "no arguments satisfy its parameters");
    return BZ_OK;
}

/* A name is read up to the brace behind it, without the space around it. */
static enum bz_status check_name(struct grammar *g, const struct tool *tools, size_t i,
                                 struct bz_err *err)
{
#define SPACE "\\s\\x1c-\\x1f\\x85"
    struct str name = tools[i].name;
    node names = regex_whole(&g->s, str_of("[^{" SPACE "](?:[^{]*[^{" SPACE "])?"));
    if (!re_matches(&g->s, names, name) && !g->s.status)
        return fail(err, BZ_ERR_ARGUMENT, "\"%.*s\" is no name for a tool that can be called",
                    STR_ARG(name));
    for (size_t k = 0; k < i; k++)
        if (str_eq(tools[k].name, name))
            return fail(err, BZ_ERR_ARGUMENT, "two tools have the name \"%.*s\"", STR_ARG(name));
    return BZ_OK;
}

/* The thread of a tool's call: its name, then its arguments, then what is below. */
static enum bz_status put_tool(struct grammar *g, const struct tool *tool, node below,
                               struct threads *out, struct bz_err *err)
{
    struct store *s = &g->s;
    node f;
    enum bz_status st = read_arguments(g, tool, &f, err);
    if (st) return st;
    node head = re_cat(s, re_literal(s, str_of("call:")), re_literal(s, tool->name));
    node arguments = config_one(g, thread_make(H_VALUE, 0, f, 0, below));
    threads_put(g, out, thread_make(H_RAW, lift_start(s, LIFT_RAW, head), 0, 0, arguments));
    if (s->status && err) *err = s->err;
    return s->status;
}

static node behind_call(struct grammar *g, bool many)
{
    struct threads v = { 0 };
    threads_put(g, &v, thread_make(H_END, 0, 0, 0, 0));
    if (many) threads_put(g, &v, thread_make(H_CALL, 0, 0, 0, 0));
    node x = config_of(g, &v);
    threads_free(&v);
    return config_one(g, thread_make(H_CLOSE, 0, 0, 0, x));
}

enum bz_status grammar_of_calls(struct grammar **out, const struct tool *tools, size_t n, bool many,
                                struct bz_err *err)
{
    struct grammar *g = NULL;
    struct threads v = { 0 };
    enum bz_status st = grammar_begin(&g, NULL, err);
    if (st) return st;
    g->calls = true;
    node below = behind_call(g, many);
    for (size_t i = 0; i < n && st == BZ_OK; i++) {
        st = check_name(g, tools, i, err);
        if (st) break;
        st = put_tool(g, &tools[i], below, &v, err);
        if (st) fail_prefix(err, st, "tool %.*s", STR_ARG(tools[i].name));
    }
    g->call = config_of(g, &v);
    g->start = config_one(g, thread_make(H_CALL, 0, 0, 0, 0));
    threads_free(&v);
    if (st) grammar_close(g);
    return st ? st : grammar_finish(out, g, BZ_OK, err);
}
