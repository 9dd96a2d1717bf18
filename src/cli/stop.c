/* stop.c - signals that end the tool: Ctrl-C, a shutdown, a terminal or a reader that is gone. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/line.h"
#include "io/part_file.h"

static char sentence[64]; /* composed beforehand: a handler cannot */

static void on_stop(int number)
{
    line_restore_terminal();
    part_file_remove_all();
    if (number == SIGPIPE) _exit(128 + number); /* the reader has seen enough: `| head` */
    ssize_t n = write(STDERR_FILENO, sentence, strlen(sentence));
    (void)n; /* a terminal that is gone cannot be told */
    _exit(128 + number);
}

void cli_on_signal(int number, void (*handler)(int), struct sigaction *before)
{
    struct sigaction old, action = { .sa_handler = handler };
    sigemptyset(&action.sa_mask);
    sigaction(number, NULL, &old);
    if (before) *before = old;
    if (old.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
}

void cli_stop_cleanly(const char *name)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    snprintf(sentence, sizeof sentence, "bezel %s: stopped\n", name);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cli_on_signal(numbers[i], on_stop, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit on file sizes is an error of that write */
}

void cli_outlive_reader(void)
{
    signal(SIGPIPE, SIG_IGN);
}
