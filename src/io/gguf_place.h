/* gguf_place.h - where the tensors of a file are: sizes, bounds and neighbours. Part of gguf.c. */
#ifndef BEZEL_IO_GGUF_PLACE_H
#define BEZEL_IO_GGUF_PLACE_H

#include "io/gguf.h"

/* Set n_bytes, and make offsets absolute: the data section of src begins at `base`. Afterwards
 * every tensor of a known type is inside src, is whole blocks, and shares no byte with another. */
enum bz_status gguf_place_tensors(struct gguf_tensor *tensors, uint64_t n, const struct source *src,
                                  uint64_t base, uint64_t align, struct bz_err *err);

#endif
