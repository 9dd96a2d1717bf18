/* merge.h - a model with an adapter added into its weights, W + s B A, as a new file.
 *
 * Tensors keep their formats, so the sum is rounded as the weights were; formats that Bezel only
 * reads become Q8_0. Every other tensor and all metadata stay byte for byte. The caller brings the
 * model's bytes, window by window and in order. So neither file is ever in memory as a whole, and
 * nothing here waits.
 */
#ifndef BEZEL_IO_MERGE_H
#define BEZEL_IO_MERGE_H

#include "io/adapter.h"
#include "io/gguf_write.h"

struct merge; /* opaque */

/* The next bytes of the model that are wanted. */
struct merge_window {
    const struct source *src;
    uint64_t offset;
    size_t n_bytes; /* at most 4 MiB, or one row where that is longer */
};

/* Give w the metadata and the names of the tensors; their data follows. It is an error if the
 * adapter does not fit the model. g, a and w stay the caller's and must outlive *out. On failure
 * *out is untouched. */
enum bz_status merge_open(struct merge **out, const struct gguf *g, const struct adapter *a,
                          float scale, struct gguf_writer *w, struct bz_err *err);

/* False when there is none left. Windows may be asked for ahead of those that are given. */
bool merge_next(struct merge *m, struct merge_window *out);

/* Take the bytes of the earliest window not yet given. The merged bytes go to the writer. */
void merge_give(struct merge *m, const void *bytes);

/* Tensors that the adapter changes. */
size_t merge_n_changed(const struct merge *m);

void merge_close(struct merge *m); /* m may be NULL */

#endif
