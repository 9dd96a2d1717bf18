/* ollama_disk.c - owns the way from names to paths of a store on the disk. Every path is resolved
 * and must end below the resolved root, so a link cannot lead out of the store; only plain files
 * are opened, so a pipe cannot hold us up. Reads only.
 */
#define _FILE_OFFSET_BITS 64 /* blobs past 2 GiB on 32-bit systems too */
#include "io/ollama_disk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "io/source.h"

/* --- paths --- */

enum bz_status disk_join(char out[PATH_MAX], const char *dir, const char *name, struct bz_err *err)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);
    if (n < 0 || n >= PATH_MAX)
        return fail(err, BZ_ERR_ARGUMENT, "%.200s: the path is too long", dir);
    return BZ_OK;
}

/* Resolve links; the result must lie below root, which is resolved itself. */
enum bz_status disk_resolve(char out[PATH_MAX], const char *root, const char *path,
                            struct bz_err *err)
{
    if (!realpath(path, out)) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return fail(err, absent ? BZ_ERR_NOT_FOUND : BZ_ERR_IO, "%s: %s", path, strerror(errno));
    }
    size_t n = strlen(root);
    if (n && root[n - 1] == '/') n--; /* the root may be "/" */
    if (strncmp(out, root, n) != 0 || out[n] != '/')
        return fail(err, BZ_ERR_FORMAT, "%s is a link that leads out of the store %s", path, root);
    return BZ_OK;
}

/* As resolve, for a plain file; *size may be NULL. */
enum bz_status disk_resolve_file(char out[PATH_MAX], uint64_t *size, const char *root,
                                 const char *path, struct bz_err *err)
{
    struct stat info;
    enum bz_status st = disk_resolve(out, root, path, err);
    if (st) return st;
    if (stat(out, &info) != 0) return fail(err, BZ_ERR_IO, "%s: %s", out, strerror(errno));
    if (!S_ISREG(info.st_mode)) return fail(err, BZ_ERR_NOT_FOUND, "%s is not a plain file", out);
    if (size) *size = (uint64_t)info.st_size;
    return BZ_OK;
}

static bool is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

enum bz_status disk_read(struct buf *out, const char *path, uint64_t max, struct bz_err *err)
{
    struct source src;
    enum bz_status st = source_open_file(&src, path, err);
    if (st) return st;
    st = source_read_all(&src, max, out, err);
    source_close(&src);
    return st;
}

/* --- the root --- */

/* A store is a directory with manifests in it. */
static bool is_store(char real[PATH_MAX], const char *path)
{
    char manifests[PATH_MAX];
    return realpath(path, real) && !disk_join(manifests, real, "manifests", NULL) &&
           is_dir(manifests);
}

/* Ollama strips space and quotes around the variable, and so do we. False when it is not set. */
static bool root_from_environment(char out[PATH_MAX])
{
    const char *v = getenv("OLLAMA_MODELS");
    if (!v) return false;
    v += strspn(v, " \t\r\n\"'");
    size_t n = strlen(v);
    while (n && strchr(" \t\r\n\"'", v[n - 1])) n--;
    if (n == 0 || n >= PATH_MAX) return false;
    memcpy(out, v, n);
    out[n] = 0;
    return true;
}

enum bz_status ollama_find_root(char **out, const char *wish, struct bz_err *err)
{
    static const char service[] = "/usr/share/ollama/.ollama/models";
    char path[PATH_MAX] = "", real[PATH_MAX];
    if (wish || root_from_environment(path)) {
        const char *asked = wish ? wish : path;
        if (!is_store(real, asked))
            return fail(err, BZ_ERR_NOT_FOUND,
                        "%s is not an Ollama store: it has no directory \"manifests\"", asked);
    } else {
        const char *home = getenv("HOME");
        bool found =
            home && *home && !disk_join(path, home, ".ollama/models", NULL) && is_store(real, path);
        if (!found && !is_store(real, service))
            return fail(err, BZ_ERR_NOT_FOUND,
                        "no Ollama store at %s or %s; set OLLAMA_MODELS to where it is",
                        *path ? path : "~/.ollama/models", service);
    }
    char *copy = mem_copy_str(real, strlen(real));
    if (!copy) return fail_memory(err, strlen(real));
    *out = copy;
    return BZ_OK;
}

enum bz_status disk_root(char out[PATH_MAX], const char *root, struct bz_err *err)
{
    if (is_store(out, root)) return BZ_OK;
    return fail(err, BZ_ERR_NOT_FOUND,
                "%s is not an Ollama store: it has no directory \"manifests\"", root);
}

/* --- walking the manifests --- */

struct walk {
    const char *root;
    const struct ollama_name *wish; /* NULL: every name */
    struct ollama_name name;        /* the parts above the current depth are set */
    struct ollama_name *names;
    size_t n, cap;
};

static enum bz_status keep_name(struct walk *w, struct bz_err *err)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 16;
        struct ollama_name *p = mem_grow(w->names, cap, sizeof *p);
        if (!p) return fail_memory(err, cap * sizeof *p);
        w->names = p;
        w->cap = cap;
    }
    w->names[w->n++] = w->name;
    return BZ_OK;
}

/* Directories that cannot be entered, lead outside or have names that no model can have are passed
 * over: a store may hold rubbish beside its models. */
static enum bz_status walk_dir(struct walk *w, const char *dir, enum ollama_part part,
                               struct bz_err *err)
{
    char real[PATH_MAX], path[PATH_MAX], file[PATH_MAX];
    if (disk_resolve(real, w->root, dir, NULL)) return BZ_OK;
    DIR *d = opendir(real);
    if (!d) return BZ_OK;
    enum bz_status st = BZ_OK;
    for (struct dirent *e; !st && (e = readdir(d));) {
        if (!ollama_name_set(&w->name, part, str_of(e->d_name))) continue;
        if (w->wish && !ollama_text_same(e->d_name, ollama_name_part(w->wish, part))) continue;
        if (disk_join(path, real, e->d_name, NULL)) continue;
        if (part < OLLAMA_TAG) st = walk_dir(w, path, part + 1, err);
        else if (!disk_resolve_file(file, NULL, w->root, path, NULL)) st = keep_name(w, err);
    }
    closedir(d);
    return st;
}

static int by_short_name(const void *a, const void *b)
{
    char x[OLLAMA_MAX_NAME], y[OLLAMA_MAX_NAME];
    ollama_short_name(a, x);
    ollama_short_name(b, y);
    return strcmp(x, y);
}

/* Names in the store, sorted; all of them, or those that match `wish` but for letter case. The
 * caller frees *out. */
enum bz_status disk_names(struct ollama_name **out, size_t *n, const char *root,
                          const struct ollama_name *wish, struct bz_err *err)
{
    char manifests[PATH_MAX];
    struct walk w = { .root = root, .wish = wish };
    enum bz_status st = disk_join(manifests, root, "manifests", err);
    if (!st) st = walk_dir(&w, manifests, OLLAMA_HOST, err);
    if (st) {
        mem_free(w.names);
        return st;
    }
    if (w.n) qsort(w.names, w.n, sizeof *w.names, by_short_name);
    *out = w.names;
    *n = w.n;
    return BZ_OK;
}

/* The manifest's resolved path, for a name in exactly this case. */
enum bz_status disk_manifest_path(char out[PATH_MAX], const char *root, const struct ollama_name *n,
                                  struct bz_err *err)
{
    char path[PATH_MAX];
    int k = snprintf(path, sizeof path, "%s/manifests/%s/%s/%s/%s", root, n->host, n->space,
                     n->model, n->tag);
    if (k < 0 || (size_t)k >= sizeof path)
        return fail(err, BZ_ERR_ARGUMENT, "%.200s: the path is too long", root);
    return disk_resolve_file(out, NULL, root, path, err);
}
