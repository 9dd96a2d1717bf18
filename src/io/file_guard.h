/* file_guard.h - mapped files that are cut short, or whose drive goes away, while they are in use.
 *
 * Touching a page that the system can no longer bring raises SIGBUS. While a mapping is guarded,
 * the library's handler maps zeros there instead and notes that the mapping is lost. Whoever
 * computes with a mapping asks source_lost before a result is used. SIGBUS anywhere else goes to
 * the handler that was there before, or ends the process as it always did.
 */
#ifndef BEZEL_IO_FILE_GUARD_H
#define BEZEL_IO_FILE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct file_guard; /* a place in a table of the process */

/* NULL: the table is full, or the system takes no handler; then the file must not stay mapped. */
struct file_guard *file_guard_add(const void *mapped, size_t n);
bool file_guard_lost(const struct file_guard *g);
/* Before the mapping goes. NULL is allowed. */
void file_guard_remove(struct file_guard *g);

#endif
