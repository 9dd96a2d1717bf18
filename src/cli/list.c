/* list.c - the models on this machine: those of the Ollama store and those that ship. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "cli/cli.h"
#include "cli/shipped.h"
#include "io/ollama.h"
#include "io/source.h"

struct row {
    char name[OLLAMA_MAX_NAME];
    char digest[65];
    uint64_t size;
};

struct rows {
    struct row *v;
    size_t n;
};

static void print_row(const struct row *r, bool json, bool first)
{
    if (!json) {
        printf("%-40s %10.2f GB  %.12s\n", r->name, (double)r->size / 1e9, r->digest);
        return;
    }
    struct buf b = { 0 };
    buf_puts(&b, first ? "\n  {\"name\":" : ",\n  {\"name\":");
    json_put_string(&b, str_of(r->name));
    buf_printf(&b, ",\"size\":%llu,\"digest\":\"%s\"}", (unsigned long long)r->size, r->digest);
    fwrite(b.data, 1, b.n, stdout);
    buf_free(&b);
}

static enum bz_status hash_file(struct row *r, const char *path, struct bz_err *err)
{
    struct source file;
    enum bz_status st = source_open_file(&file, path, err);
    if (st) return st;
    struct sha256 hash;
    uint8_t piece[65536], digest[32];
    r->size = file.size;
    sha256_init(&hash);
    for (uint64_t at = 0; st == BZ_OK && at < file.size; at += sizeof piece) {
        size_t n = file.size - at < sizeof piece ? (size_t)(file.size - at) : sizeof piece;
        st = source_read(&file, at, piece, n, err);
        if (st == BZ_OK) sha256_feed(&hash, piece, n);
    }
    sha256_end(&hash, digest);
    sha256_hex(digest, r->digest);
    source_close(&file);
    return st;
}

static bool has_name(const struct rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->n; i++)
        if (ollama_text_same(rows->v[i].name, name)) return true;
    return false;
}

/* The shipped models after those of the store, which win where names are the same. */
static enum bz_status add_shipped(struct rows *rows, struct bz_err *err)
{
    for (int i = 0; i < SHIPPED_N; i++) {
        char path[PATH_MAX];
        struct row r = { 0 };
        snprintf(r.name, sizeof r.name, "%s:latest", shipped_names[i]);
        if (has_name(rows, r.name) || !shipped_path(shipped_names[i], path)) continue;
        enum bz_status st = hash_file(&r, path, err);
        if (st) return st;
        rows->v[rows->n++] = r;
    }
    return BZ_OK;
}

static enum bz_status gather(struct rows *rows, const char *store, struct bz_err *err)
{
    char *root = NULL;
    struct ollama_list list = { 0 };
    enum bz_status st = ollama_find_root(&root, store, err);
    const char *set = getenv("OLLAMA_MODELS");
    bool absent = st == BZ_ERR_NOT_FOUND && !store && (!set || !*set);
    if (st == BZ_OK) st = ollama_list(&list, root, err);
    if (absent) st = BZ_OK; /* nobody asked for a store, and there is none */
    if (st == BZ_OK) {
        rows->v = mem_alloc(list.n + SHIPPED_N, sizeof *rows->v);
        if (!rows->v) st = fail_memory(err, (list.n + SHIPPED_N) * sizeof *rows->v);
    }
    for (size_t i = 0; st == BZ_OK && i < list.n; i++) {
        const struct ollama_entry *e = &list.entries[i];
        struct row *r = &rows->v[rows->n++];
        *r = (struct row) { .size = e->size };
        memcpy(r->name, e->short_name, sizeof r->name);
        memcpy(r->digest, e->digest, sizeof r->digest);
    }
    if (st == BZ_OK && list.n_unreadable)
        fprintf(stderr, "%zu manifests in %s make no sense and were left out\n", list.n_unreadable,
                root);
    if (st == BZ_OK && !store) st = add_shipped(rows, err);
    ollama_list_free(&list);
    mem_free(root);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

int cmd_list(int argc, char **argv)
{
    const char *store = NULL, *unused;
    bool json = false;
    const struct cli_option options[] = {
        { "--store", "DIR", "that Ollama store alone; default where Ollama keeps it", CLI_STR,
          &store, NULL },
        { "--json", NULL, "machine-readable", CLI_FLAG, &json, NULL },
    };
    const struct cli_command c = {
        "list",
        "[options]",
        "The models in the Ollama store, and those that ship with Bezel.",
        options,
        sizeof options / sizeof *options,
        0,
        0
    };
    int code;
    if (cli_parse(&c, argc, argv, &unused, &code) < 0) return code;
    struct bz_err err;
    struct rows rows = { 0 };
    enum bz_status st = gather(&rows, store, &err);
    if (st == BZ_OK) {
        if (rows.n) qsort(rows.v, rows.n, sizeof *rows.v, by_name);
        if (json) printf("[");
        for (size_t i = 0; i < rows.n; i++) print_row(&rows.v[i], json, i == 0);
        if (json) printf("\n]\n");
    }
    mem_free(rows.v);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
