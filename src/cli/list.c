/* list.c - the models in the Ollama store. */
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "io/ollama.h"

static void print_entry(const struct ollama_entry *e, bool json, bool first)
{
    if (!json) {
        printf("%-40s %10.2f GB  %.12s\n", e->short_name, (double)e->size / 1e9, e->digest);
        return;
    }
    struct buf b = { 0 };
    buf_puts(&b, first ? "\n  {\"name\":" : ",\n  {\"name\":");
    json_put_string(&b, str_of(e->short_name));
    buf_printf(&b, ",\"size\":%llu,\"digest\":\"%s\"}", (unsigned long long)e->size, e->digest);
    fwrite(b.data, 1, b.n, stdout);
    buf_free(&b);
}

int cmd_list(int argc, char **argv)
{
    const char *store = NULL, *unused;
    bool json = false;
    const struct cli_option options[] = {
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &store, NULL },
        { "--json", NULL, "machine-readable", CLI_FLAG, &json, NULL },
    };
    const struct cli_command c = { "list",
                                   "[options]",
                                   "The models in the Ollama store.",
                                   options,
                                   sizeof options / sizeof *options,
                                   0,
                                   0 };
    int code;
    if (cli_parse(&c, argc, argv, &unused, &code) < 0) return code;
    struct bz_err err;
    char *root = NULL;
    struct ollama_list list = { 0 };
    enum bz_status st = ollama_find_root(&root, store, &err);
    if (st == BZ_OK) st = ollama_list(&list, root, &err);
    if (st == BZ_OK && json) printf("[");
    for (size_t i = 0; st == BZ_OK && i < list.n; i++) print_entry(&list.entries[i], json, i == 0);
    if (st == BZ_OK && json) printf("\n]\n");
    if (st == BZ_OK && list.n_unreadable)
        fprintf(stderr, "%zu manifests in %s make no sense and were left out\n", list.n_unreadable,
                root);
    ollama_list_free(&list);
    mem_free(root);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
