/* ollama_fixture.h - a store on the disk for a test, made of texts. */
#ifndef BEZEL_TESTS_OLLAMA_FIXTURE_H
#define BEZEL_TESTS_OLLAMA_FIXTURE_H

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/str.h"

static char root[400], base[300]; /* the store; a directory around it */

/* --- building a store --- */

static inline void make_dirs(const char *path)
{
    char part[1024];
    for (size_t i = 1; path[i - 1]; i++) {
        if (path[i] != '/' && path[i]) continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST) perror(part);
    }
}

static inline void write_file(const char *path, const void *p, size_t n)
{
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = 0;
    make_dirs(dir);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n) perror(path);
    if (f) fclose(f);
}

static inline int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static inline void remove_all(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void blob_path(char out[600], const char *hex)
{
    snprintf(out, 600, "%s/blobs/sha256-%s", root, hex);
}

static inline void digest_of(char hex[65], const char *text)
{
    struct sha256 h;
    uint8_t digest[32];
    sha256_init(&h);
    sha256_feed(&h, text, strlen(text));
    sha256_end(&h, digest);
    sha256_hex(digest, hex);
}

/* Store text as a blob and append its layer to the manifest under construction. */
static inline void add_layer(struct buf *layers, const char *kind, const char *text)
{
    char hex[65], path[600];
    digest_of(hex, text);
    blob_path(path, hex);
    write_file(path, text, strlen(text));
    buf_printf(layers,
               "%s{\"mediaType\":\"application/vnd.ollama.image.%s\",\"digest\":\"sha256:%s\","
               "\"size\":%zu}",
               layers->n ? "," : "", kind, hex, strlen(text));
}

static inline void manifest_at(const char *where, const char *json)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/manifests/%s", root, where);
    write_file(path, json, strlen(json));
}

/* `layers` ends with the config's layer, which moves to its own member. */
static inline void put_manifest(const char *where, struct buf *layers, struct buf *config)
{
    struct buf all = { 0 };
    buf_puts(&all, "{\"schemaVersion\":2,\"mediaType\":"
                   "\"application/vnd.docker.distribution.manifest.v2+json\"");
    if (config && config->n) buf_printf(&all, ",\"config\":%s", config->data);
    buf_printf(&all, ",\"layers\":[%s]}", layers->n ? layers->data : "");
    manifest_at(where, all.data);
    buf_free(&all);
    buf_free(layers);
    if (config) buf_free(config);
}

/* Where this test makes its store: call first. */
static inline void name_store(const char *test)
{
    snprintf(base, sizeof base, "build/tmp/%s-%ld", test, (long)getpid());
    snprintf(root, sizeof root, "%s/store", base);
}

#endif
