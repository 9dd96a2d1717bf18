/* test_lost_file.c - a model file that is cut short while it is mapped: an error, no signal. */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/quantize.h"
#include "model_fixture.h"
#include "train/data.h"
#include "train/trainer.h"

#include "engine.h"

#define MOST_LOST 4096 /* bytes that are left: the first page */

static void copy_to(struct tmp_path path)
{
    static const struct timeval past[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    copy_model(golden[0], path.z, &(struct model_edit) { .n_context = 512 });
    CHECK(utimes(path.z, past) == 0); /* clocks of file systems are coarse */
}

static bool cut_all(const char *path)
{
    return truncate(path, MOST_LOST) == 0;
}

/* Within the last page: nothing that is mapped is lost. */
static bool cut_one_byte(const char *path)
{
    FILE *f = fopen(path, "r+b");
    bool done = f && fseek(f, 0, SEEK_END) == 0 && ftruncate(fileno(f), ftell(f) - 1) == 0;
    if (f) fclose(f);
    return done;
}

static bool rewrite_in_place(const char *path)
{
    FILE *f = fopen(path, "r+b");
    bool done = f && fputc('G', f) == 'G'; /* its first byte, as it was */
    return f && fclose(f) == 0 && done;
}

/* Feeding fails with a sentence, as often as it is tried, and nothing of it is believed. */
static void check_feed(enum bz_backend backend, bool (*spoil)(const char *path))
{
    struct tmp_path path = tmp_path("lost.gguf");
    copy_to(path);
    bz_engine *e = open_engine(path.z, backend), *healthy = open_engine(golden[0], backend);
    bz_session *s = open_session(e, 64, 16), *other = open_session(healthy, 64, 16);
    int32_t *ids = random_ids(e, 20, 50);
    feed_pieces(s, ids, 10, 10);
    CHECK(spoil(path.z));
    for (size_t i = 0; i < 2; i++) {
        struct bz_err err = { "" };
        CHECK(bz_session_feed(s, ids + 10, 5, i, NULL, NULL, &err) == BZ_ERR_IO);
        CHECK_MSG(strstr(err.text, path.z) &&
                      strstr(err.text, "became shorter while it was in use"),
                  "%s", err.text);
        size_t n;
        bz_session_tokens(s, &n);
        CHECK(n == 10 && bz_session_logits(s) == NULL);
    }
    feed_pieces(other, ids, 20, 5); /* another file is none of its business */
    bz_session_close(s);
    bz_session_close(other);
    bz_engine_close(e);
    bz_engine_close(healthy);
    remove(path.z);
    free(ids);
}

static void check_training(void)
{
    struct tmp_path path = tmp_path("lost_train.gguf");
    struct bz_err err = { "" };
    struct dataset d = { 0 };
    struct trainer t = { 0 };
    struct train_report report;
    copy_to(path);
    bz_engine *e = open_engine(path.z, BZ_BACKEND_CPU);
    struct train_options o = train_defaults();
    o.n_steps = 3;
    o.adapter.rank = 2;
    struct dataset_options options = { e->tokenizer, CHAT_SMALL, 64 };
    CHECK(!dataset_read(&d, str_of("{\"prompt\":\"a\",\"completion\":\"b\"}"), "data", &options,
                        &err));
    CHECK_MSG(!trainer_open(&t, &e->model, &e->backend, &d, &o, &err), "%s", err.text);
    CHECK(trainer_step(&t, &report, &err) == BZ_OK);
    CHECK(truncate(path.z, MOST_LOST) == 0);
    CHECK(trainer_step(&t, &report, &err) == BZ_ERR_IO && t.step == 1);
    CHECK_MSG(strstr(err.text, "became shorter while it was in use"), "%s", err.text);
    trainer_close(&t);
    dataset_free(&d);
    bz_engine_close(e);
    remove(path.z);
}

/* ---- files made of it ---- */

static void spoil_halfway(void *ctx, uint64_t done, uint64_t total)
{
    const char *path = ctx;
    if (done < total / 2) return;
    CHECK(rewrite_in_place(path));
}

/* What was read before belongs to other weights than what was read after. */
static void check_quantize(void)
{
    struct tmp_path path = tmp_path("lost_in.gguf"), out = tmp_path("lost_out.gguf");
    struct bz_err err = { "" };
    struct gguf g;
    copy_to(path);
    CHECK(gguf_open_file(&g, path.z, &err) == BZ_OK);
    CHECK(quantize_file(&g, out.z, MIX_Q8_0, NULL, spoil_halfway, path.z, &err) == BZ_ERR_IO);
    CHECK_MSG(strstr(err.text, path.z) && strstr(err.text, "was changed"), "%s", err.text);
    CHECK(access(out.z, F_OK) != 0);
    gguf_close(&g);
    remove(path.z);
}

/* ---- signals of others ---- */

/* A mapping of this test's own whose page is gone. */
static const volatile char *lost_page(void)
{
    struct tmp_path path = tmp_path("lost_page");
    FILE *f = fopen(path.z, "w+");
    if (!f || ftruncate(fileno(f), 4096)) return NULL;
    void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 0);
    if (ftruncate(fileno(f), 0)) return NULL;
    fclose(f);
    remove(path.z);
    return p;
}

static sigjmp_buf back;

static void jump_back(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

/* In a process of its own: does a handler that was there before get what is not ours? */
static int child_with_handler(void)
{
    struct sigaction action = { .sa_handler = jump_back };
    sigaction(SIGBUS, &action, NULL);
    struct source s;
    if (source_open_file(&s, golden[0], NULL)) return 2;
    source_close(&s);
    if (sigsetjmp(back, 1)) return 0;
    return *lost_page() + 3;
}

/* And without one: does it end the process? */
static int child_without_handler(void)
{
    struct source s;
    signal(SIGBUS, SIG_DFL); /* a sanitizer has its own */
    if (source_open_file(&s, golden[0], NULL)) return 2;
    return *lost_page() + 3;
}

/* A signal that somebody sends does what it did before, once. */
static int child_that_ignores(void)
{
    struct source s;
    signal(SIGBUS, SIG_IGN);
    if (source_open_file(&s, golden[0], NULL)) return 2;
    raise(SIGBUS);
    return raise(SIGBUS); /* still */
}

static int child_that_is_sent_one(void)
{
    struct source s;
    signal(SIGBUS, SIG_DFL);
    if (source_open_file(&s, golden[0], NULL)) return 2;
    raise(SIGBUS);
    return 0;
}

static int status_of_child(int (*run)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) _exit(run());
    waitpid(child, &status, 0);
    return status;
}

int main(void)
{
    /* First, while this process has mapped no model yet. */
    TEST("a signal that is not ours goes where it went before")
    {
        int status = status_of_child(child_with_handler);
        CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
        status = status_of_child(child_without_handler);
        CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "status %x", (unsigned)status);
        status = status_of_child(child_that_is_sent_one);
        CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "status %x", (unsigned)status);
        status = status_of_child(child_that_ignores);
        CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    }

    TEST("a model cut short in place is an error of the step, on every CPU backend")
    {
        check_feed(BZ_BACKEND_CPU, cut_all);
        check_feed(BZ_BACKEND_REFERENCE, cut_all);
    }

    TEST("so is one that loses a byte, or is rewritten in place")
    {
        check_feed(BZ_BACKEND_CPU, cut_one_byte);
        check_feed(BZ_BACKEND_CPU, rewrite_in_place);
    }

    TEST("and of a step of training") check_training();

    TEST("no file is made of one that is rewritten meanwhile") check_quantize();

    return check_done();
}
