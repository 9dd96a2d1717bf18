/* cli.h - what the commands of the native tool share: options, errors, opening a model. */
#ifndef BEZEL_CLI_CLI_H
#define BEZEL_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Exit codes. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

enum cli_type { CLI_FLAG, CLI_STR, CLI_STRS, CLI_U64, CLI_F64 };

/* A repeatable option's values (CLI_STRS). */
struct cli_strs {
    const char *v[64];
    size_t n;
};

struct cli_option {
    const char *name; /* "--top" */
    const char *arg;  /* what help calls its value: "K"; NULL for a flag */
    const char *help;
    enum cli_type type;
    /* bool, const char *, struct cli_strs, uint64_t or double; keeps its default if unset */
    void *out;
    bool *seen; /* may be NULL: set to true when the option is given */
};

struct cli_command {
    const char *name;
    const char *usage; /* what follows the name: "MODEL [options]" */
    const char *about; /* one or more lines */
    const struct cli_option *options;
    size_t n_options;
    int min_args, max_args; /* positional */
};

/* Parse. Positional arguments go to args (room for max_args). Returns how many there were; -1 when
 * the command is over (help was printed: exit code in *code, or usage was wrong). Options may stand
 * anywhere; "--" ends them; "--name=value" works too. */
int cli_parse(const struct cli_command *c, int argc, char **argv, const char **args, int *code);

/* "bezel NAME: sentence" on stderr; returns CLI_FAILED. */
int cli_fail(const struct cli_command *c, const struct bz_err *err);
/* The same for wrong usage, with a hint at --help; returns CLI_USAGE. */
__attribute__((format(printf, 2, 3))) int cli_misuse(const struct cli_command *c, const char *fmt,
                                                     ...);

/* From now on SIGINT, SIGTERM and SIGHUP end the tool: half-written files are removed, stderr gets
 * "bezel NAME: stopped", and the exit code is 128 + the signal's number. SIGPIPE does the same
 * silently. SIGXFSZ is ignored. */
void cli_stop_cleanly(const char *name);
/* For a command that writes files: a reader of its output that is gone does not end it. */
void cli_outlive_reader(void);
/* Set a command's own handler of a signal, unless whoever started the tool has the signal ignored
 * (nohup, a background job). The handler before it goes to *before, which may be NULL. */
struct sigaction;
void cli_on_signal(int number, void (*handler)(int), struct sigaction *before);

/* All of standard input. */
enum bz_status cli_read_stdin(struct buf *out, struct bz_err *err);
/* All of a file. */
enum bz_status cli_read_file(const char *path, struct buf *out, struct bz_err *err);

/* Write a model's text, in whole code points, to standard output. Control characters but newlines
 * and tabs are withheld from a terminal: a model must not command it. False: it cannot be
 * written. */
bool cli_put_text(struct str text);

/* "2,400,401" (commas or spaces) into ids the caller frees. */
enum bz_status cli_read_ids(const char *text, int32_t **ids, size_t *n, struct bz_err *err);

int cmd_inspect(int argc, char **argv);
int cmd_tokenize(int argc, char **argv);
int cmd_detokenize(int argc, char **argv);
int cmd_render(int argc, char **argv);
int cmd_grammar(int argc, char **argv);
int cmd_logits(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_diffuse(int argc, char **argv);
int cmd_canvas(int argc, char **argv);
int cmd_chat(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_synth(int argc, char **argv);
int cmd_quantize(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_pull(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_plan(int argc, char **argv);

#endif
