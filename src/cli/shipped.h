/* shipped.h - the small models that come with the program, by name. */
#ifndef BEZEL_CLI_SHIPPED_H
#define BEZEL_CLI_SHIPPED_H

#include <limits.h>
#include <stdbool.h>

enum { SHIPPED_N = 3 };
extern const char *const shipped_names[SHIPPED_N];

/* The file of a shipped model: models/NAME.q8_0.gguf in a folder above the program. False where the
 * program was moved away from its models. */
bool shipped_path(const char *name, char path[PATH_MAX]);

/* The file or name that the library opens for MODEL: the file of a shipped model, if MODEL names
 * one and neither a file nor the Ollama store has that name; else MODEL itself. With `store` only
 * that store is searched. `path` is room for the answer. */
const char *shipped_or(const char *model, const char *store, char path[PATH_MAX]);

#endif
