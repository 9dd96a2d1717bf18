/* locate.h - what a person means by MODEL: a path, or a name in the Ollama store. */
#ifndef BEZEL_IO_LOCATE_H
#define BEZEL_IO_LOCATE_H

#include "io/gguf.h"
#include "io/ollama.h"

struct located {
    struct gguf gguf;          /* the text model (or whatever the file is) */
    bool from_store;           /* then `store` is filled */
    struct ollama_model store; /* manifest, config, params, system, messages */
};

/* A path that exists is a file; anything else is looked up in the store (`root` NULL: Ollama's own
 * place). On failure *out is untouched. */
enum bz_status locate_open(struct located *out, const char *model, const char *root,
                           struct bz_err *err);

static inline void locate_close(struct located *l)
{
    gguf_close(&l->gguf);
    if (l->from_store) ollama_close(&l->store);
    *l = (struct located) { 0 };
}

#endif
