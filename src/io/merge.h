/* merge.h - a model with an adapter added into its weights, W + s B A, as a new file.
 *
 * Tensors keep their formats, so what an adapter adds is rounded like the rest; formats that Bezel only
 * reads become Q8_0. Every other tensor and all metadata stay byte for byte. Whoever merges brings the
 * model's bytes, window by window and in order, so that neither file is ever in memory as a whole and
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

/* Say the metadata and name the tensors of w, whose data follows. An adapter that does not fit the model is
 * an error. g, a and w stay the caller's and must outlive *out. On failure *out is untouched. */
enum bz_status merge_open(struct merge **out, const struct gguf *g, const struct adapter *a,
                          float scale, struct gguf_writer *w, struct bz_err *err);

/* False when there is none left. Windows may be asked for ahead of those that are given. */
bool merge_next(struct merge *m, struct merge_window *out);

/* The bytes of the earliest window that was not given yet: what becomes of them goes to the writer. */
void merge_give(struct merge *m, const void *bytes);

/* Tensors that the adapter changes. */
size_t merge_n_changed(const struct merge *m);

void merge_close(struct merge *m); /* m may be NULL */

#endif
