/* part_file.h - a file on its way to the disk: NAME.part until it is whole, then NAME.
 *
 * A NAME.part that is there already (an earlier run was killed, or another is under way) is neither
 * followed, overwritten nor removed: this run writes NAME.2.part, or the next that is free.
 */
#ifndef BEZEL_IO_PART_FILE_H
#define BEZEL_IO_PART_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct part_file; /* opaque */

/* On failure *out is untouched and no file was made. */
enum bz_status part_file_open(struct part_file **out, const char *path, struct bz_err *err);
enum bz_status part_file_put(struct part_file *f, const void *p, size_t n, struct bz_err *err);
/* The next n bytes are zeros: a hole, which takes no room on the disk. */
enum bz_status part_file_skip(struct part_file *f, uint64_t n, struct bz_err *err);
/* Whole on the disk, then renamed: what was there stays until the new one is whole. */
enum bz_status part_file_finish(struct part_file *f, struct bz_err *err);
/* In every case, once; without finish nothing is left behind. NULL is allowed. */
void part_file_close(struct part_file *f);

/* All of it at once. */
enum bz_status part_file_write(const char *path, const void *p, size_t n, struct bz_err *err);

/* For a program that is told to stop, and ends at once after it: removes every .part that is open.
 * A handler of signals may call it, on any thread. */
void part_file_remove_all(void);

#endif
