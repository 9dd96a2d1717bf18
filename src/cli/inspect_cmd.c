/* inspect_cmd.c - `bezel inspect`: opens whatever it is given and shows what inspect.c found. */
#include <stdio.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/inspect.h"
#include "cli/shipped.h"

/* PEFT keeps adapters as a directory, or as the .safetensors file in it. */
static bool is_peft(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) return false;
    return S_ISDIR(info.st_mode) || str_ends(str_of(path), ".safetensors");
}

enum bz_status inspect_open(struct inspect *out, const char *model, const char *store,
                            struct bz_err *err)
{
    struct adapter adapter;
    struct located file;
    enum bz_status st;
    if (is_peft(model)) {
        st = adapter_open_file(&adapter, model, err);
        if (st == BZ_OK) inspect_peft(out, &adapter, model);
        return st;
    }
    char path[PATH_MAX];
    st = locate_open(&file, shipped_or(model, store, path), store, err);
    return st ? st : inspect_file(out, &file, model, err);
}

int cmd_inspect(int argc, char **argv)
{
    const char *model, *store = NULL;
    bool json = false;
    struct inspect_wish wish = { 0 };
    const struct cli_option options[] = {
        { "--json", NULL, "machine-readable", CLI_FLAG, &json, NULL },
        { "--tensors", NULL, "list every tensor", CLI_FLAG, &wish.tensors, NULL },
        { "--keys", NULL, "list the metadata", CLI_FLAG, &wish.keys, NULL },
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &store, NULL },
    };
    const struct cli_command c = {
        "inspect",
        "FILE|NAME [options]",
        "What a model file is made of, and whether this build runs it.\n"
        "Takes a GGUF file, a name in the Ollama store (gemma4:e2b), or\n"
        "a LoRA adapter (GGUF, or PEFT's directory).",
        options,
        sizeof options / sizeof *options,
        1,
        1
    };
    int code;
    if (cli_parse(&c, argc, argv, &model, &code) < 0) return code;
    struct bz_err err = { "" };
    struct inspect x = { 0 };
    struct buf b = { 0 };
    enum bz_status st = inspect_open(&x, model, store, &err);
    if (st == BZ_OK) {
        if (json) inspect_put_json(&b, &x, wish);
        else inspect_put_text(&b, &x, wish);
        if (b.failed) st = fail_memory(&err, b.n);
    }
    if (st == BZ_OK) fwrite(b.data, 1, b.n, stdout);
    buf_free(&b);
    inspect_close(&x);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
