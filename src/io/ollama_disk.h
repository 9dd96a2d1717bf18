/* ollama_disk.h - paths of a store on the disk, for those files that read or change one. */
#ifndef BEZEL_IO_OLLAMA_DISK_H
#define BEZEL_IO_OLLAMA_DISK_H

#include <limits.h>

#include "io/ollama.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

#define MAX_MANIFEST (16u << 20)

enum bz_status disk_join(char out[PATH_MAX], const char *dir, const char *name, struct bz_err *err);

/* Resolve links; the result must lie below root, which is resolved itself. */
enum bz_status disk_resolve(char out[PATH_MAX], const char *root, const char *path,
                            struct bz_err *err);
/* The same for a plain file; *size may be NULL. */
enum bz_status disk_resolve_file(char out[PATH_MAX], uint64_t *size, const char *root,
                                 const char *path, struct bz_err *err);

/* All of a file of at most max bytes. */
enum bz_status disk_read(struct buf *out, const char *path, uint64_t max, struct bz_err *err);

/* A store's directory, resolved. */
enum bz_status disk_root(char out[PATH_MAX], const char *root, struct bz_err *err);

/* Names in the store, sorted; all of them, or those that match `wish` but for letter case. The
 * caller frees *out. */
enum bz_status disk_names(struct ollama_name **out, size_t *n, const char *root,
                          const struct ollama_name *wish, struct bz_err *err);

/* The manifest's resolved path, for a name in exactly this case. */
enum bz_status disk_manifest_path(char out[PATH_MAX], const char *root, const struct ollama_name *n,
                                  struct bz_err *err);

/* The path of the manifest, and the name in the store's own case. */
enum bz_status ollama_find(char path[PATH_MAX], struct ollama_name *name, const char *root,
                           const char *asked, struct bz_err *err);

#endif
