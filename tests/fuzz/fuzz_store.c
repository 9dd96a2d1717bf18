/* Any tree as an Ollama store: listed, opened, verified, copied and deleted without a step outside
 * it.
 *
 * The input is lines that make the tree, and names that are asked for:
 *
 *     d PATH              a directory
 *     f PATH CONTENT      a file
 *     l PATH TARGET       a symbolic link
 *     p PATH              a pipe, which must not block anybody
 *     n NAME              a model to open
 *
 * Paths begin in the root of the store. In all of them $x stands for the digest xxx... of 64
 * digits, #x for the bytes of that blob, and @ for the path of a directory beside the store, whose
 * files say SECRET. In contents % stands for the smallest GGUF. Nothing is made through a link, so
 * that no input can write outside its own directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "io/locate.h"
#include "io/ollama.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { MOST_LINES = 64, LONGEST_PATH = 1000 };

static const char secret[] = "SECRET";
static const char config_of_secret[] = "{\"model_format\":\"gguf\",\"renderer\":\"SECRET\"}";
static char top[PATH_MAX], root[PATH_MAX], outside[PATH_MAX];

struct lines {
    struct str line[MOST_LINES];
    size_t n;
};

static struct lines split(const uint8_t *data, size_t size)
{
    struct lines l = { .n = 0 };
    struct str rest = { (const char *)data, size };
    while (rest.n && l.n < MOST_LINES) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        l.line[l.n++] = (struct str) { rest.p, n };
        rest = end ? (struct str) { end + 1, rest.n - n - 1 } : (struct str) { rest.p + n, 0 };
    }
    return l;
}

/* ---- mutation: whole lines as often as bytes ---- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    struct lines l = split(data, size);
    if (l.n < 2 || seed % 4 < 2) return LLVMFuzzerMutate(data, size, max);
    size_t i = seed / 8 % l.n, k = seed / 512 % l.n;
    struct str swap = l.line[i];
    struct buf out = { 0 };
    switch (seed / 4 % 4) {
    case 0: l.line[i] = l.line[k], l.line[k] = swap; break;
    case 1: l.line[i].n = 0; break;
    default: break;
    }
    for (size_t j = 0; j < l.n; j++) {
        uint8_t room[256];
        if (j != i || seed / 4 % 4 < 2 || swap.n > sizeof room) {
            buf_put_str(&out, l.line[j]);
        } else {
            memcpy(room, swap.p, swap.n);
            buf_put(&out, room, LLVMFuzzerMutate(room, swap.n, sizeof room));
            if (seed / 4 % 4 == 3) buf_puts(&out, "\n"), buf_put_str(&out, swap);
        }
        if (l.line[j].n) buf_puts(&out, "\n");
    }
    size_t n = out.n < max ? out.n : max;
    if (n) memcpy(data, out.data, n);
    buf_free(&out);
    return n;
}

/* ---- making the tree ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t blob_bytes(char name)
{
    char path[PATH_MAX + 80];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s/blobs/sha256-", root);
    memset(path + n, name, 64);
    path[n + 64] = 0;
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

/* The text with its abbreviations written out; to be freed. */
static struct buf expand(struct str s, bool is_content)
{
    static const char gguf[24] = "GGUF\3\0\0\0";
    struct buf b = { 0 };
    for (size_t i = 0; i < s.n; i++) {
        bool digit = i + 1 < s.n && is_hex(s.p[i + 1]);
        if (s.p[i] == '$' && digit)
            for (int k = 0; k < 64; k++) buf_put(&b, s.p + i + 1, 1);
        else if (s.p[i] == '#' && digit) buf_printf(&b, "%zu", blob_bytes(s.p[i + 1]));
        else if (s.p[i] == '%' && is_content) buf_put(&b, gguf, sizeof gguf);
        else if (s.p[i] == '@') buf_puts(&b, outside);
        else buf_put(&b, s.p + i, 1);
        if ((s.p[i] == '$' || s.p[i] == '#') && digit) i++;
    }
    buf_put(&b, "", 0);
    return b;
}

/* The directory in which a path is made, without following links; -1: there is none. *name is the
 * last part. Missing directories are made. */
static int open_parent(char *path, const char **name)
{
    int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (char *part = path, *slash; dir >= 0; part = slash + 1) {
        slash = strchr(part, '/');
        if (slash) *slash = 0;
        bool usable = *part && strcmp(part, ".") != 0 && strcmp(part, "..") != 0;
        if (usable && !slash) {
            *name = part;
            return dir;
        }
        if (usable) mkdirat(dir, part, 0755);
        int next = usable ? openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        close(dir);
        dir = next;
        if (!slash) break;
    }
    if (dir >= 0) close(dir);
    return -1;
}

static void make(struct str line)
{
    if (line.n < 3 || line.p[1] != ' ' || memchr(line.p, 0, line.n)) return;
    if (!strchr("dflp", line.p[0])) return;
    struct str rest = { line.p + 2, line.n - 2 }, content = { "", 0 };
    const char *space = memchr(rest.p, ' ', rest.n), *name = NULL;
    if (space) {
        content = (struct str) { space + 1, (size_t)(rest.p + rest.n - space - 1) };
        rest.n = (size_t)(space - rest.p);
    }
    struct buf path = expand(rest, false), text = expand(content, line.p[0] == 'f');
    bool usable = path.n && path.n <= LONGEST_PATH; /* nftw must reach what is made */
    int dir = usable ? open_parent(path.data, &name) : -1, file = -1;
    if (dir >= 0 && line.p[0] == 'd') mkdirat(dir, name, 0755);
    if (dir >= 0 && line.p[0] == 'p') mkfifoat(dir, name, 0644);
    if (dir >= 0 && line.p[0] == 'l' && symlinkat(text.data, dir, name)) name = NULL;
    if (dir >= 0 && line.p[0] == 'f')
        file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file >= 0 && write(file, text.data, text.n) != (ssize_t)text.n) abort();
    if (file >= 0) close(file);
    if (dir >= 0) close(dir);
    buf_free(&path);
    buf_free(&text);
}

static int forget(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)at;
    return kind == FTW_DP ? rmdir(path) : unlink(path);
}

static void leave(void)
{
    nftw(top, forget, 16, FTW_DEPTH | FTW_PHYS);
}

static void write_outside(const char *name, const char *text)
{
    char path[PATH_MAX + 80];
    snprintf(path, sizeof path, "%s/%s", outside, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) abort();
}

/* A directory of this process; a manifest, a blob and a text outside the store. */
static void enter(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/bezel_fuzz_XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(root) || !realpath(root, top)) abort();
    atexit(leave);
    snprintf(root, sizeof root, "%.3000s/store", top);
    snprintf(outside, sizeof outside, "%.3000s/other", top);
    if (mkdir(outside, 0755)) abort();
    write_outside("secret", secret);
    write_outside("config", config_of_secret);
    write_outside(
        "tag",
        "{\"schemaVersion\":2,\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.model\","
        "\"digest\":\"sha256:5ec2e70000000000000000000000000000000000000000000000000000000000\","
        "\"size\":6}]}");
}

/* ---- using it ---- */

static bool is_inside(const char *path)
{
    char real[PATH_MAX];
    size_t n = strlen(root);
    return realpath(path, real) && strncmp(real, root, n) == 0 && real[n] == '/';
}

static bool tells(struct str s)
{
    return s.p && memmem(s.p, s.n, secret, sizeof secret - 1) != NULL;
}

static void check_model(const struct ollama_model *m)
{
    for (size_t i = 0; i < m->manifest.n_layers; i++) {
        const struct ollama_layer *l = &m->manifest.layers[i];
        struct bz_err err = { "" };
        if (!l->path || !is_inside(l->path)) abort();
        if (strncmp(l->digest, "5ec2e7", 6) == 0) abort(); /* the manifest outside was read */
        if (ollama_verify(l, NULL, NULL, &err) && !err.text[0]) abort();
    }
    if (tells(m->system) || tells(m->template) || tells(m->config.renderer)) abort();
    for (size_t i = 0; i < m->n_messages; i++)
        if (tells(m->messages[i].content)) abort();
}

static void open_model(const char *name)
{
    struct ollama_model m;
    struct bz_err err = { "" };
    if (ollama_open(&m, root, name, &err) == BZ_OK) {
        check_model(&m);
        ollama_close(&m);
    } else if (!err.text[0] || tells(str_of(err.text))) {
        abort();
    }
}

static void locate(const char *name)
{
    struct located l;
    struct bz_err err = { "" };
    /* A name that is also a path of this machine is not the store's business. */
    if (name[0] == '/' || name[0] == '.' || !*name || access(name, F_OK) == 0) return;
    if (locate_open(&l, name, root, &err) == BZ_OK) {
        if (l.from_store)
            for (uint32_t i = 0; i < l.gguf.n_sources; i++)
                if (!is_inside(l.gguf.sources[i].name)) abort();
        locate_close(&l);
    } else if (!err.text[0]) {
        abort();
    }
}

static void ask(struct str line)
{
    if (line.n < 2 || line.p[0] != 'n' || line.p[1] != ' ' || memchr(line.p, 0, line.n)) return;
    struct buf name = expand((struct str) { line.p + 2, line.n - 2 }, false);
    open_model(name.data);
    locate(name.data);
    buf_free(&name);
}

/* What lies beside the store is as it was. */
static void check_outside(void)
{
    char path[PATH_MAX + 80], text[64];
    snprintf(path, sizeof path, "%s/secret", outside);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(text, sizeof text, f) || strcmp(text, secret) != 0) abort();
    fclose(f);
    DIR *d = opendir(outside);
    size_t n = 0;
    while (d && readdir(d)) n++;
    if (n != 5) abort(); /* . and .. and three files */
    closedir(d);
}

/* Copied under a name that is not there, deleted there and here. */
static void change(struct str line)
{
    if (line.n < 2 || line.p[0] != 'n' || line.p[1] != ' ' || memchr(line.p, 0, line.n)) return;
    struct buf name = expand((struct str) { line.p + 2, line.n - 2 }, false);
    struct bz_err err = { "" };
    bool copied = ollama_copy(root, name.data, "copied", &err) == BZ_OK;
    if (!copied && !err.text[0]) abort();
    if (copied && ollama_remove(root, name.data, &err) == BZ_OK) open_model("copied");
    ollama_remove(root, "copied", NULL);
    buf_free(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!top[0]) enter();
    /* What is outside must come from there. */
    if (memmem(data, size, secret, sizeof secret - 1) || memmem(data, size, "5ec2e7", 6)) return -1;
    struct lines l = split(data, size);
    struct ollama_list list;
    struct bz_err err = { "" };
    int64_t live = mem_live();
    if (mkdir(root, 0755)) abort();
    for (size_t i = 0; i < l.n; i++) make(l.line[i]);
    if (ollama_list(&list, root, &err) == BZ_OK) {
        for (size_t i = 0; i < list.n; i++) {
            if (strncmp(list.entries[i].digest, "5ec2e7", 6) == 0) abort();
            open_model(list.entries[i].short_name);
        }
        ollama_list_free(&list);
    } else if (!err.text[0]) {
        abort();
    }
    for (size_t i = 0; i < l.n; i++) ask(l.line[i]);
    for (size_t i = 0; i < l.n; i++) change(l.line[i]);
    check_outside();
    if (nftw(root, forget, 16, FTW_DEPTH | FTW_PHYS)) abort();
    if (mem_live() != live) abort();
    return 0;
}
