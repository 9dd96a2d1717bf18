/* wgsl.h - the WGSL preprocessor: one kernel's text from an entry file and a value for each axis.
 *
 * A file is WGSL with directives, each on a line of its own:
 *
 *     //!axis NAME v1 v2 ...     an entry's axis and its values; the first is the default
 *     //!without E               an entry has no variant where E holds
 *     //!if E  //!elif E  //!else  //!end
 *     //!for I in a b c  //!end  the lines between, once for each word
 *     //!include PATH [as SUF]   another file, once; with SUF its names end in _SUF
 *     //!bind x read T           a storage buffer `x : T`; update: it is written
 *
 * E compares an axis or the word of a loop: `NAME == v`, `NAME != v`, `NAME in v1 v2`, with && || !
 * and parentheses. $NAME is its value, in any line. An included file sees the includer's axes.
 * Buffers are numbered behind the uniforms, in order. Declarations that main does not reach are
 * left out; `enable` lines come first. The work is linear in the text.
 *
 * Files are ours: an error is a bug that tools/kernels.py reports when it expands every variant.
 * Their comments are removed beforehand, and nothing here reads files.
 */
#ifndef BEZEL_GPU_WGSL_H
#define BEZEL_GPU_WGSL_H

#include "base/err.h"
#include "base/str.h"

struct wgsl_file {
    const char *path, *text; /* without comments, but for directives */
};

struct wgsl_files {
    const struct wgsl_file *files; /* sorted by path */
    uint32_t n;
};

struct wgsl_place {
    uint16_t file, line;
};

enum { WGSL_MAX_BINDINGS = 14 };

struct wgsl {
    struct buf name, text;                /* name: `matmul[q4_k subgroup]`, without the defaults */
    char bindings[WGSL_MAX_BINDINGS + 1]; /* a letter each: u uniform, r read, w read and write */
    struct wgsl_place *places;            /* where each line of the text comes from */
    uint32_t n_places;
};

/* Expand files[entry]. `axes` holds the number of each axis's value, the first axis in the lowest
 * bits, each in as many bits as its values need. BZ_ERR_NOT_FOUND: //!without excludes the variant.
 * Free *out with wgsl_free, after an error too. */
enum bz_status wgsl_expand(struct wgsl *out, const struct wgsl_files *from, uint32_t entry,
                           uint32_t axes, struct bz_err *err);
void wgsl_free(struct wgsl *w);

/* The place of a path in the list; its length when it is not there. */
uint32_t wgsl_find(const struct wgsl_files *from, struct str path);

#endif
