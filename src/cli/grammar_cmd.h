/* grammar_cmd.h - what the commands of `bezel grammar` share. */
#ifndef BEZEL_CLI_GRAMMAR_CMD_H
#define BEZEL_CLI_GRAMMAR_CMD_H

#include "cli/cli_model.h"
#include "grammar/grammar.h"

int grammar_check(int argc, char **argv);
int grammar_sample(int argc, char **argv);
int grammar_maskbench(int argc, char **argv);

/* What a grammar is read from, and whose vocabulary it is for. */
struct grammar_source {
    const char *schema, *grammar, *regex, *model, *store;
    struct grammar_options options;
    bz_engine *e;    /* of the model, once it is open */
    struct vocab *v; /* likewise */
};

/* The command line's options for it. */
#define GRAMMAR_OPTIONS(a)                                                                         \
    { "--schema", "FILE", "a JSON Schema", CLI_STR, &(a)->schema, NULL },                          \
        { "--grammar", "FILE", "a GBNF grammar", CLI_STR, &(a)->grammar, NULL },                   \
        { "--regex", "R", "a regular expression for the whole text", CLI_STR, &(a)->regex, NULL }, \
        { "--lenient",                                                                             \
          NULL,                                                                                    \
          "leave out what of a schema cannot be kept exactly",                                     \
          CLI_FLAG,                                                                                \
          &(a)->options.lenient,                                                                   \
          NULL },                                                                                  \
        { "--model", "MODEL", "whose vocabulary the masks are for", CLI_STR, &(a)->model, NULL },  \
    {                                                                                              \
        "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &(a)->store,     \
            NULL                                                                                   \
    }
#define GRAMMAR_ONE_OF "give one of --schema, --grammar and --regex"
bool grammar_source_is_one(const struct grammar_source *a);

/* The grammar; with a model also its vocabulary. */
enum bz_status grammar_source_open(struct grammar_source *a, struct grammar **g,
                                   struct bz_err *err);
/* The vocabulary alone. */
enum bz_status grammar_source_vocab(struct grammar_source *a, struct bz_err *err);
void grammar_source_close(struct grammar_source *a);

#endif
