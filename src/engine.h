/* engine.h - what an engine and a session are made of; private to bezel.c and session.c. */
#ifndef BEZEL_ENGINE_H
#define BEZEL_ENGINE_H

#include "bezel.h"

#include "io/locate.h"
#include "model/forward.h"
#include "model/lora.h"
#include "text/sampler.h"
#include "text/tokenizer.h"

struct engine_adapter {
    struct attached attached;
    bool used;
};

struct bz_engine {
    struct located file;
    struct tokenizer *tokenizer;
    struct backend backend;
    struct model model;
    bool has_model;
    struct engine_adapter *adapters; /* an id is an index; removed ones leave a gap */
    size_t n_adapters;
    enum bz_chat_variant variant;
    char *system; /* NUL-ended copy of the store's, or NULL */
};

struct bz_session {
    struct bz_engine *engine;
    struct kv_cache kv;
    struct acts acts;
    struct sampler sampler;
    int32_t *tokens; /* kv.n_ctx; the first kv.n_past are in the cache */
    float *logits;   /* n_vocab: of the last token fed */
    bool has_logits;
    uint32_t n_batch;
};

#endif
