/* adapter_write.h - a LoRA adapter as bytes of a file that others read. */
#ifndef BEZEL_IO_ADAPTER_WRITE_H
#define BEZEL_IO_ADAPTER_WRITE_H

#include "io/adapter.h"

/* Append a GGUF adapter, as llama.cpp and Ollama load it, to out. Every target must have the same
 * alpha (scale times rank), since the file has room for one only. */
enum bz_status adapter_write_gguf(struct buf *out, const struct adapter *a, struct bz_err *err);

/* PEFT's two files: adapter_model.safetensors and adapter_config.json. `base` is the
 * configuration's name of the base model. */
enum bz_status adapter_write_peft(struct buf *weights, struct buf *config, const struct adapter *a,
                                  const char *base, struct bz_err *err);

#endif
