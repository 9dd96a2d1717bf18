/* Changes to Ollama's store: models copied and deleted, beside pulls that are under way. */
#include <fcntl.h>
#include <stdlib.h>

#include "check.h"
#include "io/ollama.h"
#include "ollama_fixture.h"

#define WORKS(call) CHECK_MSG((call) == BZ_OK, "%s", err.text)

static bool is_there(const char *path)
{
    struct stat info;
    char full[1024];
    snprintf(full, sizeof full, "%s/%s", root, path);
    return lstat(full, &info) == 0;
}

static bool has_blob(const char *text)
{
    struct stat info;
    char path[600], hex[65];
    digest_of(hex, text);
    blob_path(path, hex);
    return stat(path, &info) == 0;
}

static void put_two(const char *where, const char *weights, const char *shared)
{
    struct buf l = { 0 };
    add_layer(&l, "model", weights);
    add_layer(&l, "something-new", shared);
    put_manifest(where, &l, NULL);
}

static void test_change(void)
{
    struct bz_err err = { "" };
    char lock[600];
    struct stat info;
    TEST("a copy has the same manifest, and a second name's letters are the store's")
    {
        put_two("registry.ollama.ai/library/one/latest", "weights of one", "text of both");
        WORKS(ollama_copy(root, "one", "HF.co/org/copy:Q8", &err));
        CHECK(is_there("manifests/hf.co/Org/copy/Q8"));
        struct ollama_model m;
        WORKS(ollama_open(&m, root, "hf.co/Org/copy:Q8", &err));
        ollama_close(&m);
        CHECK(ollama_copy(root, "absent", "x", &err) == BZ_ERR_NOT_FOUND);
        CHECK(ollama_copy(root, "one", "../x", &err) == BZ_ERR_ARGUMENT);
        WORKS(ollama_copy(root, "one", "one", &err));
    }
    TEST("deleting a model leaves blobs that another has, of whatever kind, and no empty folders")
    {
        put_two("registry.ollama.ai/library/two/latest", "weights of two", "text of both");
        WORKS(ollama_remove(root, "one", &err));
        CHECK(has_blob("weights of one") && has_blob("text of both"));
        CHECK(!is_there("manifests/registry.ollama.ai/library/one"));
        WORKS(ollama_remove(root, "hf.co/Org/copy:q8", &err));
        CHECK(!has_blob("weights of one") && has_blob("text of both"));
        CHECK(!is_there("manifests/hf.co/Org/copy") && is_there("manifests/hf.co/Org/Repo"));
        CHECK(ollama_remove(root, "one", &err) == BZ_ERR_NOT_FOUND);
    }
    TEST("what a pull needs is not deleted, until its lock has been left behind")
    {
        char hex[65];
        digest_of(hex, "weights of two");
        snprintf(lock, sizeof lock, "%s/partial/keep-1.lock", root);
        char text[200];
        snprintf(text, sizeof text, "{\"id\":\"x\",\"uses\":[\"a\",\"sha256-%.64s\"]}", hex);
        write_file(lock, text, strlen(text));
        CHECK(ollama_remove(root, "two", &err) == BZ_ERR_ARGUMENT);
        CHECK(strstr(err.text, "two:latest is in use: a pull needs some of its files"));
        CHECK(is_there("manifests/registry.ollama.ai/library/two/latest"));
        struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
        CHECK(utimensat(AT_FDCWD, lock, old, 0) == 0);
        snprintf(lock, sizeof lock, "%s/partial/manifests.lock", root);
        write_file(lock, "{", 1);
        CHECK(utimensat(AT_FDCWD, lock, old, 0) == 0);
        WORKS(ollama_remove(root, "two", &err));
        CHECK(stat(lock, &info) != 0 && !has_blob("weights of two"));
    }
    TEST("a link is deleted and not what it leads to; nothing is written through one")
    {
        char at[600], out[600];
        put_two("registry.ollama.ai/library/three/latest", "weights of three", "text of three");
        snprintf(at, sizeof at, "%s/manifests/registry.ollama.ai/library/three/alias", root);
        CHECK(symlink("latest", at) == 0);
        WORKS(ollama_remove(root, "three:alias", &err));
        CHECK(is_there("manifests/registry.ollama.ai/library/three/latest"));
        snprintf(out, sizeof out, "%s/elsewhere", base);
        make_dirs(out);
        char *real = realpath(out, NULL);
        snprintf(at, sizeof at, "%s/manifests/registry.ollama.ai/library/four", root);
        CHECK(symlink(real, at) == 0);
        CHECK(ollama_copy(root, "three", "four", &err) == BZ_ERR_FORMAT);
        CHECK(rmdir(out) == 0); /* nothing is in it */
        CHECK(unlink(at) == 0);
        free(real);
    }
}

int main(void)
{
    name_store("ollama_change");
    put_two("hf.co/Org/Repo/Q4_K_M", "weights of another host", "its text");
    test_change();
    remove_all(base);
    CHECK(mem_live() == 0);
    return check_done();
}
