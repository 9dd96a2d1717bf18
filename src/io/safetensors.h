/* safetensors.h - the header of a .safetensors file; the tensor data stays in its source.
 *
 * The file is a u64 length, that many bytes of JSON, then data. Every range is checked here once,
 * so that a reader may trust offset and n_bytes. What the tensors mean is somebody else's business.
 */
#ifndef BEZEL_IO_SAFETENSORS_H
#define BEZEL_IO_SAFETENSORS_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strmap.h"
#include "io/source.h"

#define SAFETENSORS_MAX_HEADER 100000000u /* the format's own limit */
#define SAFETENSORS_MAX_DIMS   8

enum st_dtype {
    ST_F64,
    ST_F32,
    ST_F16,
    ST_BF16,
    ST_I64,
    ST_I32,
    ST_I16,
    ST_I8,
    ST_U8,
    ST_BOOL,
    ST_OTHER, /* dtype_name says which; its size is not checked against its shape */
};

struct st_tensor {
    struct str name;
    enum st_dtype dtype;
    struct str dtype_name;
    uint32_t n_dims;
    uint64_t shape[SAFETENSORS_MAX_DIMS]; /* slowest first, as written; 1 past n_dims */
    uint64_t offset;                      /* absolute, in the source */
    uint64_t n_bytes;
};

struct safetensors {
    struct source source; /* owned */
    struct st_tensor *tensors;
    uint64_t n_tensors;
    struct strmap by_name; /* tensor name -> index */
    struct arena arena;    /* the texts above */
};

/* Parse. Takes over the source in every case (on failure it is closed). On failure *out is
 * untouched. */
enum bz_status safetensors_open(struct safetensors *out, const struct source *src,
                                struct bz_err *err);

void safetensors_close(struct safetensors *s);

const struct st_tensor *safetensors_find(const struct safetensors *s, struct str name);

#endif
