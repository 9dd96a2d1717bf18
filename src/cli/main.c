/* main.c - the native tool: finds the command. Each command is in its own file. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} commands[] = {
    { "run", cmd_run, "ask once" },
    { "chat", cmd_chat, "talk to a model in the terminal" },
    { "generate", cmd_generate, "continue a text" },
    { "diffuse", cmd_diffuse, "continue a text with a diffusion model" },
    { "pull", cmd_pull, "bring a model from a registry or the hub (npx bezel pull)" },
    { "list", cmd_list, "the models in the Ollama store, and those that ship (also: ls)" },
    { "show", cmd_show, "what a model is, in a few lines" },
    { "cp", cmd_cp, "give a model a second name" },
    { "rm", cmd_rm, "delete a model" },
    { "inspect", cmd_inspect, "what is in a file, and whether it runs" },
    { "tokenize", cmd_tokenize, "text to token ids" },
    { "detokenize", cmd_detokenize, "token ids to text" },
    { "render", cmd_render, "a conversation to the prompt" },
    { "grammar", cmd_grammar, "check and measure schemas, patterns and grammars" },
    { "logits", cmd_logits, "the best next tokens at every position" },
    { "canvas", cmd_canvas, "the logits of a diffusion model's canvas" },
    { "train", cmd_train, "learn a LoRA adapter from conversations" },
    { "merge", cmd_merge, "write a model with an adapter added into its weights" },
    { "bench", cmd_bench, "prompt and generation speed" },
    { "plan", cmd_plan, "the dispatches of a step on a GPU, without one" },
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
            "\nbezel COMMAND --help says more. MODEL is a GGUF file, a name such as gemma4:e2b,\n"
            "or tiny, which ships with Bezel.\n"
            "Exit codes: 0 done, 1 failed (one sentence says why), 2 wrong usage, 130 stopped by "
            "Ctrl-C.\n");
}

/* Asked of the system: errno of a write that failed earlier is gone. */
static bool reader_is_gone(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

/* Output that could not be written (a full disk) is a failure, whatever the command returned. A
 * reader that ends early (`| head`) is none. */
static int check_output(int code)
{
    int why = fflush(stdout) == 0 ? 0 : errno;
    if (!why && !ferror(stdout)) return code;
    if (why == EPIPE || reader_is_gone()) return 128 + SIGPIPE; /* where SIGPIPE is ignored */
    if (why) fprintf(stderr, "bezel: cannot write the output: %s\n", strerror(why));
    else fprintf(stderr, "bezel: cannot write some of the output\n");
    return code ? code : CLI_FAILED;
}

static int run_command(int argc, char **argv)
{
    if (strcmp(argv[0], "ls") == 0) argv[0] = "list";
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[0], commands[i].name) == 0) {
            cli_stop_cleanly(argv[0]);
            return check_output(commands[i].run(argc, argv));
        }
    fprintf(stderr, "bezel: no command \"%s\" (see: bezel --help)\n", argv[0]);
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    bool help = strcmp(argv[1], "help") == 0;
    if (help && argc > 2) return run_command(2, (char *[]) { argv[2], "--help", NULL });
    if (help || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return check_output(CLI_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("bezel %s\n", BZ_VERSION);
        return check_output(CLI_OK);
    }
    return run_command(argc - 1, argv + 1);
}
