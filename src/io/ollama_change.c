/* ollama_change.c - owns what is changed in a store: a model copied, a model deleted. Blobs are
 * only ever deleted here; `npx bezel pull` writes them, and its locks are kept (file_locks.ts has
 * the same rules).
 */
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "io/ollama_disk.h"

#define STALE_S  15  /* a lock that nobody has touched for so long was left behind */
#define WAIT_MS  100 /* before another look at a lock, */
#define MAX_WAIT 50  /* and how often */
#define MAX_LOCK (1u << 20)
#define MODE_DIR 0755

static enum bz_status fail_change(struct bz_err *err, const char *path)
{
    int why = errno;
    return fail(err, BZ_ERR_IO, "%s cannot be changed: %s", path, strerror(why));
}

/* --- locks --- */

static enum bz_status make_dir(const char *path, struct bz_err *err)
{
    return mkdir(path, MODE_DIR) == 0 || errno == EEXIST ? BZ_OK : fail_change(err, path);
}

static bool is_live(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && time(NULL) - info.st_mtime <= STALE_S;
}

static void pause_ms(long ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

/* A folder below the root, made if need be, that no link leads out of. */
static enum bz_status make_place(char out[PATH_MAX], const char *root, const char *const *parts,
                                 size_t n, struct bz_err *err)
{
    char next[PATH_MAX];
    enum bz_status st = BZ_OK;
    snprintf(out, PATH_MAX, "%s", root);
    for (size_t i = 0; i < n && !st; i++) {
        st = disk_join(next, out, parts[i], err);
        if (!st) st = make_dir(next, err);
        if (!st) st = disk_resolve(out, root, next, err);
    }
    return st;
}

static enum bz_status find_partial(char out[PATH_MAX], const char *root, struct bz_err *err)
{
    return make_place(out, root, (const char *const[]) { "partial" }, 1, err);
}

/* The lock's file, which the caller removes. */
static enum bz_status take_lock(char file[PATH_MAX], const char *root, struct bz_err *err)
{
    char dir[PATH_MAX], text[64];
    enum bz_status st = find_partial(dir, root, err);
    if (!st) st = disk_join(file, dir, "manifests.lock", err);
    if (st) return st;
    int n = snprintf(text, sizeof text, "{\"id\":\"%ld\",\"uses\":[]}", (long)getpid());
    for (int i = 0; i < MAX_WAIT; i++) {
        int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd >= 0) {
            bool written = write(fd, text, (size_t)n) == n;
            close(fd);
            if (written) return BZ_OK;
            unlink(file);
            return fail_change(err, file);
        }
        if (errno != EEXIST) return fail_change(err, file);
        if (!is_live(file)) unlink(file);
        else pause_ms(WAIT_MS);
    }
    return fail(err, BZ_ERR_IO, "another program keeps changing the store %s", root);
}

/* Does a lock's text name the blob? */
static bool names_blob(const char *path, const char *blob)
{
    struct arena a = { 0 };
    struct buf text = { 0 };
    struct json *lock;
    struct bz_err err;
    bool found = false;
    if (!disk_read(&text, path, MAX_LOCK, &err) && !json_parse(&lock, buf_str(&text), &a, &err)) {
        const struct json *uses = json_get(lock, "uses");
        for (const struct json *j = uses ? uses->child : NULL; j && !found; j = j->next)
            found = j->type == JSON_STRING && str_is(j->text, blob);
    }
    buf_free(&text);
    arena_free(&a);
    return found;
}

/* Does a pull that is under way need the blob? */
static bool is_used_now(const char *root, const char *digest)
{
    char dir[PATH_MAX], path[PATH_MAX], blob[80];
    snprintf(blob, sizeof blob, "sha256-%s", digest);
    if (disk_join(dir, root, "partial", NULL)) return false;
    DIR *d = opendir(dir);
    if (!d) return false;
    bool found = false;
    for (struct dirent *e; !found && (e = readdir(d));)
        found = str_ends(str_of(e->d_name), ".lock") && !disk_join(path, dir, e->d_name, NULL) &&
                is_live(path) && names_blob(path, blob);
    closedir(d);
    return found;
}

/* --- blobs --- */

static enum bz_status read_blobs(struct ollama_blobs *out, struct buf *text, const char *path,
                                 struct arena *a, struct bz_err *err)
{
    enum bz_status st = disk_read(text, path, MAX_MANIFEST, err);
    return st ? st : ollama_parse_blobs(out, buf_str(text), a, err);
}

/* Forget, of these blobs, those that a model names. One manifest that makes no sense names none. */
static enum bz_status drop_named(struct ollama_blobs *blobs, const char *root,
                                 const struct ollama_name *name, struct bz_err *err)
{
    char path[PATH_MAX];
    struct arena a = { 0 };
    struct buf text = { 0 };
    struct ollama_blobs named = { 0 };
    enum bz_status st = disk_manifest_path(path, root, name, err);
    if (!st) st = read_blobs(&named, &text, path, &a, err);
    for (size_t i = 0; i < named.n; i++)
        for (size_t k = 0; k < blobs->n;)
            if (strcmp(blobs->v[k].digest, named.v[i].digest) == 0)
                blobs->v[k] = blobs->v[--blobs->n];
            else k++;
    buf_free(&text);
    arena_free(&a);
    return st == BZ_ERR_MEMORY ? st : BZ_OK;
}

/* Delete those of the blobs that no model names. */
static enum bz_status delete_unused(struct ollama_blobs *blobs, const char *root,
                                    struct bz_err *err)
{
    struct ollama_name *names = NULL;
    size_t n = 0;
    enum bz_status st = disk_names(&names, &n, root, NULL, err);
    for (size_t i = 0; i < n && !st; i++) st = drop_named(blobs, root, &names[i], err);
    mem_free(names);
    for (size_t i = 0; i < blobs->n && !st; i++) {
        char name[96], path[PATH_MAX], real[PATH_MAX];
        snprintf(name, sizeof name, "blobs/sha256-%s", blobs->v[i].digest);
        st = disk_join(path, root, name, err);
        if (st || disk_resolve(real, root, path, NULL)) continue; /* it is not there */
        if (unlink(path) != 0 && errno != ENOENT) st = fail_change(err, path);
    }
    return st;
}

/* --- removing --- */

/* The manifest (a link is removed, and not what it leads to) and folders that are empty then. */
static enum bz_status remove_manifest(const char *root, const struct ollama_name *name,
                                      struct bz_err *err)
{
    char at[PATH_MAX];
    int n = snprintf(at, sizeof at, "%s/manifests/%s/%s/%s/%s", root, name->host, name->space,
                     name->model, name->tag);
    if (n < 0 || (size_t)n >= sizeof at)
        return fail(err, BZ_ERR_ARGUMENT, "%.200s: the path is too long", root);
    if (unlink(at) != 0) return fail_change(err, at);
    for (int part = OLLAMA_NAME; part >= OLLAMA_HOST; part--) {
        *strrchr(at, '/') = 0;
        if (rmdir(at) != 0) break; /* others are in it */
    }
    return BZ_OK;
}

static enum bz_status remove_model(const char *root, const char *asked, struct bz_err *err)
{
    char path[PATH_MAX], short_name[OLLAMA_MAX_NAME];
    struct ollama_name name;
    struct arena a = { 0 };
    struct buf text = { 0 };
    struct ollama_blobs blobs = { 0 };
    enum bz_status st = ollama_find(path, &name, root, asked, err);
    if (!st && read_blobs(&blobs, &text, path, &a, err) == BZ_ERR_MEMORY) st = BZ_ERR_MEMORY;
    for (size_t i = 0; i < blobs.n && !st; i++) {
        if (!is_used_now(root, blobs.v[i].digest)) continue;
        ollama_short_name(&name, short_name);
        st = fail(err, BZ_ERR_ARGUMENT,
                  "%s is in use: a pull needs some of its files; stop the pull or wait for it",
                  short_name);
    }
    if (!st) st = remove_manifest(root, &name, err);
    if (!st) st = delete_unused(&blobs, root, err);
    buf_free(&text);
    arena_free(&a);
    return st;
}

enum bz_status ollama_remove(const char *root, const char *name, struct bz_err *err)
{
    char real[PATH_MAX], lock[PATH_MAX];
    enum bz_status st = disk_root(real, root, err);
    if (!st) st = take_lock(lock, real, err);
    if (st) return st;
    st = remove_model(real, name, err);
    unlink(lock);
    return st;
}

/* --- copying --- */

/* The name in the letters that the store already has, part by part. */
static enum bz_status adopt_case(struct ollama_name *name, const char *root, struct bz_err *err)
{
    struct ollama_name *names = NULL;
    size_t n = 0;
    enum bz_status st = disk_names(&names, &n, root, NULL, err);
    for (int i = OLLAMA_HOST; i < OLLAMA_N_PARTS && !st; i++) {
        enum ollama_part part = (enum ollama_part)i;
        size_t kept = 0;
        for (size_t k = 0; k < n; k++)
            if (ollama_text_same(ollama_name_part(&names[k], part), ollama_name_part(name, part)))
                names[kept++] = names[k];
        n = kept;
        if (n == 0) break;
        ollama_name_set(name, part, str_of(ollama_name_part(&names[0], part)));
    }
    mem_free(names);
    return st;
}

static enum bz_status check_whole(const struct ollama_blobs *blobs, const char *root,
                                  const char *asked, struct bz_err *err)
{
    for (size_t i = 0; i < blobs->n; i++) {
        char name[96], path[PATH_MAX], real[PATH_MAX];
        uint64_t size = 0;
        snprintf(name, sizeof name, "blobs/sha256-%s", blobs->v[i].digest);
        enum bz_status st = disk_join(path, root, name, err);
        if (st) return st;
        if (disk_resolve_file(real, &size, root, path, NULL) || size != blobs->v[i].size)
            return fail(err, BZ_ERR_FORMAT,
                        "%s has lost files, so that it cannot be copied; pull it again", asked);
    }
    return BZ_OK;
}

/* In the place of what is there, whole or not at all. */
static enum bz_status replace_file(const char *root, const char *path, struct str text,
                                   struct bz_err *err)
{
    char dir[PATH_MAX], next[PATH_MAX], name[64];
    snprintf(name, sizeof name, "new-%ld", (long)getpid());
    enum bz_status st = find_partial(dir, root, err);
    if (!st) st = disk_join(next, dir, name, err);
    if (st) return st;
    unlink(next); /* what a process of the same number left */
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0) return fail_change(err, next);
    bool written = write(fd, text.p, text.n) == (ssize_t)text.n && fsync(fd) == 0;
    if (!written) st = fail_change(err, next);
    close(fd);
    if (!st && rename(next, path) != 0) st = fail_change(err, path);
    if (st) unlink(next);
    return st;
}

static enum bz_status copy_model(const char *root, const char *from, const char *to,
                                 struct bz_err *err)
{
    char source[PATH_MAX], dir[PATH_MAX], path[PATH_MAX];
    struct ollama_name name, made = { "", "", "", "" };
    struct arena a = { 0 };
    struct buf text = { 0 }, old = { 0 };
    struct ollama_blobs blobs = { 0 }, before = { 0 };
    enum bz_status st = ollama_find(source, &name, root, from, err);
    if (!st) st = ollama_parse_name(&made, str_of(to), err);
    if (!st) st = adopt_case(&made, root, err);
    if (!st) st = read_blobs(&blobs, &text, source, &a, err);
    if (!st) st = check_whole(&blobs, root, from, err);
    const char *const parts[] = { "manifests", made.host, made.space, made.model };
    if (!st) st = make_place(dir, root, parts, sizeof parts / sizeof *parts, err);
    if (!st) st = disk_join(path, dir, made.tag, err);
    if (!st && strcmp(path, source) != 0) {
        if (read_blobs(&before, &old, path, &a, NULL)) before.n = 0; /* nothing was there */
        st = replace_file(root, path, buf_str(&text), err);
        for (size_t i = 0; i < before.n;)
            if (is_used_now(root, before.v[i].digest)) before.v[i] = before.v[--before.n];
            else i++;
        if (!st) st = delete_unused(&before, root, err);
    }
    buf_free(&text);
    buf_free(&old);
    arena_free(&a);
    return st;
}

enum bz_status ollama_copy(const char *root, const char *from, const char *to, struct bz_err *err)
{
    char real[PATH_MAX], lock[PATH_MAX];
    enum bz_status st = disk_root(real, root, err);
    if (!st) st = take_lock(lock, real, err);
    if (st) return st;
    st = copy_model(real, from, to, err);
    unlink(lock);
    return st;
}
