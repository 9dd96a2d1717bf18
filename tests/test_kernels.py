#!/usr/bin/env python3
"""What tools/kernels.py accepts, what it makes of it, and what it refuses with file:line."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import kernels  # noqa: E402
import wgsl  # noqa: E402
import wgsl_names  # noqa: E402

GOOD = """\
// mul - y = x * s                /* not a comment of WGSL's kind */
//
//   x  read   n f32        grid   one thread per number
//   y  write  n f32        bytes  2 per number
//                          needs  nothing
//
// Reference: nobody. Tolerance 0.

//!include lib/step.wgsl

struct Params {
    n : u32, /* a comment, with /* one */ inside : f64 */
    s : f32,
}
override WG : u32 = 64u;
override FAST : f32 = 0.5;
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<f32> // a comment
//!bind y update array<f32>
@compute @workgroup_size(WG, 1, 1)
fn main(@builtin(global_invocation_id) id : vec3<u32>) {
    if (id.x < p.n) { y[id.x] = x[id.x] * p.s - -FAST + f32(step.pos); } // done
}
"""
STEP = """\
// step - what changes.
struct Step { pos : u32, }
@group(0) @binding(1) var<uniform> step : Step;
"""


class Generator(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.root = self.dir / "kernels"
        (self.root / "lib").mkdir(parents=True)
        (self.root / "lib" / "step.wgsl").write_text(STEP)

    def tearDown(self):
        shutil.rmtree(self.dir)

    def put(self, text, name="mul.wgsl"):
        (self.root / name).write_text(text)

    def refuses(self, text, line, words, name="mul.wgsl"):
        self.put(text, name)
        with self.assertRaises(kernels.Bad) as caught:
            kernels.read_all(self.root)
        self.assertIn(f"{name}:{line}: ", str(caught.exception) + " ")
        self.assertIn(words, str(caught.exception))

    def family(self):
        """The only one."""
        _, (found,) = kernels.read_all(self.root)
        return found

    def changed(self, old, new):
        self.assertIn(old, GOOD)
        return GOOD.replace(old, new)

    def line_of(self, words):
        return next(n for n, line in enumerate(GOOD.splitlines(), 1) if words in line)

    def test_a_good_kernel_is_understood(self):
        self.put(GOOD)
        f = self.family()
        v = f.variants[0]
        self.assertEqual([(p.name, p.type) for p in f.params], [("n", "u32"), ("s", "f32")])
        self.assertEqual(f.overrides, ["WG", "FAST"])
        self.assertEqual(v.bindings, "uurw")
        self.assertNotIn("comment", v.text)
        self.assertIn("*p.s- -FAST+f32", v.text)  # two operators do not become one
        self.assertEqual(v.text.count("struct Step"), 1)

    def test_fields_are_u32_and_f32_only(self):
        for t in ("i32", "vec4<u32>", "array<u32, 4>", "bool"):
            self.refuses(self.changed("s : f32", f"s : {t}"), self.line_of("s : f32"),
                         "only u32 and f32")

    def test_params_may_hold_arrays_of_a_struct(self):
        pair = "struct Pair { a : u32, b : f32, c : u32, d : u32, }\nstruct Params {\n"
        arrays = GOOD.replace("struct Params {\n", pair + "two : array<Pair, 2>,\n")
        self.put(arrays.replace("p.n", "p.two[1].a + p.n"))
        self.assertEqual([(f.name, f.type, f.count) for f in self.family().params],
                         [("two", "Pair", 2), ("n", "u32", 0), ("s", "f32", 0)])
        self.assertEqual(self.family().params_bytes, 48)
        said = self.compiled("struct mul_params p = { .two = { { .a = 1 }, { .b = 2 } } };\n"
                             'printf("%zu %g %zu", sizeof p, (double)p.two[1].b, '
                             "(size_t)((char *)&p.n - (char *)&p));")
        self.assertEqual(said, "48 2 32")
        line = self.line_of("struct Params") + 2
        for old, new, at, words in (
                ("b : f32", "b : vec2<f32>", line - 2, "field b of Pair is vec2<f32>"),
                (", d : u32", "", line, "begin at a multiple of 16 bytes"),
                ("two : array", "one : u32,\ntwo : array", line + 1,
                 "begin at a multiple of 16 bytes"),
                ("b : f32", "a : f32", line - 2, "field a is there twice"),
                ("array<Pair, 2>", "array<Pear, 2>", line, "only u32 and f32")):
            self.refuses(arrays.replace(old, new), at, words)
        self.put(arrays)
        self.refuses(arrays.replace("mul", "mul_2").replace("c : u32", "e : u32"), 1,
                     "another struct Pair", "mul_2.wgsl")

    def test_a_field_stands_once(self):
        self.refuses(self.changed("s : f32", "n : f32"), self.line_of("s : f32"), "twice")

    def test_params_must_be_there_and_not_empty(self):
        self.refuses(self.changed("struct Params", "struct Parms"), 1, "no struct Params")

    def test_every_part_of_the_header_must_be_there(self):
        for word in ("grid", "bytes", "needs", "Tolerance"):
            self.refuses(self.changed(word, "other"), 7, word)
        self.refuses(self.changed("Reference:", "other"), 1, "no file includes this one")
        self.refuses(self.changed("// mul - ", "// mull - "), 1, "opens with")

    def test_the_header_and_the_bindings_agree(self):
        self.refuses(self.changed("x  read ", "x  write"), self.line_of("x  read"),
                     "the header says x is write")
        self.refuses(self.changed("y  write", "y  read "), self.line_of("y  write"),
                     "the header says y is read")
        self.refuses(self.changed("//   x  read   n f32 ", "//   x  is n f32 "),
                     self.line_of("bind x"), "nothing about x")
        self.refuses(self.changed("//                          needs",
                                  "//   z  read  n f32     needs"), 5, "not bound")
        rows = [line for line in GOOD.splitlines() if line.startswith(("//   x", "//   y"))]
        swapped = GOOD.replace("\n".join(rows), "\n".join(reversed(rows)))
        self.refuses(swapped, 3, "order")

    def test_an_update_is_a_read_write(self):
        self.put(self.changed("y  write", "y  update"))
        kernels.read_all(self.root)

    def test_the_uniforms_are_the_parameters_and_the_step_and_buffers_are_binds(self):
        self.refuses(self.changed("uniform> p : Params", "uniform> p : vec4<u32>"), 1,
                     "the uniforms are")
        self.refuses(self.changed("@group(0) @binding(0)", "@group(0) @binding(2)"), 1,
                     "the uniforms are")
        self.refuses(self.changed("//!bind x read array<f32>",
                                  "@group(0) @binding(2) var<storage, read> x : array<f32>;"),
                     self.line_of("bind x"), "buffers are //!bind lines")

    def test_browsers_give_ten_storage_buffers(self):
        def more(n):
            rows = "".join(f"//   z{i}  read  n f32\n" for i in range(n))
            buffers = "".join(f"//!bind z{i} read array<f32>\n" for i in range(n))
            uses = "".join(f" + z{i}[0]" for i in range(n))
            text = self.changed("//                          needs",
                                rows + "//                          needs")
            text = text.replace("@compute", buffers + "@compute")
            return text.replace("x[id.x] * p.s", "x[id.x] * p.s" + uses)
        self.put(more(8))
        self.assertEqual(self.family().variants[0].bindings, "uur" + "w" + "r" * 8)
        self.refuses(more(9), 1, "11 storage buffers")

    def test_a_binding_must_be_used(self):
        self.refuses(self.changed("x[id.x] * p.s", "p.x"), self.line_of("bind x"), "never used")

    def test_the_entry_point_is_main(self):
        self.refuses(self.changed("fn main", "fn start"), 1, "one entry point, main; found start")
        self.refuses(GOOD + "@compute @workgroup_size(1) fn more() {}\n", 1, "main, more")

    def test_overrides_are_typed_have_a_default_and_no_id(self):
        at = self.line_of("override WG")
        self.refuses(self.changed("WG : u32 = 64u", "WG = 64u"), at, "u32 or f32")
        self.refuses(self.changed("WG : u32 = 64u", "WG : u32"), at, "no default")
        self.refuses(self.changed("override WG", "@id(3) override WG"), at, "@id")

    def test_unknown_pieces_and_features_are_refused(self):
        at = self.line_of("//!include")
        self.refuses(self.changed("lib/step.wgsl", "lib/none.wgsl"), at,
                     "there is no file: lib/none.wgsl")
        self.refuses(self.changed("//!include", "//!pragma"), at, "no such directive: pragma")
        self.refuses(self.changed("struct Params", "enable dual_source_blending;\nstruct Params"),
                     11, "no tier")
        self.refuses(self.changed("struct Params", "enable subgroups;\nstruct Params"), 1,
                     "enables nothing")

    def test_a_directive_that_is_not_understood_is_told_by_the_preprocessor(self):
        self.refuses(self.changed("struct Params", "//!if\n//!end\nstruct Params"), 11,
                     "no axis and no loop has the name")

    def test_axes_make_a_variant_of_each_combination_but_those_excluded(self):
        (self.root / "lib" / "by_two.wgsl").write_text("const BY : f32 = 2.0;\n")
        (self.root / "lib" / "by_one.wgsl").write_text("const BY : f32 = 1.0;\n")
        axes = ("//!axis how two one none\n//!axis tier plain subgroup\n"
                "//!without how == none && tier == subgroup\n")
        body = ("//!if how != none\n//!include lib/by_$how.wgsl\n//!else\nconst BY : f32 = "
                "0.0;\n//!end\n"
                "//!if tier == subgroup\nenable subgroups;\n//!end\n")
        many = GOOD.replace("//!include", axes + body + "//!include").replace("* p.s", "* BY * p.s")
        self.put(many)
        f = self.family()
        self.assertEqual({n: v.name for n, v in f.variants.items()},
                         {0: "mul", 1 << 10: "mul[subgroup]", 1 << 8: "mul[one]",
                          5 << 8: "mul[one subgroup]", 2 << 8: "mul[none]"})
        self.assertIn("BY:f32=1.0", f.variants[5 << 8].text)
        self.assertIn("enable subgroups", f.variants[5 << 8].text)
        at = self.line_of("//!include")
        self.refuses(many.replace("two one none", "two one two"), at, "each once")
        self.refuses(many.replace("tier plain subgroup", "tier subgroup plain"), at + 1,
                     "plain is the first")
        self.refuses(many.replace("tier plain subgroup", "tier plain quick"), at + 1, "tiers are")
        self.refuses(many.replace("how != none", "how != nothing"), at + 3,
                     "no axis how has the value nothing")
        self.refuses(many.replace("lib/by_$how", "lib/by_$why"), at + 4,
                     "no axis and no loop has the name: why")
        self.refuses(many.replace("s : f32", "$how : f32"), 1,
                     "Params of mul[one] are not those of mul")

    def test_every_variant_reads_what_the_header_names_and_has_its_order(self):
        axes = "//!axis how two one\n//!include"
        row = "//   z  read   n f32\n//   y  write"
        some = GOOD.replace("//   y  write", row).replace("//!include", axes)
        some = some.replace("//!bind y",
                            "//!if how == one\n//!bind z read array<f32>\n//!end\n//!bind y")
        some = some.replace("p.s -", "p.s\n//!if how == one\n* z[0]\n//!end\n-")
        self.put(some)
        self.assertEqual([v.bindings for v in self.family().variants.values()], ["uurw", "uurrw"])
        self.refuses(some.replace("z  read", "z  write"), self.line_of("y  write"),
                     "the header says z is write")
        self.refuses(some.replace("how == one\n//!bind",
                                  "how == one && how == two\n//!bind").replace("* z[0]", "* 1.0"),
                     self.line_of("y  write"), "the header names z, which is not bound")

    def test_overrides_of_a_family_are_those_of_all_variants(self):
        self.put(GOOD.replace("//!include",
                              "//!axis how two one\n//!if how == one\noverride MORE : u32 = "
                              "1u;\n//!end\n//!include"))
        self.assertEqual(self.family().overrides, ["WG", "FAST", "MORE"])

    def test_what_the_recorder_sets_is_in_every_variant_or_none(self):
        override = "override PROCESSORS : u32 = 132u;\n"
        self.put(GOOD.replace("//!include", f"//!axis how two one\n{override}//!include"))
        self.assertEqual(self.family().overrides, ["PROCESSORS", "WG", "FAST"])
        said = self.compiled('printf("%u", kernel_families[KERNEL_MUL].processors);')
        self.assertEqual(said, "1")
        self.refuses(GOOD.replace("//!include", "//!axis how two one\n//!if how == one\n"
                                  f"{override}//!end\n//!include"),
                     1, "lacks PROCESSORS")

    def test_a_kernel_stands_in_any_folder_and_its_name_once(self):
        (self.root / "norm").mkdir()
        self.put(GOOD, "norm/mul.wgsl")
        self.assertEqual(self.family().path, "norm/mul.wgsl")
        self.put(GOOD)
        self.refuses(GOOD, 1, "there is a kernel mul in mul.wgsl", "norm/mul.wgsl")

    def test_a_piece_that_no_kernel_includes_is_refused(self):
        self.put(GOOD)
        self.refuses("const A : u32 = 1u;\n", 1, "no file includes this one", "lib/left.wgsl")

    def test_a_comment_must_be_closed(self):
        self.refuses(GOOD + "/* open\n", len(GOOD.splitlines()) + 1, "not closed")

    def test_workgroup_memory_is_a_function_of_overrides_and_axes(self):
        more = ("//!axis how two one\nconst N : u32 = 2u * 8u;\nstruct Pair { a : f32, b : "
                "vec3<f32>, c : f32, }\n"
                "var<workgroup> some : array<vec4<f32>, WG>;\nvar<workgroup> odd : array<f32, 3u * "
                "WG / 2u>;\n"
                "//!if how == one\nvar<workgroup> pairs : array<Pair, N>;\n//!else\nvar<workgroup> "
                "flag : atomic<u32>;\n"
                "const pairs : f32 = 0.0;\n//!end\n//!include")
        uses = "f32(step.pos) + some[0].x + odd[0] + f32(flags())"
        self.put(GOOD.replace("//!include", more).replace("f32(step.pos)", uses).replace(
            "@compute",
            "fn flags() -> u32 {\n//!if how == one\nreturn u32(pairs[0].a);\n//!else\nreturn "
            "atomicLoad(&flag);\n//!end\n}\n@compute"))
        said = self.compiled('printf("%u %u", mul_workgroup_bytes(KERNEL_MUL, 64), '
                             'mul_workgroup_bytes(KERNEL_MUL | MUL_HOW_ONE, 3));')
        self.assertEqual(said, f"{64 * 16 + 96 * 4 + 16} {3 * 16 + 16 + 16 * 32}")

    def compiled(self, body, *more):
        """What a program with this body says of what is written; more: flags."""
        out = self.dir / "gen"
        self.assertEqual(kernels.main(["", str(self.root), str(out)]), 0)
        program = f"int main(void)\n{{\n{body}\nreturn 0;\n}}\n"
        (self.dir / "use.c").write_text('#include "gpu/kernel.h"\n#include <stdio.h>\n' + program)
        flags = "-std=c11 -O2 -Wall -Wextra -Werror -Wpedantic -Wconversion -D_GNU_SOURCE".split()
        flags += more
        sources = [ROOT / "src" / name
                   for name in ("gpu/kernel.c", "gpu/wgsl.c", "base/err.c", "base/mem.c",
                                "base/str.c")]
        subprocess.run(["cc", *flags, f"-I{out}", f"-I{ROOT}/src", f"-I{ROOT}/include",
                        str(self.dir / "use.c"), str(out / "kernels.c"),
                        *sources, "-o", str(self.dir / "use")], check=True)
        return subprocess.run([str(self.dir / "use")], capture_output=True, text=True,
                              check=True).stdout

    def test_what_is_written_compiles_and_says_what_was_read(self):
        axes = ("//!axis format f32 f16 q4_k\n//!axis tier plain subgroup\n"
                "//!if tier == subgroup\nenable subgroups;\n//!end\n")
        self.put(GOOD.replace("//!include", axes + "//!include"))
        self.put(GOOD.replace("// mul", "// add"), "add.wgsl")
        said = self.compiled("""
            struct mul_params p = { .n = 1, .s = 2 };
            const struct kernel_family *f = kernel_family(KERNEL_MUL | MUL_TIER_SUBGROUP);
            uint32_t one = KERNEL_MUL | 2u << MUL_FORMAT_SHIFT | MUL_TIER_SUBGROUP;
            struct wgsl w;
            struct bz_err err;
            printf("%d %zu %s %u %u %d %s %d", N_KERNELS, sizeof p, f->path, f->n_overrides,
                   f->params_bytes,
                   f->uses_step, f->overrides[MUL_FAST], MUL_WG);
            printf(" %u %u %u", kernel_value(one, f->format),
                   kernel_plain(one) == (KERNEL_MUL | MUL_FORMAT_Q4_K),
                   kernel_value(KERNEL_ADD, kernel_family(KERNEL_ADD)->tier));
            if (kernel_expand(&w, one, &err)) return 1;
            printf(" %s %s %.16s", w.name.data, w.bindings, w.text.data);
            wgsl_free(&w);
            printf(" %d %d", kernel_expand(&w, 99, &err),
                   kernel_expand(&w, KERNEL_ADD | 1u << 20, &err));""")
        self.assertEqual(said,
                         "2 16 mul.wgsl 2 16 1 FAST 0 2 1 0 mul[q4_k subgroup] uurw enable "
                         "subgroups 6 4")
        out = self.dir / "gen"
        dates = [(out / f).stat().st_mtime_ns for f in ("kernels.h", "kernels.c")]
        self.assertEqual(kernels.main(["", str(self.root), str(out)]), 0)
        self.assertEqual(dates, [(out / f).stat().st_mtime_ns for f in ("kernels.h", "kernels.c")])
        self.assertEqual(json.loads((out / "kernels.json").read_text())["mul[f16]"], 257)

    def test_a_folder_of_later_kernels_is_for_itself(self):
        (self.root / "train").mkdir()
        (self.root / "train" / "rate.wgsl").write_text("const RATE : f32 = 2.0;\n")
        with_rate = GOOD.replace("//!include", "//!include train/rate.wgsl\n//!include")
        with_rate = with_rate.replace("* p.s", "* RATE")
        self.refuses(with_rate, self.line_of("//!include"), "is for that folder alone")
        (self.root / "mul.wgsl").unlink()
        self.put(with_rate, "train/mul.wgsl")
        self.assertEqual(self.family().path, "train/mul.wgsl")

    def test_later_kernels_are_brought_from_a_file_of_the_same_build(self):
        for folder in ("train", "lib"):
            (self.root / folder).mkdir(exist_ok=True)
        (self.root / "lib" / "rate.wgsl").write_text("const RATE : f32 = 2.0;\n")
        self.put(GOOD.replace("//!include",
                              "//!include lib/rate.wgsl\n//!include").replace("* p.s", "* RATE"),
                              "train/mul.wgsl")
        self.put(GOOD.replace("// mul", "// add"), "add.wgsl")
        body = """
            static char text[9999];
            FILE *f = fopen(FILE_NAME, "r");
            size_t n = fread(text, 1, sizeof text - 1, f);
            struct wgsl w;
            struct bz_err err;
            printf("%d %d ", kernel_expand(&w, KERNEL_ADD, &err),
                   kernel_expand(&w, KERNEL_MUL, &err));
            printf("%s ", strstr(err.text, "not brought") ? "lacks" : "has");
            text[9]++;
            printf("%d ", kernel_bring(text, n, &err));
            text[9]--;
            printf("%d ", kernel_bring(text, n, &err));
            printf("%d ", kernel_expand(&w, KERNEL_MUL, &err));
            printf("%s %d", strstr(w.text.data, ":f32=2.0;") ? "all" : "some",
                   kernel_bring(text, n, &err));
            fclose(f);"""
        file = f'-DFILE_NAME="{self.dir}/gen/train.wgsl"'
        self.assertEqual(self.compiled(body, file, "-DKERNELS_OF_TEXT"),
                         "0 6 lacks 4 0 0 all 0")

    def short(self, *lines):
        short = wgsl_names.short({"a.wgsl": list(lines)})
        return [short.line(line) for line in lines]

    def test_the_embedded_copy_has_short_names_and_wgsl_keeps_its_own(self):
        self.assertEqual(
            self.short("override ROWS:u32=4u;", "struct Place{lane:u32,xy:u32,}",
                       "var<workgroup>sums:array<vec4<f32>,4>;",
                       "fn place(@builtin(local_invocation_index)lane:u32)->Place{",
                       "let most=dot(sums[lane].xy,vec2<f32>(0x10u));",
                       "return Place(lane*ROWS,min(lane,u32(most)));}", "fn main(){}"),
            ["override ROWS:u32=4u;", "struct b{a:u32,xy:u32,}",
             "var<workgroup>d:array<vec4<f32>,4>;",
             "fn e(@builtin(local_invocation_index)a:u32)->b{",
             "let c=dot(d[a].xy,vec2<f32>(0x10u));",
             "return b(a*ROWS,min(a,u32(c)));}", "fn main(){}"])

    def test_a_name_that_hides_a_function_of_wgsl_stays(self):
        self.assertEqual(self.short("fn main(){let min=min(1u,2u);let least=min;}"),
                         ["fn main(){let min=min(1u,2u);let a=min;}"])

    def test_directives_stay_but_for_what_is_bound(self):
        self.assertEqual(
            self.short("//!axis rows one two", "//!if rows == one", "//!bind rows read array<Row>",
                       "struct Row{rows:u32,}", "//!end"),
            ["//!axis rows one two", "//!if rows == one", "//!bind b read array<a>",
             "struct a{b:u32,}", "//!end"])

    def test_the_repositorys_own_kernels_are_the_same_with_short_names(self):
        texts, families = kernels.read_all(ROOT / "kernels")
        self.assertGreater(len(families), 0)
        short = wgsl_names.short(texts)
        files = wgsl.Files({p: "\n".join(lines) for p, lines
                            in kernels.with_short_names(texts, short).items()})
        for family in families:
            for number, variant in family.variants.items():
                found = wgsl.expand(files, family.path, number >> kernels.FAMILY_BITS)
                self.assertEqual(found.text.split("\n"),
                                 [short.line(line) for line in variant.text.split("\n")])


if __name__ == "__main__":
    unittest.main()
