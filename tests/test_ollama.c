/* Ollama's store: models found and checked, and no way out of the root. */
#include "io/ollama.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "ollama_fixture.h"
#include "ollama_layer.h"

static const char gemma_config[] =
    "{\"model_format\":\"gguf\",\"model_family\":\"gemma4\",\"model_families\":[\"gemma4\"],"
    "\"model_type\":\"8.0B\",\"file_type\":\"Q4_K_M\",\"renderer\":\"gemma4\",\"parser\":"
    "\"gemma4\","
    "\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[]}}";

/* A model with every kind of layer. */
static void put_full(const char *where)
{
    struct buf l = { 0 }, c = { 0 };
    add_layer(&l, "model", "first shard");
    add_layer(&l, "model", "second shard, longer");
    add_layer(&l, "projector", "projector bytes");
    add_layer(&l, "adapter", "adapter bytes");
    add_layer(&l, "draft", "draft bytes");
    add_layer(&l, "template", "{{ .Prompt }}");
    add_layer(&l, "system", "Be brief.");
    add_layer(&l, "params",
              "{\"temperature\":1,\"top_k\":64,\"top_p\":0.95,\"num_ctx\":8192.0,\"seed\":-1,"
              "\"stop\":[\"<turn|>\",\"x\"],\"num_gpu\":99,\"min_p\":null}");
    add_layer(&l, "messages",
              "[{\"role\":\"user\",\"content\":\"hi\"},"
              "{\"role\":\"assistant\",\"content\":\"\"}]");
    add_layer(&l, "license", "Apache");
    add_layer(&l, "embed", "obsolete");
    add_layer(&c, "config", gemma_config);
    put_manifest(where, &l, &c);
}

static void put_plain(const char *where, const char *weights)
{
    struct buf l = { 0 };
    add_layer(&l, "model", weights);
    put_manifest(where, &l, NULL);
}

/* --- the store --- */

static void test_roots(void)
{
    char *found = NULL, home[500], link[400], want[2000];
    struct bz_err err = { "" };
    CHECK(realpath(root, want) != NULL);
    TEST("the root is what is asked for, then the environment, then the home directory")
    {
        setenv("HOME", "/nonexistent", 1);
        setenv("OLLAMA_MODELS", "/nonexistent", 1);
        CHECK_MSG(ollama_find_root(&found, root, &err) == BZ_OK, "%s", err.text);
        CHECK_STR(found, want);
        mem_free(found);
        CHECK(ollama_find_root(&found, NULL, &err) == BZ_ERR_NOT_FOUND);
        CHECK(strstr(err.text, "/nonexistent"));
        snprintf(home, sizeof home, " \"%s\" ", root); /* as people write it in unit files */
        setenv("OLLAMA_MODELS", home, 1);
        CHECK(ollama_find_root(&found, NULL, &err) == BZ_OK);
        CHECK_STR(found, want);
        mem_free(found);
        unsetenv("OLLAMA_MODELS");
        snprintf(home, sizeof home, "%s/home", base);
        setenv("HOME", home, 1);
        snprintf(home, sizeof home, "%s/home/.ollama", base);
        make_dirs(home);
        snprintf(home, sizeof home, "%s/home/.ollama/models", base);
        CHECK(symlink(want, home) == 0); /* the root itself may be a link */
        CHECK(ollama_find_root(&found, NULL, &err) == BZ_OK);
        CHECK_STR(found, want);
        mem_free(found);
    }
    TEST("a directory without manifests is no store")
    {
        snprintf(link, sizeof link, "%s/home", base);
        CHECK(ollama_find_root(&found, link, &err) == BZ_ERR_NOT_FOUND);
        CHECK(strstr(err.text, "manifests"));
        CHECK(ollama_find_root(&found, "", &err) == BZ_ERR_NOT_FOUND);
    }
}

static void test_open(void)
{
    struct ollama_model m = { 0 };
    struct bz_err err = { "" };
    TEST("a model comes with all that its manifest names")
    {
        CHECK_MSG(ollama_open(&m, root, "gemma4:e4b", &err) == BZ_OK, "%s", err.text);
        CHECK(m.manifest.n_layers == 11);
        const struct ollama_layer *second = ollama_layer_at(&m.manifest, OLLAMA_LAYER_MODEL, 1);
        CHECK(second && second->size == 20 && second->path && access(second->path, R_OK) == 0);
        CHECK(!ollama_layer_at(&m.manifest, OLLAMA_LAYER_MODEL, 2));
        CHECK(ollama_layer_at(&m.manifest, OLLAMA_LAYER_PROJECTOR, 0) != NULL);
        CHECK(ollama_layer_at(&m.manifest, OLLAMA_LAYER_ADAPTER, 0) != NULL);
        CHECK(ollama_layer_at(&m.manifest, OLLAMA_LAYER_DRAFT, 0) != NULL);
        CHECK(ollama_layer_at(&m.manifest, OLLAMA_LAYER_LICENSE, 0) != NULL);
        CHECK(str_is(m.config.model_format, "gguf") && str_is(m.config.model_family, "gemma4"));
        CHECK(str_is(m.config.model_type, "8.0B") && str_is(m.config.file_type, "Q4_K_M"));
        CHECK(str_is(m.config.renderer, "gemma4") && str_is(m.config.parser, "gemma4"));
        CHECK(m.params.top_k.set && m.params.top_k.v == 64 && m.params.num_ctx.v == 8192);
        CHECK(m.params.seed.v == -1 && !m.params.min_p.set);
        CHECK(m.params.n_stop == 2 && str_is(m.params.stop[0], "<turn|>"));
        CHECK(str_is(m.system, "Be brief.") && str_is(m.template, "{{ .Prompt }}"));
        CHECK(m.n_messages == 2 && str_is(m.messages[0].content, "hi"));
        CHECK(str_is(m.messages[1].role, "assistant") && m.messages[1].content.n == 0);
        ollama_close(&m);
        ollama_close(&m);
    }
    TEST("defaults, other hosts and ports lead to their manifests")
    {
        static const char *const names[] = { "gemma4", "library/gemma4:latest",
                                             "hf.co/Org/Repo:Q4_K_M", "localhost:5000/me/mine",
                                             "http://localhost:5000/me/mine:latest" };
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            CHECK_MSG(ollama_open(&m, root, names[i], &err) == BZ_OK, "%s", err.text);
            CHECK(m.system.p == NULL && m.n_messages == 0 && m.config.renderer.p == NULL);
            ollama_close(&m);
        }
    }
    TEST("the case of letters does not matter, but an exact match comes first")
    {
        char text[OLLAMA_MAX_NAME];
        CHECK_MSG(ollama_open(&m, root, "HF.co/org/REPO:q4_k_m", &err) == BZ_OK, "%s", err.text);
        ollama_short_name(&m.name, text);
        CHECK_STR(text, "hf.co/Org/Repo:Q4_K_M");
        ollama_close(&m);
        CHECK(ollama_open(&m, root, "twin:X", &err) == BZ_OK);
        CHECK_STR(m.name.tag, "X");
        ollama_close(&m);
        CHECK(ollama_open(&m, root, "twin:x", &err) == BZ_OK);
        CHECK_STR(m.name.tag, "x");
        ollama_close(&m);
        CHECK(ollama_open(&m, root, "TWIN:x", &err) == BZ_OK); /* the first in order */
        CHECK_STR(m.name.tag, "X");
        ollama_close(&m);
    }
    TEST("a missing model is answered with those that are near")
    {
        CHECK(ollama_open(&m, root, "gema4:e4", &err) == BZ_ERR_NOT_FOUND);
        CHECK_MSG(strstr(err.text, "no model named gema4:e4 in ") != NULL, "%s", err.text);
        CHECK_MSG(strstr(err.text, "it has: gemma4:e4b, ") != NULL, "%s", err.text);
        CHECK(strstr(err.text, "/store; "));
        CHECK(ollama_open(&m, root, "twin:y", &err) == BZ_ERR_NOT_FOUND);
        CHECK_MSG(strstr(err.text, "it has: twin:X, twin:x, ") != NULL, "%s", err.text);
        CHECK(ollama_open(&m, root, "gemma4:e4b/x", &err) == BZ_ERR_ARGUMENT);
        CHECK(ollama_open(&m, "/nonexistent", "gemma4", &err) == BZ_ERR_NOT_FOUND);
    }
}

static void test_list(void)
{
    struct ollama_list l;
    struct bz_err err = { "" };
    TEST("all models are listed in order, by their short names")
    {
        static const char *const want[] = {
            "gemma4:e4b", "gemma4:latest", "hf.co/Org/Repo:Q4_K_M", "localhost:5000/me/mine:latest",
            "twin:X",     "twin:x"
        };
        CHECK_MSG(ollama_list(&l, root, &err) == BZ_OK, "%s", err.text);
        CHECK_MSG(l.n == sizeof want / sizeof *want, "%zu models", l.n);
        for (size_t i = 0; i < l.n && i < sizeof want / sizeof *want; i++)
            CHECK_STR(l.entries[i].short_name, want[i]);
        CHECK(l.n_unreadable == 1);
        CHECK(l.entries[1].size == strlen("weights"));
        /* printf %s weights | sha256sum */
        CHECK_STR(l.entries[1].digest,
                  "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c");
        ollama_list_free(&l);
        ollama_list_free(&l);
    }
}

/* One bad model in its own manifest; the sentence must hold `word`. */
static void check_bad_model(const char *name, enum bz_status want, const char *word)
{
    struct ollama_model m = { .n_messages = 77 };
    struct bz_err err = { "" };
    enum bz_status st = ollama_open(&m, root, name, &err);
    CHECK_MSG(st == want, "%s: status %d, %s", name, (int)st, err.text);
    CHECK_MSG(strstr(err.text, word) != NULL, "%s: %s", name, err.text);
    CHECK(m.n_messages == 77);
}

static void test_broken(void)
{
    char path[600], other[700];
    struct buf l = { 0 }, c = { 0 };
    TEST("a missing blob is an error, also while a partial one lies there")
    {
        put_manifest("registry.ollama.ai/library/bad/missing",
                     (buf_puts(&l, LAYER("model", "sha256:" HEX64, "5")), &l), NULL);
        blob_path(path, HEX64);
        snprintf(other, sizeof other, "%s-partial", path);
        write_file(other, "12345", 5);
        snprintf(other, sizeof other, "%s-partial-0", path);
        write_file(other, "{}", 2);
        check_bad_model("bad:missing", BZ_ERR_NOT_FOUND, "missing");
        make_dirs(path); /* a directory is no blob either */
        check_bad_model("bad:missing", BZ_ERR_NOT_FOUND, "missing");
        rmdir(path);
    }
    TEST("a blob of another size is an error")
    {
        write_file(path, "1234", 4);
        check_bad_model("bad:missing", BZ_ERR_FORMAT, "4 bytes and the manifest says 5");
        write_file(path, "123456", 6);
        check_bad_model("bad:missing", BZ_ERR_FORMAT, "6 bytes and the manifest says 5");
        remove(path);
    }
    TEST("a pipe in place of a blob or a manifest does not hold us up")
    {
        CHECK(mkfifo(path, 0666) == 0);
        check_bad_model("bad:missing", BZ_ERR_NOT_FOUND, "missing");
        remove(path);
        snprintf(other, sizeof other, "%s/manifests/registry.ollama.ai/library/bad/pipe", root);
        CHECK(mkfifo(other, 0666) == 0);
        check_bad_model("bad:pipe", BZ_ERR_NOT_FOUND, "no model named");
        remove(other);
    }
    TEST("unreadable JSON in any place is an error that names the model and the place")
    {
        manifest_at("registry.ollama.ai/library/bad/json", "{\"layers\":[}");
        check_bad_model("bad:json", BZ_ERR_FORMAT, "manifest");
        check_bad_model("bad:json", BZ_ERR_FORMAT, "bad:json: ");
        add_layer(&l, "model", "w");
        add_layer(&l, "params", "{");
        put_manifest("registry.ollama.ai/library/bad/params", &l, NULL);
        check_bad_model("bad:params", BZ_ERR_FORMAT, "bad:params: params");
        add_layer(&l, "model", "w");
        add_layer(&l, "messages", "{}");
        put_manifest("registry.ollama.ai/library/bad/messages", &l, NULL);
        check_bad_model("bad:messages", BZ_ERR_FORMAT, "messages");
        add_layer(&l, "model", "w");
        add_layer(&c, "config", "no");
        put_manifest("registry.ollama.ai/library/bad/config", &l, &c);
        check_bad_model("bad:config", BZ_ERR_FORMAT, "config");
    }
    TEST("models that are not GGUF say what they are")
    {
        add_layer(&l, "tensor", "t");
        put_manifest("registry.ollama.ai/library/bad/mlx", &l, NULL);
        check_bad_model("bad:mlx", BZ_ERR_UNSUPPORTED,
                        "this is an MLX/safetensors model, not GGUF");
        add_layer(&l, "model", "w");
        add_layer(&c, "config", "{\"model_format\":\"safetensors\"}");
        put_manifest("registry.ollama.ai/library/bad/format", &l, &c);
        check_bad_model("bad:format", BZ_ERR_UNSUPPORTED, "not GGUF");
        add_layer(&c, "config", "{\"remote_host\":\"https://far.example\"}");
        put_manifest("registry.ollama.ai/library/bad/cloud", &l, &c);
        check_bad_model("bad:cloud", BZ_ERR_UNSUPPORTED, "far.example");
        add_layer(&l, "license", "only");
        put_manifest("registry.ollama.ai/library/bad/empty", &l, NULL);
        check_bad_model("bad:empty", BZ_ERR_FORMAT, "no model weights");
    }
}

static void test_escapes(void)
{
    char outside[500], path[700], blob[600];
    TEST("a link cannot lead out of the store, and one that stays inside may")
    {
        snprintf(outside, sizeof outside, "%s/outside", base);
        struct buf l = { 0 };
        add_layer(&l, "model", "weights");
        snprintf(path, sizeof path, "%s/manifest", outside);
        struct buf text = { 0 };
        buf_printf(&text, "{\"layers\":[%s]}", l.data);
        write_file(path, text.data, text.n);
        buf_free(&l);
        buf_free(&text);

        char where[700];
        snprintf(where, sizeof where, "%s/manifests/registry.ollama.ai/library/bad/link", root);
        CHECK(symlink("../../../../../outside/manifest", where) == 0);
        check_bad_model("bad:link", BZ_ERR_FORMAT, "out of the store");
        check_bad_model("BAD:Link", BZ_ERR_NOT_FOUND, "no model named");
        remove(where);
        CHECK(symlink("../gemma4/latest", where) == 0);
        struct ollama_model m;
        CHECK(ollama_open(&m, root, "bad:link", NULL) == BZ_OK);
        ollama_close(&m);
        remove(where);
        snprintf(where, sizeof where, "%s/manifests/registry.ollama.ai/library/loop", root);
        CHECK(symlink("..", where) == 0);
        check_bad_model("loop:library", BZ_ERR_NOT_FOUND, "no model named");
        remove(where);
        CHECK(symlink("../../../../outside", where) == 0);
        check_bad_model("loop:manifest", BZ_ERR_FORMAT, "out of the store");
        remove(where);
    }
    TEST("a blob that is a link out of the store is refused")
    {
        struct buf l = { 0 };
        buf_puts(&l, LAYER("model", "sha256:" HEX64, "5"));
        put_manifest("registry.ollama.ai/library/bad/blob", &l, NULL);
        snprintf(path, sizeof path, "%s/secret", outside);
        write_file(path, "12345", 5);
        blob_path(blob, HEX64);
        CHECK(symlink("../../outside/secret", blob) == 0);
        check_bad_model("bad:blob", BZ_ERR_FORMAT, "out of the store");
        remove(blob);
        CHECK(symlink("/etc/passwd", blob) == 0);
        check_bad_model("bad:blob", BZ_ERR_FORMAT, "out of the store");
        remove(blob);
        CHECK(symlink("nothing", blob) == 0); /* dangling */
        check_bad_model("bad:blob", BZ_ERR_NOT_FOUND, "missing");
        remove(blob);
    }
    TEST("a neighbour whose name starts like the root's is outside")
    {
        char near[500];
        snprintf(near, sizeof near, "%s-too", root);
        snprintf(path, sizeof path, "%s/secret", near);
        write_file(path, "12345", 5);
        blob_path(blob, HEX64);
        CHECK(symlink("../../store-too/secret", blob) == 0);
        CHECK(access(blob, R_OK) == 0);
        check_bad_model("bad:blob", BZ_ERR_FORMAT, "out of the store");
        remove(blob);
    }
}

static uint64_t seen_done, seen_calls;

static bool see(void *ctx, uint64_t done, uint64_t total)
{
    seen_calls++;
    CHECK(done > seen_done && done <= total);
    seen_done = done;
    return ctx == NULL;
}

static void test_verify(void)
{
    struct ollama_model m;
    struct bz_err err = { "" };
    char path[600];
    TEST("a blob that hashes to its name is whole, a changed one is not")
    {
        CHECK(ollama_open(&m, root, "gemma4:e4b", &err) == BZ_OK);
        for (size_t i = 0; i < m.manifest.n_layers; i++) {
            seen_done = seen_calls = 0;
            CHECK(ollama_verify(&m.manifest.layers[i], see, NULL, &err) == BZ_OK);
            CHECK(seen_calls == 1 && seen_done == m.manifest.layers[i].size);
        }
        seen_done = 0;
        CHECK(ollama_verify(&m.manifest.layers[0], see, &m, &err) == BZ_ERR_CANCELLED);
        blob_path(path, m.manifest.layers[0].digest);
        write_file(path, "First shard", 11); /* the same size */
        CHECK(ollama_verify(&m.manifest.layers[0], NULL, NULL, &err) == BZ_ERR_FORMAT);
        CHECK(strstr(err.text, "damaged"));
        write_file(path, "first shard", 11);
        ollama_close(&m);
    }
}

static void test_memory(void)
{
    TEST("any failed allocation is reported and nothing leaks")
    {
        int64_t live = mem_live();
        for (int what = 0; what < 4; what++) {
            for (uint64_t k = 1;; k++) {
                struct ollama_model m;
                struct ollama_list l;
                char *found;
                mem_fail_at(k);
                enum bz_status st = what == 0   ? ollama_open(&m, root, "gemma4:e4b", NULL)
                                    : what == 1 ? ollama_list(&l, root, NULL)
                                    : what == 2 ? ollama_open(&m, root, "none:such", NULL)
                                                : ollama_find_root(&found, root, NULL);
                mem_fail_at(0);
                if (st == BZ_ERR_MEMORY) {
                    CHECK(mem_live() == live);
                    continue;
                }
                CHECK(st == (what == 2 ? BZ_ERR_NOT_FOUND : BZ_OK));
                CHECK(k > 1);
                if (what == 0) ollama_close(&m);
                if (what == 1) ollama_list_free(&l);
                if (what == 3) mem_free(found);
                CHECK(mem_live() == live);
                break;
            }
        }
    }
}

int main(void)
{
    name_store("ollama");
    put_full("registry.ollama.ai/library/gemma4/e4b");
    put_plain("registry.ollama.ai/library/gemma4/latest", "weights");
    put_plain("hf.co/Org/Repo/Q4_K_M", "weights of another host");
    put_plain("localhost:5000/me/mine/latest", "mine");
    put_plain("registry.ollama.ai/library/twin/X", "upper");
    put_plain("registry.ollama.ai/library/twin/x", "lower");
    manifest_at("registry.ollama.ai/library/broken/latest", "{");
    manifest_at("registry.ollama.ai/library/twin/.hidden", "{}");
    manifest_at("registry.ollama.ai/library/stray", "{}");

    test_roots();
    test_open();
    test_list();
    test_broken();
    test_escapes();
    test_verify();
    test_memory();
    remove_all(base);
    CHECK(mem_live() == 0);
    return check_done();
}
