/* test_wgsl.c - the preprocessor of kernels/: each directive, the lines that are left out, and the
 * errors for mistakes. */
#include "gpu/wgsl.h"

#include <stdlib.h>

#include "base/mem.h"
#include "check.h"

static struct wgsl_file files[8];
static struct bz_err err;
static char said[4096]; /* text, or the error's sentence */
static char name[64], bindings[16];

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct wgsl_file *)a)->path, ((const struct wgsl_file *)b)->path);
}

/* Expand a.wgsl, of this text, beside other files (path, text, ...). */
static enum bz_status expand(uint32_t axes, const char *text, const char *const *others)
{
    struct wgsl_files from = { files, 0 };
    struct wgsl w;
    files[from.n++] = (struct wgsl_file) { "a.wgsl", text };
    for (; others && *others; others += 2)
        files[from.n++] = (struct wgsl_file) { others[0], others[1] };
    qsort(files, from.n, sizeof *files, by_path);
    int64_t live = mem_live();
    enum bz_status st = wgsl_expand(&w, &from, wgsl_find(&from, str_of("a.wgsl")), axes, &err);
    snprintf(said, sizeof said, "%s", st ? err.text : w.text.data ? w.text.data : "");
    snprintf(name, sizeof name, "%s", st ? "" : w.name.data);
    snprintf(bindings, sizeof bindings, "%s", w.bindings);
    wgsl_free(&w);
    CHECK(mem_live() == live);
    return st;
}

static const char *text_of(uint32_t axes, const char *text, const char *const *others)
{
    expand(axes, text, others);
    return said;
}

/* 1: the test holds, 0: it does not. */
static int holds(uint32_t axes, const char *test)
{
    char text[512];
    snprintf(text, sizeof text,
             "//!axis kind one two three\n//!axis way up down\n//!if %s\nfn main(){1}\n//!else\n"
             "fn main(){0}\n//!end\n",
             test);
    return expand(axes, text, NULL) ? -1 : said[10] - '0';
}

#define FAILS(text, others, words)                                                                 \
    do {                                                                                           \
        CHECK(expand(0, text, others) == BZ_ERR_FORMAT);                                           \
        CHECK_STR(said, words);                                                                    \
    } while (0)

static void test_axes(void)
{
    const char *two = "//!axis kind one two three\n//!axis way up down\nfn main(){$kind $way}\n";
    TEST("axes take their values from the number, the first from its lowest bits")
    {
        CHECK_STR(text_of(0, two, NULL), "fn main(){one up}\n");
        CHECK_STR(text_of(2, two, NULL), "fn main(){three up}\n");
        CHECK_STR(text_of(1 | 1 << 2, two, NULL), "fn main(){two down}\n");
    }
    TEST("a name has the values that are no defaults")
    {
        expand(0, two, NULL);
        CHECK_STR(name, "a");
        expand(1 << 2, two, NULL);
        CHECK_STR(name, "a[down]");
        expand(1 | 1 << 2, two, NULL);
        CHECK_STR(name, "a[two down]");
    }
    TEST("an axis of one value takes no bits")
    {
        CHECK_STR(
            text_of(1, "//!axis tier plain\n//!axis way up down\nfn main(){$tier $way}\n", NULL),
            "fn main(){plain down}\n");
    }
    TEST("a number that has no values is refused")
    {
        CHECK(expand(3, two, NULL) == BZ_ERR_FORMAT);
        CHECK_STR(said, "a.wgsl:1: no value of this axis has the number: kind");
        CHECK(expand(1 << 3, two, NULL) == BZ_ERR_FORMAT);
        CHECK_STR(said, "a.wgsl:3: there are no axes for the number");
    }
    TEST("what is excluded is not found")
    {
        const char *text =
            "//!axis kind one two three\n//!without kind in two three\nfn main(){}\n";
        CHECK(expand(0, text, NULL) == BZ_OK);
        CHECK(expand(1, text, NULL) == BZ_ERR_NOT_FOUND);
        CHECK_STR(said, "a.wgsl:2: there is no such variant");
    }
}

static void test_conditions(void)
{
    TEST("a condition compares")
    {
        CHECK(holds(0, "kind == one") == 1 && holds(1, "kind == one") == 0);
        CHECK(holds(0, "kind != one") == 0 && holds(1, "kind != one") == 1);
        CHECK(holds(0, "kind in two three") == 0 && holds(2, "kind in two three") == 1);
    }
    TEST("&& binds before ||, ! before both, parentheses before all")
    {
        CHECK(holds(0, "kind == one || kind == two && way == down") == 1);
        CHECK(holds(0, "(kind == one || kind == two) && way == down") == 0);
        CHECK(holds(1 | 1 << 2, "kind == one || kind == two && way == down") == 1);
        CHECK(holds(1, "!(kind == one)") == 1 && holds(0, "!kind == one || way == down") == 0);
        CHECK(holds(2, "kind in one two || kind in three && way in up") == 1);
        CHECK(holds(0, "((kind == one))&&!(way == down)") == 1);
    }
    TEST("the first alternative that holds is taken, else the last")
    {
        const char *text = "//!axis kind one two three four\n//!if kind == one\nfn main(){1}\n"
                           "//!elif kind in one two\nfn main(){2}\n//!elif kind == three\n"
                           "fn main(){3}\n//!else\nfn main(){4}\n//!end\n";
        char want[] = "fn main(){0}\n";
        for (uint32_t i = 0; i < 4; i++) {
            want[10] = (char)('1' + i);
            CHECK_STR(text_of(i, text, NULL), want);
        }
    }
    TEST("conditions nest, and what is not taken is not looked at")
    {
        const char *text =
            "//!axis kind one two\n//!if kind == two\n//!if kind == none_such\n$none\n"
            "//!for I in a b\n//!include none.wgsl\n//!end\n//!elif kind == two\n"
            "fn main(){2}\n//!end\n//!else\nfn main(){1}\n//!end\n";
        CHECK_STR(text_of(0, text, NULL), "fn main(){1}\n");
        CHECK_STR(text_of(1, text, NULL), "fn main(){2}\n");
    }
}

static void test_loops(void)
{
    TEST("a loop repeats its lines with each word")
    {
        CHECK_STR(
            text_of(
                0,
                "fn main(){\n//!for I in 0 1\nf$I(\n//!for J in a b\n$J$I\n//!end\n)\n//!end\n}\n",
                NULL),
            "fn main(){\nf0(\na0\nb0\n)\nf1(\na1\nb1\n)\n}\n");
    }
    TEST("a condition may ask for the word of a loop")
    {
        CHECK_STR(text_of(0, "fn main(){\n//!for I in 0 1 2\n//!if I != 1\n$I\n//!end\n//!end\n}\n",
                          NULL),
                  "fn main(){\n0\n2\n}\n");
    }
}

static void test_includes(void)
{
    const char *const lib[] = { "lib/unit.wgsl",
                                "const UNIT:f32=8.0;\n",
                                "lib/dot.wgsl",
                                "//!include lib/unit.wgsl\nstruct Pair{\nUNIT:f32,\n}\n"
                                "fn dot1(v:Pair)->f32{\nreturn v.UNIT*UNIT*other();\n}\n",
                                "lib/rows.wgsl",
                                "fn rows()->f32{\nreturn dot1(Pair(1.0));\n}\n",
                                NULL };
    TEST("a file is included once, and sees the axes of its includer")
    {
        const char *const more[] = { "lib/b.wgsl", "fn b()->f32{\nreturn $kind;\n}\n", NULL };
        CHECK_STR(text_of(1,
                          "//!axis kind one two\n//!include lib/b.wgsl\n//!include lib/b.wgsl\n"
                          "fn main(){b();}\n",
                          more),
                  "fn b()->f32{\nreturn two;\n}\nfn main(){b();}\n");
    }
    TEST("a path may have values in it")
    {
        CHECK_STR(
            text_of(1, "//!axis kind row unit\n//!include lib/$kind.wgsl\nfn main(){UNIT}\n", lib),
            "const UNIT:f32=8.0;\nfn main(){UNIT}\n");
    }
    TEST("under a suffix what a file and its own files declare has other names, but for members")
    {
        CHECK_STR(text_of(0,
                          "//!include lib/dot.wgsl as third\n//!include lib/rows.wgsl as third\n"
                          "fn other()->f32{return 1.0;}\nfn main(){rows_third();}\n",
                          lib),
                  "const UNIT_third:f32=8.0;\nstruct Pair_third{\nUNIT_third:f32,\n}\n"
                  "fn dot1_third(v:Pair_third)->f32{\nreturn v.UNIT*UNIT_third*other();\n}\n"
                  "fn rows_third()->f32{\nreturn dot1_third(Pair_third(1.0));\n}\n"
                  "fn other()->f32{return 1.0;}\nfn main(){rows_third();}\n");
    }
    TEST("with and without a suffix it is there twice")
    {
        CHECK_STR(text_of(0,
                          "//!include lib/unit.wgsl\n//!include lib/unit.wgsl as b\n"
                          "fn main(){UNIT+UNIT_b}\n",
                          lib),
                  "const UNIT:f32=8.0;\nconst UNIT_b:f32=8.0;\nfn main(){UNIT+UNIT_b}\n");
    }
}

static void test_declarations(void)
{
    TEST("buffers are numbered behind the uniforms, in their order, those that are there")
    {
        const char *text =
            "//!axis kind one two\n//!bind x read array<vec4<f32>>\n//!if kind == two\n"
            "//!bind by read array<f32>\n//!end\n//!bind y update array<f32>\n"
            "@group(0) @binding(0) var<uniform> p:Params;\nfn main(){}\n";
        text_of(0, text, NULL);
        CHECK_STR(said, "@group(0) @binding(1) var<storage,read> x:array<vec4<f32>>;\n"
                        "@group(0) @binding(2) var<storage,read_write> y:array<f32>;\n"
                        "@group(0) @binding(0) var<uniform> p:Params;\nfn main(){}\n");
        CHECK_STR(bindings, "urw");
        text_of(1, text, NULL);
        CHECK(strstr(said, "@binding(3) var<storage,read_write> y"));
        CHECK_STR(bindings, "urrw");
        const char *const step[] = { "lib/step.wgsl",
                                     "@group(0) @binding(1) var<uniform> step:Step;\n", NULL };
        char more[512];
        snprintf(more, sizeof more, "%s//!include lib/step.wgsl\n", text);
        text_of(0, more, step);
        CHECK(strstr(said, "@binding(2) var<storage,read> x"));
        CHECK_STR(bindings, "uurw");
    }
    TEST("what main does not reach is left out; overrides stay, and enables come first")
    {
        CHECK_STR(
            text_of(0,
                    "const A=B;const B=1.0;\nfn left(x:f32)->f32{return A*right(x);}\n"
                    "fn right(x:f32)->f32{\nreturn x.left+0xBu+1.0e5;\n}\nvar<private> seen:f32;\n"
                    "alias Two=vec2<f32>;\nstruct Odd{a:Two,};\noverride WG:u32=64u;\n"
                    "@compute @workgroup_size(WG)\nfn main(){right(seen);}\nenable f16;\n",
                    NULL),
            "enable f16;\nfn right(x:f32)->f32{\nreturn x.left+0xBu+1.0e5;\n}\n"
            "var<private> seen:f32;\noverride WG:u32=64u;\n"
            "@compute @workgroup_size(WG)\nfn main(){right(seen);}\n");
    }
    TEST("each line of the text knows its place")
    {
        const struct wgsl_file two[] = { { "a.wgsl", "//!include b.wgsl\n\nfn main(){\nb();\n}\n" },
                                         { "b.wgsl", "\nconst N=1;\nfn b(){\n}\n" } };
        const struct wgsl_files from = { two, 2 };
        const struct wgsl_place want[] = { { 1, 3 }, { 1, 4 }, { 0, 3 }, { 0, 4 }, { 0, 5 } };
        struct wgsl w;
        CHECK(wgsl_expand(&w, &from, 0, 0, &err) == BZ_OK);
        CHECK(w.n_places == 5 && memcmp(w.places, want, sizeof want) == 0);
        wgsl_free(&w);
    }
}

static void test_mistakes(void)
{
    TEST("a mistake is told with its file and line")
    {
        FAILS("fn main(){}\n//!pragma once\n", NULL, "a.wgsl:2: no such directive: pragma");
        FAILS("\n//!if\n", NULL, "a.wgsl:2: no axis and no loop has the name");
        FAILS("//!if kind == one\n//!end\n", NULL,
              "a.wgsl:1: no axis and no loop has the name: kind");
        FAILS("//!axis kind one two\n//!if kind\n//!end\n", NULL, "a.wgsl:2: not a test of: kind");
        FAILS("//!axis kind one two\n//!if kind ==\n//!end\n", NULL,
              "a.wgsl:2: no value to compare with: kind");
        FAILS("//!axis kind one two\n//!if kind == one two\n//!end\n", NULL,
              "a.wgsl:2: not understood: two");
        FAILS("//!axis kind one two\n//!if (kind == one\n//!end\n", NULL,
              "a.wgsl:2: a ) is missing");
        FAILS("//!axis kind one two\n//!if kind == one\nfn main(){}\n", NULL,
              "a.wgsl:2: no //!end ends this");
        FAILS("//!axis kind one two\n//!if kind == one\n//!else\n//!else\n//!end\n", NULL,
              "a.wgsl:2: no //!end ends this");
        FAILS("fn main(){}\n//!end\n", NULL, "a.wgsl:2: it ends nothing");
        FAILS("//!for I a b\n//!end\n", NULL, "a.wgsl:1: it reads: //!for I in a b c: I");
        FAILS("//!for I in a b\n$J\n//!end\n", NULL,
              "a.wgsl:2: no axis and no loop has the name: J");
        FAILS("//!for I in a b\nx\n", NULL, "a.wgsl:1: no //!end ends this");
        FAILS("//!axis kind one\n//!for kind in a b\n//!end\n", NULL,
              "a.wgsl:2: not a new name: kind");
        FAILS("//!bind x write array<f32>\n", NULL,
              "a.wgsl:1: it reads: //!bind name read type, or update: x");
        FAILS("//!include lib/none.wgsl\n", NULL, "a.wgsl:1: there is no file: lib/none.wgsl");
        FAILS("//!include lib/none.wgsl under x\n", NULL,
              "a.wgsl:1: it reads: //!include path [as suffix]");
        FAILS("\nfn main(){\n", NULL, "a.wgsl:2: this does not end");
        FAILS("fn main(){}\nfn f(){}\nconst f=1;\n", NULL, "a.wgsl:3: declared twice: f");
    }
    TEST("a mistake in an included file is told with that file's name")
    {
        const char *const axis[] = { "lib/b.wgsl", "\n//!axis kind one two\n", NULL };
        FAILS("//!include lib/b.wgsl\n", axis,
              "lib/b.wgsl:2: an axis stands in an entry file: kind");
        const char *const open[] = { "lib/b.wgsl", "//!end\n", NULL };
        FAILS("//!for I in a b\n//!include lib/b.wgsl\n//!end\n", open,
              "lib/b.wgsl:1: it ends nothing");
        const char *const twice[] = { "lib/b.wgsl", "const f=1;\n", NULL };
        FAILS("fn f(){}\n//!include lib/b.wgsl\n", twice, "lib/b.wgsl:1: declared twice: f");
    }
    TEST("any allocation may fail")
    {
        const char *text = "//!axis kind one two\n//!bind x read f32\nfn f(){}\nfn main(){f();}\n";
        uint64_t before = mem_count();
        CHECK(expand(1, text, NULL) == BZ_OK);
        for (uint64_t k = 1, n = mem_count() - before; k <= n; k++) {
            mem_fail_at(k);
            CHECK(expand(1, text, NULL) == BZ_ERR_MEMORY);
        }
        mem_fail_at(0);
    }
}

int main(void)
{
    test_axes();
    test_conditions();
    test_loops();
    test_includes();
    test_declarations();
    test_mistakes();
    return check_done();
}
