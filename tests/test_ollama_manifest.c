/* What Ollama's store says: names of models, manifests and params, as texts. */
#include "io/ollama.h"

#include "check.h"
#include "ollama_layer.h"

/* --- names --- */

struct name_case {
    const char *text, *host, *space, *model, *tag, *short_name;
};

static const struct name_case good_names[] = {
    { "gemma4", "registry.ollama.ai", "library", "gemma4", "latest", "gemma4:latest" },
    { "gemma4:e4b", "registry.ollama.ai", "library", "gemma4", "e4b", "gemma4:e4b" },
    { "user/m:t", "registry.ollama.ai", "user", "m", "t", "user/m:t" },
    { "hf.co/Org/Repo:Q4_K_M", "hf.co", "Org", "Repo", "Q4_K_M", "hf.co/Org/Repo:Q4_K_M" },
    { "hf.co/Org/Repo-1.2_x", "hf.co", "Org", "Repo-1.2_x", "latest",
      "hf.co/Org/Repo-1.2_x:latest" },
    { "host:5000/n/m", "host:5000", "n", "m", "latest", "host:5000/n/m:latest" },
    { "host:5000/n/m:t", "host:5000", "n", "m", "t", "host:5000/n/m:t" },
    { "http://host:5000/n/m:t", "host:5000", "n", "m", "t", "host:5000/n/m:t" },
    { "https://registry.ollama.ai/library/gemma4:12b", "registry.ollama.ai", "library", "gemma4",
      "12b", "gemma4:12b" },
    { "Registry.Ollama.AI/Library/Gemma4", "Registry.Ollama.AI", "Library", "Gemma4", "latest",
      "Gemma4:latest" },
    { "_why/_the/_lucky:_stiff", "_why", "_the", "_lucky", "_stiff", "_why/_the/_lucky:_stiff" },
    { "a..b/c/d..e:f..g", "a..b", "c", "d..e", "f..g", "a..b/c/d..e:f..g" },
};
static const char *const bad_names[] = {
    "",         ":",        "/",           "m:",         ":t",         "a/",          "/m",
    "a//m",     "a/b/",     "..",          ".",          "../m",       "m:..",        "../../m:t",
    "a/../m:t", "../a/m:t", "/etc/passwd", "//a/m",      "h/n/m:t/u",  "h/h/n/m:t",   "a/b/c/d:e",
    "m:t:u",    "m t",      "m:t ",        " m",         "m\n",        "n.s/m",       "h/n.s/m:t",
    "-m",       "m:-t",     ".m",          "m:.t",       "n:p/m",      "m@sha256:ab", "m:t@x",
    "m\\n:t",   "h/n/m%2e", "http://m",    "http://n/m", "\xc3\xa9:t", "m:\xff",      "h\\..\\m",
};

static void test_names(void)
{
    struct ollama_name n;
    struct bz_err err;
    TEST("names are read in every form")
    {
        for (size_t i = 0; i < sizeof good_names / sizeof *good_names; i++) {
            char text[OLLAMA_MAX_NAME];
            err.text[0] = 0;
            CHECK_MSG(ollama_parse_name(&n, str_of(good_names[i].text), &err) == BZ_OK, "%s",
                      err.text);
            CHECK_STR(n.host, good_names[i].host);
            CHECK_STR(n.space, good_names[i].space);
            CHECK_STR(n.model, good_names[i].model);
            CHECK_STR(n.tag, good_names[i].tag);
            ollama_short_name(&n, text);
            CHECK_STR(text, good_names[i].short_name);
        }
    }
    TEST("whatever is no name is refused with a sentence")
    {
        for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
            err.text[0] = 0;
            CHECK_MSG(ollama_parse_name(&n, str_of(bad_names[i]), &err) == BZ_ERR_ARGUMENT,
                      "\"%s\"", bad_names[i]);
            CHECK(strstr(err.text, "not a model name"));
            CHECK(!strchr(err.text, '\n'));
        }
        CHECK(ollama_parse_name(&n, (struct str) { "m\0x", 3 }, &err) == BZ_ERR_ARGUMENT);
        CHECK(ollama_parse_name(&n, (struct str) { "m:t\0", 4 }, &err) == BZ_ERR_ARGUMENT);
    }
    TEST("parts are as long as allowed and not longer")
    {
        static const size_t max[OLLAMA_N_PARTS] = { 350, 80, 80, 80 };
        for (int part = 0; part < OLLAMA_N_PARTS; part++) {
            for (size_t extra = 0; extra < 2; extra++) {
                struct buf b = { 0 };
                for (int i = 0; i < OLLAMA_N_PARTS; i++) {
                    if (i) buf_putc(&b, i == OLLAMA_TAG ? ':' : '/');
                    size_t k = i == part ? max[i] + extra : max[i];
                    for (size_t j = 0; j < k; j++) buf_putc(&b, 'x');
                }
                enum bz_status st = ollama_parse_name(&n, buf_str(&b), &err);
                CHECK(st == (extra ? BZ_ERR_ARGUMENT : BZ_OK));
                if (!extra) {
                    char text[OLLAMA_MAX_NAME];
                    ollama_short_name(&n, text);
                    CHECK_STR(text, b.data);
                }
                buf_free(&b);
            }
        }
    }
}

/* --- JSON --- */

static enum bz_status parse_manifest(struct ollama_manifest *m, const char *json, struct arena *a,
                                     struct bz_err *err)
{
    arena_free(a);
    return ollama_parse_manifest(m, str_of(json), a, err);
}

/* The same layer three times. */
static void check_bad_layer(const char *digest, const char *size)
{
    struct ollama_manifest m;
    struct arena a = { 0 };
    struct bz_err err;
    struct buf b = { 0 };
    for (int i = 0; i < 3; i++)
        buf_printf(&b,
                   "%s{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"%s\","
                   "\"size\":%s}",
                   i ? "," : "{\"layers\":[", digest, size);
    buf_puts(&b, "]}");
    CHECK_MSG(parse_manifest(&m, b.data, &a, &err) == BZ_ERR_FORMAT, "%s", b.data);
    arena_free(&a);
    buf_free(&b);
}

static void test_manifests(void)
{
    struct ollama_manifest m = { 0 };
    struct arena a = { 0 };
    struct bz_err err = { "" };
    TEST("layers are known by kind, others only count towards the size")
    {
        static const char *const pieces[] = {
            "{\"layers\":[",
            LAYER("license", "sha256:" HEX64, "1"),
            ",",
            LAYER("model", "sha256-" HEX64, "20"),
            ",",
            LAYER("embed", "?", "300"),
            ",{\"mediaType\":7},4000,",
            LAYER("prompt", "sha256:" HEX64, "5000"),
            "],\"config\":",
            LAYER("anything", "sha256:" HEX64, "60000"),
            "}",
        };
        struct buf text = { 0 };
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) buf_puts(&text, pieces[i]);
        CHECK_MSG(parse_manifest(&m, text.data, &a, &err) == BZ_OK, "%s", err.text);
        buf_free(&text);
        CHECK(m.n_layers == 4 && m.total_size == 65321 && !m.has_tensors);
        CHECK(ollama_layer_at(&m, OLLAMA_LAYER_MODEL, 0)->size == 20);
        CHECK_STR(ollama_layer_at(&m, OLLAMA_LAYER_MODEL, 0)->digest, HEX64);
        CHECK(!ollama_layer_at(&m, OLLAMA_LAYER_MODEL, 1));
        CHECK(ollama_layer_at(&m, OLLAMA_LAYER_TEMPLATE, 0)->size == 5000);
        CHECK(ollama_layer_at(&m, OLLAMA_LAYER_CONFIG, 0)->size == 60000);
    }
    TEST("tensor layers mark an MLX model")
    {
        CHECK(parse_manifest(&m, "{\"layers\":[" LAYER("tensor", "x", "1") "]}", &a, &err) ==
              BZ_OK);
        CHECK(m.has_tensors && m.n_layers == 0);
        CHECK(parse_manifest(&m, "{\"layers\":[" LAYER("json", "x", "1") "]}", &a, &err) == BZ_OK);
        CHECK(m.has_tensors);
    }
    TEST("a thousand layers are the most")
    {
        static const char one[] = LAYER("adapter", "sha256:" HEX64, "1");
        struct buf text = { 0 };
        buf_puts(&text, "{\"layers\":[");
        for (int i = 0; i < 1000; i++) buf_printf(&text, "%s%s", i ? "," : "", one);
        size_t n = text.n;
        buf_puts(&text, "]}");
        CHECK_MSG(parse_manifest(&m, text.data, &a, &err) == BZ_OK, "%s", err.text);
        CHECK(m.n_layers == 1000);
        text.n = n;
        buf_printf(&text, ",%s]}", one);
        CHECK(parse_manifest(&m, text.data, &a, &err) == BZ_ERR_FORMAT);
        CHECK_MSG(strstr(err.text, "more than 1000 layers"), "%s", err.text);
        buf_free(&text);
    }
    TEST("manifests of the wrong form are errors")
    {
        static const char *const bad[] = {
            "",
            "[]",
            "{}",
            "{\"layers\":{}}",
            "{\"layers\":[",
            "{\"layers\":[],\"config\":{\"digest\":\"sha256:1\",\"size\":1}}",
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            CHECK_MSG(parse_manifest(&m, bad[i], &a, &err) == BZ_ERR_FORMAT, "%s", bad[i]);
    }
    TEST("layers of the wrong form are errors")
    {
        check_bad_layer("md5:" HEX64, "1");
        check_bad_layer("sha256:" HEX64 "0", "1");
        check_bad_layer("sha256/" HEX64, "1");
        check_bad_layer("sha256:../../../../../../../../../../../../../../../../../../../../../x",
                        "1");
        check_bad_layer("", "1");
        check_bad_layer("sha256:" HEX64, "-1");
        check_bad_layer("sha256:" HEX64, "1.5");
        check_bad_layer("sha256:" HEX64, "\"1\"");
        check_bad_layer("sha256:" HEX64, "18446744073709551616");
        check_bad_layer("sha256:" HEX64, "9223372036854775807"); /* its sum overflows, see there */
    }
    arena_free(&a);
}

static void test_params(void)
{
    struct ollama_params p = { 0 };
    struct arena a = { 0 };
    struct bz_err err = { "" };
    TEST("params keep what is said apart from what is not")
    {
        CHECK(ollama_parse_params(&p, str_of("{}"), &a, &err) == BZ_OK);
        CHECK(!p.top_k.set && !p.temperature.set && !p.num_ctx.set && p.n_stop == 0);
        CHECK(ollama_parse_params(&p,
                                  str_of("{\"num_ctx\":4096,\"num_predict\":-2,\"temperature\":0,"
                                         "\"top_k\":40,\"top_p\":0.5,\"min_p\":0.25,"
                                         "\"repeat_last_n\":64.9,\"repeat_penalty\":1.5,"
                                         "\"presence_penalty\":-1,\"frequency_penalty\":0.125,"
                                         "\"seed\":9223372036854775807,\"stop\":\"one\"}"),
                                  &a, &err) == BZ_OK);
        CHECK(p.num_ctx.set && p.num_ctx.v == 4096);
        CHECK(p.num_predict.set && p.num_predict.v == -2);
        CHECK(p.temperature.set && p.temperature.v == 0);
        CHECK(p.top_k.v == 40 && p.top_p.v == 0.5 && p.min_p.v == 0.25);
        CHECK(p.repeat_last_n.v == 64 && p.repeat_penalty.v == 1.5);
        CHECK(p.presence_penalty.v == -1 && p.frequency_penalty.v == 0.125);
        CHECK(p.seed.v == INT64_MAX);
        CHECK(p.n_stop == 1 && str_is(p.stop[0], "one"));
    }
    TEST("params of the wrong type are errors that name the key")
    {
        static const char *const bad[][2] = {
            { "{\"top_k\":\"40\"}", "top_k" },
            { "{\"top_k\":1e30}", "top_k" },
            { "{\"temperature\":[]}", "temperature" },
            { "{\"min_p\":true}", "min_p" },
            { "{\"top_p\":1e300}", "top_p" },
            { "{\"stop\":3}", "stop" },
            { "{\"stop\":[\"a\",3]}", "stop" },
            { "[]", "params" },
            { "{", "params" },
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            CHECK(ollama_parse_params(&p, str_of(bad[i][0]), &a, &err) == BZ_ERR_FORMAT);
            CHECK_MSG(strstr(err.text, bad[i][1]) != NULL, "%s", err.text);
        }
    }
    TEST("stop strings are as few and as short as a request's")
    {
        for (int n = 64; n <= 65; n++) {
            struct buf many = { 0 }, text = { 0 };
            buf_puts(&many, "{\"stop\":[");
            for (int i = 0; i < n; i++) buf_puts(&many, i ? ",\"s\"" : "\"s\"");
            buf_puts(&many, "]}");
            buf_printf(&text, "{\"stop\":\"%0*d\"}", n * 16, 0);
            enum bz_status want = n == 64 ? BZ_OK : BZ_ERR_FORMAT;
            CHECK(ollama_parse_params(&p, buf_str(&many), &a, &err) == want);
            CHECK(n == 64 || strstr(err.text, "stop has 65 strings; 64 are the most"));
            CHECK(ollama_parse_params(&p, buf_str(&text), &a, &err) == want);
            CHECK(n == 64 || strstr(err.text, "a string of 1040 bytes; 1024 is the most"));
            buf_free(&many);
            buf_free(&text);
        }
    }
    TEST("messages need a role and a content")
    {
        struct ollama_message *m = NULL;
        size_t n = 0;
        CHECK(ollama_parse_messages(&m, &n, str_of("[]"), &a, &err) == BZ_OK && n == 0);
        CHECK(ollama_parse_messages(&m, &n, str_of("[{\"role\":\"user\"}]"), &a, &err) ==
              BZ_ERR_FORMAT);
        CHECK(ollama_parse_messages(&m, &n, str_of("[3]"), &a, &err) == BZ_ERR_FORMAT);
        CHECK(ollama_parse_messages(&m, &n, str_of("{}"), &a, &err) == BZ_ERR_FORMAT);
    }
    arena_free(&a);
}

int main(void)
{
    test_names();
    test_manifests();
    test_params();
    CHECK(mem_live() == 0);
    return check_done();
}
