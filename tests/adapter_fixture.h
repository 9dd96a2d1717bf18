/* adapter_fixture.h - adapter files for the tests of their readers: where they lie, random weights,
 * PEFT's safetensors and config. */
#ifndef BEZEL_TESTS_ADAPTER_FIXTURE_H
#define BEZEL_TESTS_ADAPTER_FIXTURE_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/half.h"
#include "base/rng.h"
#include "check.h"
#include "io/adapter.h"

static char dir[200], gguf_path[256], config_path[256], weights_path[256];

static struct rng adapter_rng = { 11 };

static inline float random_weight(void)
{
    return 2 * rng_unit(rng_next(&adapter_rng)) - 1;
}

static inline float *random_weights(size_t n)
{
    float *w = mem_alloc(n, sizeof *w);
    for (size_t i = 0; i < n; i++) w[i] = random_weight();
    return w;
}

static inline void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n) perror(path);
    if (f) fclose(f);
}

static inline const struct adapter_target *find(const struct adapter *a, const char *name)
{
    for (size_t i = 0; i < a->n_targets; i++)
        if (strcmp(a->targets[i].name, name) == 0) return &a->targets[i];
    return NULL;
}

static inline void check_same(const float *got, const float *want, size_t n)
{
    CHECK(got && memcmp(got, want, n * sizeof *got) == 0);
}

/* --- PEFT --- */

/* A safetensors file under construction. */
struct st_file {
    struct buf header, data;
};

static inline void put_tensor(struct st_file *f, const char *name, const char *dtype, size_t rows,
                              size_t cols, const float *w)
{
    size_t from = f->data.n;
    for (size_t i = 0; i < rows * cols; i++) {
        uint16_t h = dtype[0] == 'B' ? f32_to_bf16(w[i]) : f32_to_f16(w[i]);
        if (strcmp(dtype, "F32") == 0) buf_put(&f->data, &w[i], 4);
        else buf_put(&f->data, &h, 2);
    }
    buf_printf(&f->header,
               "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}",
               f->header.n ? "," : "{", name, dtype, rows, cols, from, f->data.n);
}

/* Random weights under a name; the caller frees them. */
static inline float *put_random(struct st_file *f, const char *name, size_t rows, size_t cols)
{
    float *w = random_weights(rows * cols);
    put_tensor(f, name, "F32", rows, cols, w);
    return w;
}

static inline void put_pair(struct st_file *f, const char *module, size_t r, size_t n_in,
                            size_t n_out)
{
    char name[300];
    snprintf(name, sizeof name, "base_model.model.%s.lora_A.weight", module);
    mem_free(put_random(f, name, r, n_in));
    snprintf(name, sizeof name, "base_model.model.%s.lora_B.weight", module);
    mem_free(put_random(f, name, n_out, r));
}

/* The file as bytes; empties f. */
static inline struct buf finish(struct st_file *f)
{
    struct buf all = { 0 };
    buf_puts(&f->header, f->header.n ? "}" : "{}");
    for (int i = 0; i < 8; i++) buf_putc(&all, (char)((uint64_t)f->header.n >> (8 * i)));
    buf_put_str(&all, buf_str(&f->header));
    buf_put_str(&all, buf_str(&f->data));
    buf_free(&f->header);
    buf_free(&f->data);
    return all;
}

static inline void write_peft(struct st_file *f, const char *config)
{
    struct buf all = finish(f);
    write_file(weights_path, all.data, all.n);
    write_file(config_path, config, strlen(config));
    buf_free(&all);
}

#define CONFIG(rest) "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":6" rest "}"

static inline enum bz_status open_peft(struct adapter *a, struct st_file *f, const char *config,
                                       struct bz_err *err)
{
    write_peft(f, config);
    return adapter_open_file(a, dir, err);
}

/* A folder of this process's, and the names of the files in it. */
static inline void adapter_files_open(void)
{
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    snprintf(dir, sizeof dir, "build/tmp/adapter-%ld", (long)getpid());
    snprintf(gguf_path, sizeof gguf_path, "%s/lora.gguf", dir);
    snprintf(config_path, sizeof config_path, "%s/adapter_config.json", dir);
    snprintf(weights_path, sizeof weights_path, "%s/adapter_model.safetensors", dir);
    mkdir(dir, 0777);
}

static inline void adapter_files_close(void)
{
    remove(gguf_path);
    remove(config_path);
    remove(weights_path);
    rmdir(dir);
    CHECK(mem_live() == 0);
}

#endif
