/* main.c - the native tool: finds the command. Each command is in its own file. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} commands[] = {
    { "chat", cmd_chat, "talk to a model in the terminal" },
    { "generate", cmd_generate, "continue a text" },
    { "list", cmd_list, "the models in the Ollama store" },
    { "inspect", cmd_inspect, "what is in a file, and whether it runs" },
    { "tokenize", cmd_tokenize, "text to token ids" },
    { "detokenize", cmd_detokenize, "token ids to text" },
    { "render", cmd_render, "a conversation to the prompt" },
    { "logits", cmd_logits, "the best next tokens at every position" },
    { "train", cmd_train, "learn a LoRA adapter from conversations" },
    { "merge", cmd_merge, "write a model with an adapter added into its weights" },
    { "bench", cmd_bench, "prompt and generation speed" },
    { "synth", cmd_synth, "write a model of real shape with random weights" },
    { "quantize", cmd_quantize, "rewrite a model in another format" },
};

static void print_help(FILE *to)
{
    fprintf(to, "Bezel %s: Gemma 4 on this machine.\n\nusage: bezel COMMAND [ARGUMENTS]\n\n",
            BZ_VERSION);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].about);
    fprintf(to,
            "\nbezel COMMAND --help says more. MODEL is a GGUF file or a name such as gemma4:e2b.\n"
            "Exit codes: 0 done, 1 failed (one sentence says why), 2 wrong usage, 130 stopped by "
            "Ctrl-C.\n");
}

/* Output that did not arrive (a full disk, a closed pipe) is a failure, whatever the command said. */
static int check_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fprintf(stderr, "bezel: cannot write the output: %s\n", strerror(errno));
    return code ? code : CLI_FAILED;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of writing, not a death */
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return check_output(CLI_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("bezel %s\n", BZ_VERSION);
        return CLI_OK;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            cli_stop_cleanly(argv[1]);
            return check_output(commands[i].run(argc - 1, argv + 1));
        }
    fprintf(stderr, "bezel: no command \"%s\" (see: bezel --help)\n", argv[1]);
    return CLI_USAGE;
}
