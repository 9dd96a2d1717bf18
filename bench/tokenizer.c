/* tokenizer.c - how fast a full-size vocabulary loads and text becomes ids.
 *
 *     bench/tokenizer [FILE...]       text files (the repository's own pages when none is named)
 *
 * Needs src/cli/synth_vocab.c and src/cli/synth_words.c besides the library. Prints the best of
 * several runs: the others measure what else the machine was doing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/synth_vocab.h"
#include "io/gguf.h"
#include "text/tokenizer.h"

#define PATH    "build/tmp/bench_vocab.gguf"
#define N_RUNS  9
#define N_BYTES ((size_t)8 << 20)
#define N_LONG  ((size_t)1 << 20)

static const char *const pages[] = { "README.md", "HACKING.md", "MODEL.md", "CHANGELOG.md",
                                     "docs/PERFORMANCE.md" };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const struct bz_err *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void write_vocab(void)
{
    struct bz_err err = { "" };
    struct synth_vocab v;
    struct gguf_writer *w;
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    double t0 = now();
    if (synth_vocab_make(&v, SYNTH_VOCAB_FULL, &err)) die(&err);
    double t1 = now();
    if (gguf_writer_open(&w, PATH, &err)) die(&err);
    synth_vocab_put(w, &v);
    if (gguf_writer_finish(w, &err)) die(&err);
    printf("make   %u tokens, %u merges: %.3f s; written in %.3f s\n", v.n_tokens, v.n_merges,
           t1 - t0, now() - t1);
    synth_vocab_free(&v);
}

static struct tokenizer *load(void)
{
    double best_file = 1e9, best = 1e9;
    struct tokenizer *t = NULL;
    for (int i = 0; i < N_RUNS; i++) {
        struct bz_err err = { "" };
        struct gguf g;
        tokenizer_close(t);
        double t0 = now();
        if (gguf_open_file(&g, PATH, &err)) die(&err);
        double t1 = now();
        if (tokenizer_open(&t, &g, &err)) die(&err);
        double t2 = now();
        gguf_close(&g);
        if (t1 - t0 < best_file) best_file = t1 - t0;
        if (t2 - t1 < best) best = t2 - t1;
    }
    printf("load   header %.3f s, tokenizer %.3f s\n", best_file, best);
    return t;
}

static void encode(const struct tokenizer *t, struct str text, const char *what)
{
    struct ids ids = { 0 };
    struct bz_err err = { "" };
    struct tokenize_options opt = { 0 };
    double best = 1e9;
    for (int i = 0; i < N_RUNS; i++) {
        ids.n = 0;
        double t0 = now();
        if (tokenizer_encode(t, text, opt, &ids, &err)) die(&err);
        double dt = now() - t0;
        if (dt < best) best = dt;
    }
    printf("encode %-28s %6.2f MB: %7.1f MB/s, %.2f bytes a token\n", what, (double)text.n * 1e-6,
           (double)text.n * 1e-6 / best, (double)text.n / (double)ids.n);
    ids_free(&ids);
}

static void read_page(const char *path, struct buf *out)
{
    char piece[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f) return;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) buf_put(out, piece, n);
    fclose(f);
}

int main(int argc, char **argv)
{
    struct buf text = { 0 };
    for (int i = 1; i < argc; i++) read_page(argv[i], &text);
    for (size_t i = 0; argc < 2 && i < sizeof pages / sizeof *pages; i++)
        read_page(pages[i], &text);
    if (text.n == 0) {
        fprintf(stderr, "no text to encode; run from the repository root or name files\n");
        return 1;
    }
    size_t n_once = text.n;
    while (text.n < N_BYTES) {
        struct buf once = { 0 };
        buf_put(&once, text.data, n_once);
        buf_put_str(&text, buf_str(&once));
        buf_free(&once);
    }
    write_vocab();
    struct tokenizer *t = load();
    encode(t, buf_str(&text), "pages, repeated");
    for (size_t i = 0; i < text.n; i++)
        if (text.data[i] == '\n') text.data[i] = ' ';
    encode(t, buf_str(&text), "the same as one line");
    memset(text.data, ' ', N_LONG);
    encode(t, (struct str) { text.data, N_LONG }, "one run of spaces");
    tokenizer_close(t);
    buf_free(&text);
    remove(PATH);
    return 0;
}
