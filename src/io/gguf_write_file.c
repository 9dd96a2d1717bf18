/* gguf_write_file.c - a GGUF file that goes to the disk. */
#include "io/gguf_write.h"
#include "io/part_file.h"

static enum bz_status put(void *ctx, const void *p, size_t n, struct bz_err *err)
{
    return part_file_put(ctx, p, n, err);
}

static enum bz_status skip(void *ctx, uint64_t n, struct bz_err *err)
{
    return part_file_skip(ctx, n, err);
}

static enum bz_status finish(void *ctx, struct bz_err *err)
{
    return part_file_finish(ctx, err);
}

static void close_part(void *ctx)
{
    part_file_close(ctx);
}

enum bz_status gguf_writer_open(struct gguf_writer **out, const char *path, struct bz_err *err)
{
    struct part_file *f;
    enum bz_status st = part_file_open(&f, path, err);
    if (st) return st;
    return gguf_writer_open_sink(
        out, path,
        &(struct gguf_sink) {
            .ctx = f, .put = put, .skip = skip, .finish = finish, .close = close_part },
        err);
}
