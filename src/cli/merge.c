/* merge.c - `bezel merge`: a model with an adapter added into its weights, as a new file. */
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/cli_model.h"
#include "cli/shipped.h"
#include "io/locate.h"
#include "io/merge.h"

/* Every window through the merge to the writer. */
static enum bz_status run(struct merge *m, struct bz_err *err)
{
    struct buf bytes = { 0 };
    struct merge_window next;
    enum bz_status st = BZ_OK;
    while (st == BZ_OK && merge_next(m, &next)) {
        if (bytes.cap < next.n_bytes) {
            mem_free(bytes.data);
            bytes.data = mem_alloc(next.n_bytes, 1);
            bytes.cap = bytes.data ? next.n_bytes : 0;
        }
        st = bytes.cap ? source_read(next.src, next.offset, bytes.data, next.n_bytes, err)
                       : fail_memory(err, next.n_bytes);
        if (st == BZ_OK) merge_give(m, bytes.data);
    }
    mem_free(bytes.data);
    return st;
}

static enum bz_status write_merged(const struct gguf *g, const struct adapter *a, float scale,
                                   const char *path, size_t *n_changed, struct bz_err *err)
{
    struct gguf_writer *w;
    struct merge *m = NULL;
    enum bz_status st = gguf_writer_open(&w, path, err);
    if (st) return st;
    st = merge_open(&m, g, a, scale, w, err);
    if (st == BZ_OK) st = run(m, err);
    if (st == BZ_OK) st = source_check(g->sources, g->n_sources, err);
    if (st == BZ_OK) {
        *n_changed = merge_n_changed(m);
        st = gguf_writer_finish(w, err);
    } else {
        gguf_writer_abort(w);
    }
    merge_close(m);
    return st;
}

int cmd_merge(int argc, char **argv)
{
    const char *args[3], *store = NULL;
    double scale = 1;
    bool force = false;
    const struct cli_option options[] = {
        { "--scale", "S", "the adapter's strength; default 1", CLI_F64, &scale, NULL },
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &store, NULL },
        { "--force", NULL, "replace a file that exists", CLI_FLAG, &force, NULL },
    };
    const struct cli_command c = {
        "merge",
        "MODEL ADAPTER[:S] OUT [options]",
        "Write a model with a LoRA adapter (GGUF or PEFT) added into its weights. They keep their\n"
        "formats, so quantised ones round what is added; an adapter beside its model does not.\n"
        "Ctrl-C leaves nothing behind.",
        options,
        sizeof options / sizeof *options,
        3,
        3,
    };
    int code;
    struct bz_err err = { "" };
    struct located in = { 0 };
    struct adapter adapter = { 0 };
    size_t n_changed = 0;
    float own = 1;
    char *path = NULL;
    if (cli_parse(&c, argc, argv, args, &code) < 0) return code;
    cli_outlive_reader();
    if (!force && access(args[2], F_OK) == 0)
        return cli_misuse(&c, "%s exists; --force replaces it", args[2]);
    char from[PATH_MAX];
    enum bz_status st = locate_open(&in, shipped_or(args[0], store, from), store, &err);
    if (st == BZ_OK) st = cli_split_adapter(args[1], &path, &own, &err);
    if (st == BZ_OK) st = adapter_open_file(&adapter, path, &err);
    if (st == BZ_OK)
        st = write_merged(&in.gguf, &adapter, (float)scale * own, args[2], &n_changed, &err);
    if (st == BZ_OK) printf("%s: %zu tensors changed\n", args[2], n_changed);
    adapter_close(&adapter);
    locate_close(&in);
    mem_free(path);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
