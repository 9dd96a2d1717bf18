/* script.h - a script: tokens for `bezel diffuse` to use instead of random ones. */
#ifndef BEZEL_CLI_SCRIPT_H
#define BEZEL_CLI_SCRIPT_H

#include "base/err.h"
#include "base/str.h"

struct script {
    int32_t *random, *sampled; /* n_random and n_sampled canvases; NULL where the script has none */
    size_t n_random, n_sampled;
};

/* {"random": [[...], ...], "sampled": [[...], ...]}: canvases of n tokens below n_vocab. One of the
 * two may be missing. On failure *out is untouched. */
enum bz_status script_read(struct script *out, struct str json, uint32_t n, uint32_t n_vocab,
                           struct bz_err *err);
void script_free(struct script *s);

#endif
