/* kernel.c - kernels by their numbers: their texts, and those that a host brings. */
#include "gpu/kernel.h"

#include <stdio.h>

#include "base/mem.h"

enum bz_status kernel_expand(struct wgsl *out, uint32_t kernel, struct bz_err *err)
{
    uint32_t family = kernel & ((1u << KERNEL_FAMILY_BITS) - 1);
    *out = (struct wgsl) { 0 };
    if (family >= N_KERNELS)
        return fail(err, BZ_ERR_NOT_FOUND, "there is no kernel with the number %u", kernel);
    const char *path = kernel_families[family].path;
    uint32_t entry = wgsl_find(&kernel_files, str_of(path));
    if (!kernel_files.files[entry].text)
        return fail(err, BZ_ERR_NOT_FOUND, "%s: the file with this kernel was not brought", path);
    return wgsl_expand(out, &kernel_files, entry, kernel >> KERNEL_FAMILY_BITS, err);
}

/* Split a text at its `//!file PATH` lines. Returns how many of the files were not there before. */
static uint32_t split_files(char *text)
{
    static const char begin[] = "//!file ";
    char *at = strstr(text, begin);
    uint32_t n_new = 0;
    while (at) {
        char *path = at + strlen(begin), *end = strchr(path, '\n');
        uint32_t file = kernel_files.n;
        *at = 0; /* the text before ends here */
        if (end) file = wgsl_find(&kernel_files, (struct str) { path, (size_t)(end - path) });
        if (file < kernel_files.n && !kernel_file_list[file].text) {
            kernel_file_list[file].text = end + 1;
            n_new++;
        }
        at = end ? strstr(end, begin) : NULL;
    }
    return n_new;
}

enum bz_status kernel_bring(const char *text, size_t n, struct bz_err *err)
{
    char head[64];
    snprintf(head, sizeof head, "//!build %s\n", kernel_build);
    if (!str_starts((struct str) { text, n }, head))
        return fail(err, BZ_ERR_FORMAT,
                    "these kernels are of another version than the engine: load both again");
    char *copy = mem_copy_str(text, n);
    if (!copy) return fail_memory(err, n + 1);
    if (!split_files(copy)) mem_free(copy); /* else files' texts point into it */
    return BZ_OK;
}
