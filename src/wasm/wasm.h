/* wasm.h - shared by the files that export functions to the host.
 *
 * boundary.def has the functions, each with its contract; the host calls these and no others.
 * Pointers are numbers to it.
 */
#ifndef BEZEL_WASM_WASM_H
#define BEZEL_WASM_WASM_H

#include "base/json.h"
#include "boundary.h"
#include "engine.h"

/* EXPORT(type, name, arguments) { ... } defines a function that the host can call. */
#define EXPORT(type, name, ...) __attribute__((export_name(#name))) type name(__VA_ARGS__)

/* The last failure: one thread, one sentence. */
extern struct bz_err wasm_err;
extern enum bz_status wasm_status;

/* Bytes that a function hands over, for the host to read before the next call. The last ones are
 * freed by the next wasm_give; what wasm_show names stays its owner's. */
void wasm_give(void *data, size_t n);
void wasm_show(const void *data, size_t n);

/* Hand over a finished text; -1 when it ran out of memory. */
int32_t wasm_give_text(struct buf *b);

/* Remember st; true when it is a failure. */
bool wasm_failed(enum bz_status st);

/* JSON of generation options over the defaults in *o; texts live in `a`. *constraint: the text of
 * one, or p == NULL; the caller opens it. */
enum bz_status wasm_read_options(struct bz_generate_options *o, struct str *constraint,
                                 const bz_engine *e, struct str text, struct arena *a);

/* Options: members of a JSON object that may be absent. False: it is not there or not a number. */
bool json_f32(const struct json *j, const char *key, float *out);
bool json_u32(const struct json *j, const char *key, uint32_t *out);
bool json_flag(const struct json *j, const char *key);

/* Open a file: {"sources": [{"id", "name", "size"}, ...], "store"}. Several sources are the shards
 * of one model. The store is its texts as they are, each of which may be absent: {"name", "root",
 * "manifest", "config", "params", "system", "messages"}. On failure *out is untouched, here and
 * below. */
enum bz_status wasm_open_file(struct located *out, const struct json *j);

/* {"source": {...}, "config"}: a GGUF adapter, or PEFT's with the text of adapter_config.json. */
enum bz_status wasm_open_adapter(struct adapter *out, const struct json *j);

/* Give the host an adapter as the bytes of a file. `base` is the model's name in PEFT's files. */
int32_t wasm_give_adapter(const struct adapter *a, enum adapter_file which, const char *base);

#endif
