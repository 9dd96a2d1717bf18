/* chat.c - a conversation in the terminal.
 *
 * The whole conversation is rendered again for every turn, and the session keeps what is unchanged.
 * So a long conversation costs only its new tokens.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/cli_model.h"
#include "cli/line.h"
#include "text/chat.h"

struct chat {
    bz_engine *e;
    bz_session *s;
    struct bz_sampling sampling;
    struct cli_form form;
    uint64_t n_max;
    bool thinking, color, stats;
    const char *system;
    char *own_system;    /* what /system set */
    struct buf messages; /* "{...},{...}": user and assistant turns so far */
    struct buf answer, reasoning;
    bool in_thought, shows_progress;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static void put_message(struct buf *b, const char *role, struct str content)
{
    if (b->n) buf_putc(b, ',');
    buf_printf(b, "{\"role\":\"%s\",\"content\":", role);
    json_put_string(b, content);
    buf_putc(b, '}');
}

/* ---- the model's text ---- */

static void set_dim(struct chat *c, bool dim)
{
    if (c->in_thought == dim) return;
    c->in_thought = dim;
    if (c->color) fputs(dim ? "\033[2m" : "\033[0m", stdout);
    if (!dim) fputs("\n\n", stdout);
}

static void on_event(void *ctx, enum chat_event event, struct str name, struct str text)
{
    struct chat *c = ctx;
    set_dim(c, event == CHAT_REASONING);
    if (event == CHAT_TOOL_CALL) {
        struct buf call = { 0 };
        buf_printf(&call, "[calls %.*s(%.*s), but this terminal has no tools]", STR_ARG(name),
                   STR_ARG(text));
        if (!cli_put_text(buf_str(&call))) interrupted = 1;
        buf_free(&call);
        return;
    }
    buf_put_str(event == CHAT_REASONING ? &c->reasoning : &c->answer, text);
    if (!cli_put_text(text)) interrupted = 1; /* nobody is reading any more */
}

/* Long prompts say how far they are, and Ctrl-C ends them. */
static bool on_batch(void *ctx, uint32_t done, uint32_t total)
{
    struct chat *c = ctx;
    if (c->shows_progress && total > done)
        fprintf(stderr, "\rreading %u of %u tokens", done, total);
    return !interrupted;
}

static bool go_on(void *ctx)
{
    (void)ctx;
    return !interrupted;
}

struct stream {
    struct chat_parser *parser;
    double first; /* when the first piece came; 0: none has */
    enum bz_status status;
    struct bz_err err;
};

static bool on_text(void *ctx, const char *text, size_t n)
{
    struct stream *st = ctx;
    if (!st->first) st->first = cli_now();
    st->status = chat_parser_feed(st->parser, (struct str) { text, n }, &st->err);
    return st->status == BZ_OK && !interrupted;
}

/* The conversation so far as tokens in the session. *in_thought: it ends inside a thought. */
static enum bz_status set_prompt(struct chat *c, bool *in_thought, struct bz_err *err)
{
    struct buf json = { 0 }, all = { 0 };
    if (c->system && *c->system) put_message(&all, "system", str_of(c->system));
    if (all.n && c->messages.n) buf_putc(&all, ',');
    buf_put_str(&all, buf_str(&c->messages));
    buf_puts(&json, "{\"messages\":[");
    buf_put_str(&json, buf_str(&all));
    buf_puts(&json, "]}");
    struct bz_chat_options o = { .variant = bz_engine_info(c->e).chat_variant,
                                 .thinking = c->thinking };
    int32_t *ids = NULL;
    size_t n_ids;
    enum bz_status st = json.failed || all.failed ? fail_memory(err, json.n)
                                                  : bz_chat_tokenize(c->e, json.data, json.n, &o,
                                                                     &ids, &n_ids, in_thought, err);
    if (st == BZ_OK) st = bz_session_set(c->s, ids, n_ids, err);
    bz_free(ids);
    buf_free(&all);
    buf_free(&json);
    return st;
}

static enum bz_status answer(struct chat *c, struct bz_err *err)
{
    double start = cli_now();
    interrupted = 0;
    c->answer.n = c->reasoning.n = 0;
    bool in_thought = false;
    struct bz_generate_options o = bz_generate_defaults(c->e);
    enum bz_status st = set_prompt(c, &in_thought, err);
    if (c->shows_progress) fprintf(stderr, "\r\033[K");
    if (st) return st;
    double read = cli_now();
    struct stream stream = { 0 };
    struct chat_parser_options po = { .thinking = c->thinking };
    st = cli_open_form(&c->form, c->e, c->thinking, in_thought, &o.constraint, err);
    if (st == BZ_OK)
        st = chat_parser_open(&stream.parser, po, (struct chat_sink) { c, on_event }, err);
    if (st) {
        bz_constraint_close(o.constraint);
        return st;
    }
    o.sampling = c->sampling;
    if (c->n_max) o.n_max = (uint32_t)c->n_max;
    o.specials = true;
    o.on_text = on_text;
    o.ctx = &stream;
    struct bz_generated g = { 0 };
    c->in_thought = false;
    st = bz_generate(c->s, &o, &g, err);
    if (st == BZ_OK && stream.status) st = fail(err, stream.status, "%s", stream.err.text);
    if (st == BZ_OK) st = chat_parser_end(stream.parser, err);
    chat_parser_close(stream.parser);
    bz_constraint_close(o.constraint);
    set_dim(c, false);
    printf("\n");
    if (g.stop == BZ_STOP_CONTEXT)
        fprintf(stderr, "(the context is full; /clear starts anew, --ctx N makes it larger)\n");
    size_t n_all;
    bz_session_tokens(c->s, &n_all);
    if (c->stats)
        fprintf(stderr, "(%zu tokens, %.1f tok/s, first after %.2f s, %zu in context)\n", g.n,
                (double)g.n / (cli_now() - read), (stream.first ? stream.first : read) - start,
                n_all);
    return st;
}

/* ---- the person's lines ---- */

static void print_commands(void)
{
    printf("/clear          start a new conversation\n"
           "/system TEXT    set the system prompt (empty: none)\n"
           "/think on|off   let the model think first\n"
           "\"\"\"             begin a text of several lines; \"\"\" ends it\n"
           "/exit           leave (or Ctrl-D); Ctrl-C stops an answer\n");
}

/* The messages that the store's manifest begins a conversation with. */
static void put_opening(struct chat *c)
{
    const char *json = bz_engine_info(c->e).messages;
    if (json) buf_put(&c->messages, json + 1, strlen(json) - 2); /* without the brackets */
}

/* A line that begins with '/'. Returns false to leave. */
static bool command(struct chat *c, const char *line)
{
    if (strcmp(line, "/exit") == 0 || strcmp(line, "/quit") == 0 || strcmp(line, "/bye") == 0)
        return false;
    if (strcmp(line, "/clear") == 0) {
        c->messages.n = 0;
        put_opening(c);
    } else if (strncmp(line, "/system", 7) == 0 && (!line[7] || line[7] == ' ')) {
        const char *text = line[7] ? line + 8 : "";
        mem_free(c->own_system);
        c->own_system = mem_copy_str(text, strlen(text));
        c->system = c->own_system;
    } else if (strcmp(line, "/think on") == 0 || strcmp(line, "/think off") == 0) {
        c->thinking = line[7] == 'o' && line[8] == 'n';
    } else if (strcmp(line, "/help") == 0 || strcmp(line, "/?") == 0) {
        print_commands();
    } else {
        printf("There is no command %s; /help lists them.\n", line);
    }
    return true;
}

/* One turn, kept in the conversation when it succeeds. */
static enum bz_status turn(struct chat *c, struct str question, struct bz_err *err)
{
    size_t before = c->messages.n;
    put_message(&c->messages, "user", question);
    enum bz_status st = answer(c, err);
    if (st == BZ_OK) put_message(&c->messages, "assistant", buf_str(&c->answer));
    else c->messages.n = before;
    return st;
}

/* Read a question. A text that begins with """ goes on over further lines until one that ends with
 * """; *quoted says so. */
static enum line_result read_question(struct line_history *h, bool color, bool interactive,
                                      struct buf *text, bool *quoted)
{
    static const char quotes[] = "\"\"\"";
    struct buf line = { 0 };
    enum line_result r = line_read(h, color ? "\033[1m> \033[0m" : "> ", interactive, text);
    *quoted = r == LINE_READ && text->n && str_starts(buf_str(text), quotes);
    if (*quoted) {
        memmove(text->data, text->data + 3, text->n - 3);
        text->n -= 3;
        while (r == LINE_READ && !str_ends(buf_str(text), quotes)) {
            r = line_read(h, "... ", interactive, &line);
            if (r == LINE_READ) {
                buf_putc(text, '\n');
                buf_put_str(text, buf_str(&line));
            }
        }
        if (r == LINE_END && !interactive) r = LINE_READ; /* the input's end closes it too */
        else if (r == LINE_READ) text->n -= 3;
    }
    if (r == LINE_READ && text->n) line_history_add(h, buf_str(text));
    buf_free(&line);
    return r;
}

static enum bz_status talk(struct chat *c, bool interactive, struct bz_err *err)
{
    struct line_history history = { 0 };
    struct buf text = { 0 };
    enum bz_status st = BZ_OK;
    bool quoted;
    while (st == BZ_OK) {
        enum line_result r = read_question(&history, c->color, interactive, &text, &quoted);
        if (r == LINE_INTERRUPT && interactive) {
            printf("(/exit or Ctrl-D leaves)\n");
            continue;
        }
        if (r != LINE_READ) break;
        if (text.failed) st = fail_memory(err, text.n);
        if (st || text.n == 0) continue;
        if (text.data[0] == '/' && !quoted && !memchr(text.data, '\n', text.n)) {
            while (text.data[text.n - 1] == ' ') text.n--;
            buf_putc(&text, 0); /* commands are C strings */
            if (text.failed) st = fail_memory(err, text.n);
            else if (!command(c, text.data)) break;
            continue;
        }
        st = turn(c, buf_str(&text), err);
        if ((st == BZ_ERR_LIMIT || st == BZ_ERR_CANCELLED) && interactive) {
            fprintf(stderr, "%s%s\n", err->text, st == BZ_ERR_LIMIT ? "; /clear starts anew" : "");
            st = BZ_OK;
        }
    }
    if (interactive) printf("\n");
    line_history_free(&history);
    buf_free(&text);
    return st;
}

/* Open the model and talk, or answer one question (question != NULL). */
static enum bz_status converse(struct chat *c, struct cli_model *m, const char *model,
                               const struct cli_sampling *sampling, const struct buf *question,
                               struct bz_err *err)
{
    struct bz_bias bias[CLI_MAX_BIAS];
    bool interactive = !question && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    c->color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    c->shows_progress = interactive && isatty(STDERR_FILENO);
    m->on_batch = on_batch;
    m->go_on = go_on;
    m->callback_ctx = c;
    enum bz_status st = cli_open(m, model, &c->e, &c->s, err);
    if (st == BZ_OK) st = cli_sampling(sampling, c->e, bias, &c->sampling, err);
    if (st == BZ_OK) {
        struct bz_info info = bz_engine_info(c->e);
        if (!c->system) c->system = info.system;
        put_opening(c);
        if (interactive)
            printf(
                "%s: %.1f M parameters, %u layers, %u tokens of vocabulary. /help for commands.\n",
                model, (double)info.n_params / 1e6, info.n_layer, info.n_vocab);
        if (question) {
            st = turn(c, buf_str(question), err);
        } else {
            cli_on_signal(SIGINT, on_interrupt, NULL); /* stops the answer, and the line too */
            st = talk(c, interactive, err);
        }
    }
    mem_free(c->own_system);
    buf_free(&c->messages);
    buf_free(&c->answer);
    buf_free(&c->reasoning);
    bz_session_close(c->s);
    bz_engine_close(c->e);
    return st;
}

/* The question of `run`: standard input, if it was redirected, and PROMPT after that. False: there
 * is neither, and a person sits at the terminal. */
static bool find_question(const char *prompt, struct buf *out, enum bz_status *st,
                          struct bz_err *err)
{
    struct stat info;
    bool piped = fstat(STDIN_FILENO, &info) == 0 && !S_ISCHR(info.st_mode);
    *st = BZ_OK;
    if (piped || (!prompt && !isatty(STDIN_FILENO))) *st = cli_read_stdin(out, err);
    while (out->n && strchr(" \t\r\n", out->data[out->n - 1])) out->n--;
    if (out->n && prompt) buf_puts(out, "\n\n");
    if (prompt) buf_puts(out, prompt);
    if (*st == BZ_OK && out->failed) *st = fail_memory(err, out->n);
    return prompt || piped || !isatty(STDIN_FILENO);
}

static int run_chat(int argc, char **argv, bool once)
{
    struct cli_model m = CLI_MODEL_DEFAULTS;
    struct cli_sampling sampling = { 0 };
    struct chat c = { 0 };
    const char *args[2] = { NULL, NULL };
    const struct cli_option options[] = {
        { "--system", "TEXT", "system prompt", CLI_STR, &c.system, NULL },
        { "--thinking", NULL, "let the model think first", CLI_FLAG, &c.thinking, NULL },
        { "--n", "N", "tokens an answer at most; default no limit", CLI_U64, &c.n_max, NULL },
        { "--stats", NULL, "speed after each answer", CLI_FLAG, &c.stats, NULL },
        CLI_FORM_OPTIONS(c.form),
        CLI_SAMPLING_OPTIONS(sampling),
        CLI_MODEL_OPTIONS(m),
    };
    const struct cli_command cmd = {
        once ? "run" : "chat",
        once ? "MODEL [PROMPT]" : "MODEL",
        once ? "Ask once and print the answer. What is piped in comes before PROMPT. With neither, "
               "on a\n"
               "terminal, it is a chat."
             : "Talk to a model: one line a turn, /help for commands. Lines may be piped in.",
        options,
        sizeof options / sizeof *options,
        1,
        once ? 2 : 1,
    };
    int code;
    if (cli_parse(&cmd, argc, argv, args, &code) < 0) return code;
    if (c.n_max > UINT32_MAX) return cli_misuse(&cmd, "--n is too large");
    if (cli_check_form(&cmd, &c.form)) return CLI_USAGE;
    struct bz_err err;
    struct buf question = { 0 };
    enum bz_status st = BZ_OK;
    bool asked = once && find_question(args[1], &question, &st, &err);
    if (st == BZ_OK && asked && !question.n)
        st = fail(&err, BZ_ERR_ARGUMENT, "the question is empty");
    if (st == BZ_OK) st = cli_read_form(&c.form, &err);
    if (st == BZ_OK) st = converse(&c, &m, args[0], &sampling, asked ? &question : NULL, &err);
    buf_free(&c.form.json);
    buf_free(&question);
    return st ? cli_fail(&cmd, &err) : CLI_OK;
}

int cmd_chat(int argc, char **argv)
{
    return run_chat(argc, argv, false);
}

int cmd_run(int argc, char **argv)
{
    return run_chat(argc, argv, true);
}
