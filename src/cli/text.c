/* text.c - the commands that need no weights: tokenize, detokenize, render. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli_model.h"
#include "cli/shipped.h"

/* Only the vocabulary. */
static enum bz_status open_vocab(bz_engine **e, const char *model, const char *store,
                                 struct bz_err *err)
{
    char path[PATH_MAX];
    return bz_engine_open(e, shipped_or(model, store, path),
                          &(struct bz_engine_options) { .store = store, .vocab_only = true }, err);
}

static void print_ids(const int32_t *ids, size_t n)
{
    putchar('[');
    for (size_t i = 0; i < n; i++) printf("%s%d", i ? "," : "", ids[i]);
    printf("]\n");
}

int cmd_tokenize(int argc, char **argv)
{
    bool no_bos = false, plain = false, chat = false;
    const char *store = NULL, *model;
    const struct cli_option options[] = {
        { "--no-bos", NULL, "do not begin with <bos>", CLI_FLAG, &no_bos, NULL },
        { "--plain", NULL, "special tokens' text is ordinary text", CLI_FLAG, &plain, NULL },
        { "--chat", NULL, "the text is a conversation, as render takes it", CLI_FLAG, &chat, NULL },
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &store, NULL },
    };
    const struct cli_command c = {
        "tokenize",
        "MODEL < TEXT",
        "Text on standard input to one JSON array of token ids. MODEL is a "
        "GGUF file (a\nvocabulary is enough) or a name in the Ollama store. Text that spells a "
        "special\ntoken is that token, but not with --plain, and not in a message of --chat.",
        options,
        sizeof options / sizeof *options,
        1,
        1
    };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    if (chat && (no_bos || plain))
        return cli_misuse(&c, "--chat takes neither --no-bos nor --plain");
    struct bz_err err;
    bz_engine *e = NULL;
    struct buf text = { 0 };
    int32_t *ids = NULL;
    size_t n = 0;
    enum bz_status st = open_vocab(&e, model, store, &err);
    if (st == BZ_OK) st = cli_read_stdin(&text, &err);
    if (st == BZ_OK) {
        struct bz_chat_options o = { .variant = bz_engine_info(e).chat_variant };
        st = chat ? bz_chat_tokenize(e, text.data, text.n, &o, &ids, &n, NULL, &err)
                  : bz_tokenize(e, text.data, text.n, !no_bos, plain, &ids, &n, &err);
    }
    if (st == BZ_OK) print_ids(ids, n);
    bz_free(ids);
    buf_free(&text);
    bz_engine_close(e);
    return st ? cli_fail(&c, &err) : CLI_OK;
}

int cmd_detokenize(int argc, char **argv)
{
    bool specials = false;
    const char *store = NULL, *ids_text = NULL, *model;
    const struct cli_option options[] = {
        { "--ids", "LIST", "ids, separated by commas; default standard input", CLI_STR, &ids_text,
          NULL },
        { "--specials", NULL, "show control tokens too", CLI_FLAG, &specials, NULL },
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &store, NULL },
    };
    const struct cli_command c = { "detokenize",
                                   "MODEL < IDS",
                                   "Token ids to text.",
                                   options,
                                   sizeof options / sizeof *options,
                                   1,
                                   1 };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    struct bz_err err;
    bz_engine *e = NULL;
    struct buf input = { 0 };
    int32_t *ids = NULL;
    char *text = NULL;
    size_t n = 0, n_text = 0;
    enum bz_status st = open_vocab(&e, model, store, &err);
    if (st == BZ_OK && !ids_text) st = cli_read_stdin(&input, &err);
    if (st == BZ_OK)
        st = cli_read_ids(ids_text ? ids_text : input.n ? input.data : "", &ids, &n, &err);
    if (st == BZ_OK) st = bz_detokenize(e, ids, n, specials, &text, &n_text, &err);
    if (st == BZ_OK) fwrite(text, 1, n_text, stdout);
    bz_free(text);
    bz_free(ids);
    buf_free(&input);
    bz_engine_close(e);
    return st ? cli_fail(&c, &err) : CLI_OK;
}

int cmd_render(int argc, char **argv)
{
    const char *variant = "small", *unused;
    bool thinking = false, history = false;
    const struct cli_option options[] = {
        { "--variant", "NAME", "small (E2B, E4B; default) or large (12B, 26B-A4B, 31B)", CLI_STR,
          &variant, NULL },
        { "--thinking", NULL, "ask the model to think first", CLI_FLAG, &thinking, NULL },
        { "--history", NULL, "no generation prompt at the end", CLI_FLAG, &history, NULL },
    };
    const struct cli_command c = { "render",
                                   "< CONVERSATION",
                                   "A conversation {\"messages\": [...], \"tools\": [...]} on "
                                   "standard input to the prompt, byte "
                                   "for byte.\nIts token ids: tokenize --chat.",
                                   options,
                                   sizeof options / sizeof *options,
                                   0,
                                   0 };
    int code;
    if (cli_parse(&c, argc, argv, &unused, &code) < 0) return code;
    if (strcmp(variant, "small") != 0 && strcmp(variant, "large") != 0)
        return cli_misuse(&c, "--variant is small or large, not \"%s\"", variant);
    struct bz_chat_options o = { .thinking = thinking,
                                 .no_generation_prompt = history,
                                 .variant = strcmp(variant, "large") == 0 ? BZ_CHAT_LARGE
                                                                          : BZ_CHAT_SMALL };
    struct bz_err err;
    struct buf input = { 0 };
    char *prompt = NULL;
    size_t n = 0;
    enum bz_status st = cli_read_stdin(&input, &err);
    if (st == BZ_OK) st = bz_chat_render(input.data, input.n, &o, &prompt, &n, &err);
    if (st == BZ_OK) fwrite(prompt, 1, n, stdout);
    bz_free(prompt);
    buf_free(&input);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
