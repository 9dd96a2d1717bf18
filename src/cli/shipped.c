#include "cli/shipped.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/ollama.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

const char *const shipped_names[SHIPPED_N] = { "tiny", "tiny-moe", "tiny-diffusion" };

/* build/bezel lies one folder below the repository, the sanitizers' build two. */
enum { FOLDERS_UP = 3 };

static bool program_path(char path[PATH_MAX])
{
#ifdef __APPLE__
    uint32_t size = PATH_MAX;
    return _NSGetExecutablePath(path, &size) == 0;
#else
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0) return false;
    path[n] = 0;
    return true;
#endif
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool shipped_path(const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    if (!program_path(folder)) return false;
    for (int i = 0; i < FOLDERS_UP; i++) {
        char *slash = strrchr(folder, '/');
        if (!slash) return false;
        *slash = 0;
        int n = snprintf(path, PATH_MAX, "%s/models/%s.q8_0.gguf", folder, name);
        if (n > 0 && n < PATH_MAX && is_file(path)) return true;
    }
    return false;
}

/* Whether `model` is one way of writing `name`: "tiny", "tiny:latest", "library/Tiny". */
static bool is_named(const char *model, const char *name)
{
    struct ollama_name n;
    struct bz_err ignored; /* what is no name at all is not this one */
    char given[OLLAMA_MAX_NAME], shipped[OLLAMA_MAX_NAME];
    if (ollama_parse_name(&n, str_of(model), &ignored)) return false;
    ollama_short_name(&n, given);
    snprintf(shipped, sizeof shipped, "%s:latest", name);
    return ollama_text_same(given, shipped);
}

static bool store_has(const char *model)
{
    struct bz_err ignored; /* the library says what is wrong, where that matters */
    char *root = NULL;
    struct ollama_list list = { 0 };
    bool found = false;
    if (ollama_find_root(&root, NULL, &ignored) == BZ_OK &&
        ollama_list(&list, root, &ignored) == BZ_OK)
        for (size_t i = 0; i < list.n && !found; i++)
            found = ollama_text_same(list.entries[i].short_name, model);
    ollama_list_free(&list);
    mem_free(root);
    return found;
}

const char *shipped_or(const char *model, const char *store, char path[PATH_MAX])
{
    if (store || is_file(model)) return model;
    for (int i = 0; i < SHIPPED_N; i++) {
        if (!is_named(model, shipped_names[i]) || !shipped_path(shipped_names[i], path)) continue;
        char name[OLLAMA_MAX_NAME];
        snprintf(name, sizeof name, "%s:latest", shipped_names[i]);
        return store_has(name) ? model : path;
    }
    return model;
}
