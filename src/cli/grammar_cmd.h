/* grammar_cmd.h - the two commands of `bezel grammar`. */
#ifndef BEZEL_CLI_GRAMMAR_CMD_H
#define BEZEL_CLI_GRAMMAR_CMD_H

#include "cli/cli_model.h"
#include "grammar/grammar.h"

int grammar_check(int argc, char **argv);
int grammar_maskbench(int argc, char **argv);

#endif
