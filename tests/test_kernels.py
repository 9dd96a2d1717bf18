#!/usr/bin/env python3
"""What tools/kernels.py accepts, what it makes of it, and what it refuses with file:line."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import kernels  # noqa: E402

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
@group(0) @binding(2) var<storage, read> x : array<f32>;
@group(0) @binding(3) var<storage, read_write> y : array<f32>;
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
        self.assertIn(f"{name}:{line}: ", str(caught.exception))
        self.assertIn(words, str(caught.exception))

    def changed(self, old, new):
        self.assertIn(old, GOOD)
        return GOOD.replace(old, new)

    def line_of(self, words):
        return next(n for n, line in enumerate(GOOD.splitlines(), 1) if words in line)

    def test_a_good_kernel_is_understood(self):
        self.put(GOOD)
        (k,) = kernels.read_all(self.root)
        self.assertEqual(k.params, [("n", "u32"), ("s", "f32")])
        self.assertEqual(k.overrides, ["WG", "FAST"])
        self.assertEqual(k.bindings, "uurw")
        self.assertNotIn("comment", k.text)
        self.assertIn("* p.s - -FAST", k.text)
        self.assertEqual(k.text.count("struct Step"), 1)

    def test_a_piece_is_included_once(self):
        self.put(GOOD.replace("//!include lib/step.wgsl", "//!include lib/step.wgsl\n//!include lib/step.wgsl"))
        self.assertEqual(kernels.read_all(self.root)[0].text.count("struct Step"), 1)

    def test_a_piece_comes_a_second_time_under_other_names(self):
        (self.root / "lib" / "unit.wgsl").write_text("const UNIT : f32 = 8.0;\n")
        (self.root / "lib" / "dot.wgsl").write_text("//!include lib/unit.wgsl\nstruct Pair {\n    one : f32,\n}\nfn dot1(v : Pair) -> f32 {\n    return v.one * UNIT;\n}\n")
        (self.root / "lib" / "rows.wgsl").write_text("fn rows() -> f32 {\n    return dot1(Pair(1.0)) + other();\n}\n")
        twice = "//!include lib/dot.wgsl\n//!include lib/dot.wgsl as third\n//!include lib/rows.wgsl as third\n//!include"
        self.put(GOOD.replace("//!include", twice).replace("* p.s", "* dot1(Pair(1.0)) * rows_third() * p.s"))
        text = kernels.read_all(self.root)[0].text
        for words in ("const UNIT:f32", "const UNIT_third:f32", "fn dot1(v:Pair)", "fn dot1_third(v:Pair_third)", "v.one * UNIT_third;",
                      "fn rows_third()", "dot1_third(Pair_third(1.0))+ other()"):
            self.assertEqual(text.count(words), 1, words)

    def test_fields_are_u32_and_f32_only(self):
        for t in ("i32", "vec4<u32>", "array<u32, 4>", "bool"):
            self.refuses(self.changed("s : f32", f"s : {t}"), self.line_of("s : f32"), "only u32 and f32")

    def test_a_field_stands_once(self):
        self.refuses(self.changed("s : f32", "n : f32"), self.line_of("s : f32"), "twice")

    def test_params_must_be_there_and_not_empty(self):
        self.refuses(self.changed("struct Params", "struct Parms"), 1, "no struct Params")

    def test_every_part_of_the_header_must_be_there(self):
        for word in ("grid", "bytes", "needs", "Reference:", "Tolerance"):
            self.refuses(self.changed(word, "other"), 7, word)
        self.refuses(self.changed("// mul - ", "// mull - "), 1, "opens with")

    def test_the_header_and_the_bindings_agree(self):
        self.refuses(self.changed("x  read ", "x  write"), self.line_of("x  read"), "the header says x is write")
        self.refuses(self.changed("y  write", "y  read "), self.line_of("y  write"), "the header says y is read")
        self.refuses(self.changed("//   x  read   n f32 ", "//   x  is n f32 "), self.line_of("read> x"), "nothing about x")
        self.refuses(self.changed("//                          needs", "//   z  read  n f32     needs"), 5, "not bound")
        rows = [line for line in GOOD.splitlines() if line.startswith(("//   x", "//   y"))]
        swapped = GOOD.replace("\n".join(rows), "\n".join(reversed(rows)))
        self.refuses(swapped, 3, "order")

    def test_an_update_is_a_read_write(self):
        self.put(self.changed("y  write", "y  update"))
        kernels.read_all(self.root)

    def test_bindings_have_no_gap_and_no_twin(self):
        self.refuses(self.changed("@binding(3)", "@binding(4)"), 1, "jump over 3")
        self.refuses(self.changed("@binding(3)", "@binding(2)"), self.line_of("@binding(3)"), "twice")
        self.refuses(self.changed("@group(0) @binding(3)", "@group(1) @binding(3)"), self.line_of("@binding(3)"), "@group(0)")

    def test_the_first_bindings_are_the_parameters_and_the_step(self):
        self.refuses(self.changed("uniform> p : Params", "uniform> p : vec4<u32>"), self.line_of("@binding(0)"), "p : Params")
        self.refuses(self.changed("//!include lib/step.wgsl", ""), 1, "jump over 1")

    def test_browsers_give_ten_storage_buffers(self):
        def more(n):
            rows = "".join(f"//   z{i}  read  n f32\n" for i in range(n))
            buffers = "".join(f"@group(0) @binding({4 + i}) var<storage, read> z{i} : array<f32>;\n" for i in range(n))
            uses = "".join(f" + z{i}[0]" for i in range(n))
            text = self.changed("//                          needs", rows + "//                          needs")
            return text.replace("@compute", buffers + "@compute").replace("x[id.x] * p.s", "x[id.x] * p.s" + uses)
        self.put(more(8))
        self.assertEqual(kernels.Kernel(self.root / "mul.wgsl", self.root).bindings, "uur" + "w" + "r" * 8)
        self.refuses(more(9), 1, "11 storage buffers")

    def test_a_binding_must_be_used(self):
        self.refuses(self.changed("x[id.x] * p.s", "p.x"), self.line_of("@binding(2)"), "never used")

    def test_buffers_are_storage(self):
        self.refuses(self.changed("storage, read_write", "storage, write"), self.line_of("@binding(3)"), "var<storage,write>")

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
        self.refuses(self.changed("lib/step.wgsl", "lib/none.wgsl"), at, "no such piece")
        self.refuses(self.changed("lib/step.wgsl", "../mul.wgsl"), at, "no such piece")
        self.refuses(self.changed("//!include lib/step.wgsl", "//!pragma x"), at, "the only //! lines")
        self.refuses(self.changed("struct Params", "enable dual_source_blending;\nstruct Params"), 11, "no tier")
        self.refuses(self.changed("struct Params", "enable subgroups;\nstruct Params"), 1, "enables nothing")

    def test_what_main_cannot_reach_is_left_out_of_the_table(self):
        lib = "const A : f32 = B;\nconst B : f32 = 1.0;\nfn left(x : f32) -> f32 {\n    return A * right(x);\n}\nfn right(x : f32) -> f32 { return x; }\n"
        (self.root / "lib" / "both.wgsl").write_text(lib)
        include = "//!include lib/step.wgsl\n//!include lib/both.wgsl"
        self.put(GOOD.replace("//!include lib/step.wgsl", include).replace("* p.s", "* right(p.s)"))
        (k,) = kernels.read_all(self.root)
        self.assertIn("fn left", k.text)  # which is checked as a whole
        text = "\n".join(k.needed)
        self.assertNotIn("fn left", text)
        self.assertNotIn("const", text)
        for needed in ("fn right", "fn main", "struct Params", "struct Step", "override FAST", "@binding(1)"):
            self.assertIn(needed, text)

    def test_pieces_are_shared_and_give_each_kernel_its_own_text(self):
        (self.root / "lib" / "both.wgsl").write_text("fn left(x : f32) -> f32 { return x; }\nfn right(x : f32) -> f32 { return x; }\n")
        include = "//!include lib/step.wgsl\n//!include lib/both.wgsl"
        for name, uses in (("mul", "left(right(p.s))"), ("one", "left(p.s)"), ("other", "right(p.s)")):
            self.put(GOOD.replace("// mul -", f"// {name} -").replace("//!include lib/step.wgsl", include).replace("* p.s", f"* {uses}"), f"{name}.wgsl")
        found = kernels.read_all(self.root)
        cut = kernels.cut_pieces(found)
        for k, pieces in zip(found, cut):
            self.assertEqual("\n".join(pieces), "\n".join(k.needed))
        self.assertEqual(len({piece for pieces in cut for piece in pieces if "fn left" in piece}), 1)
        self.assertEqual(len({piece for pieces in cut for piece in pieces if "struct Params" in piece}), 1)

    def test_a_for_line_makes_a_kernel_per_word_in_that_order(self):
        (self.root / "lib" / "by_two.wgsl").write_text("const BY : f32 = 2.0;\n")
        (self.root / "lib" / "by_one.wgsl").write_text("const BY : f32 = 1.0;\n")
        many = GOOD.replace("//!include", "//!for HOW in two one\n//!include lib/by_$HOW.wgsl\n//!include")
        many = many.replace("* p.s", "* BY * p.s")
        self.put(many)
        found = kernels.read_all(self.root)
        self.assertEqual([k.name for k in found], ["mul_two", "mul_one"])
        self.assertIn("BY:f32 = 2.0", found[0].text)
        two, one = kernels.cut_pieces(found)
        self.assertEqual(len(two), 2)  # what differs comes first; the rest is always together
        self.assertEqual(two[1:], one[1:])
        out = self.dir / "gen"
        self.assertEqual(kernels.main(["", str(self.root), str(out)]), 0)
        header = (out / "kernels.h").read_text()
        self.assertEqual(header.count("struct mul_params {"), 1)
        self.assertEqual(header.count("enum { MUL_WG, MUL_FAST }"), 1)
        self.assertEqual((out / "kernels.c").read_text().count("struct Step"), 1)
        at = self.line_of("//!include")
        self.refuses(many.replace("in two one", "in two two"), at, "each once")
        self.refuses(many.replace("in two one", "over two"), at, "//!for SHAPE in")
        self.refuses(many.replace("in two one", "in three"), at + 1, "no such piece: lib/by_three.wgsl")
        self.refuses(GOOD.replace("//!include", "//!include lib/by_$HOW.wgsl\n//!include"), at, "without a //!for")
        self.refuses(many.replace("s : f32", "$HOW : f32"), 1, "not those of two")
        self.put(many)
        self.put(GOOD.replace("// mul", "// mul_one"), "mul_one.wgsl")
        with self.assertRaisesRegex(kernels.Bad, "mul_one is made twice"):
            kernels.read_all(self.root)

    def test_a_comment_must_be_closed(self):
        self.refuses(GOOD + "/* open\n", len(GOOD.splitlines()) + 1, "not closed")

    def test_a_tier_has_the_plain_files_parameters_and_bindings(self):
        fast = GOOD.replace("//!include", "enable subgroups;\n//!include")
        self.put(fast, "mul.subgroup.wgsl")
        self.refuses(fast, 1, "without its plain file", "mul.subgroup.wgsl")
        self.put(GOOD)
        self.assertEqual([k.c_name for k in kernels.read_all(self.root)], ["mul_subgroup", "mul"])
        self.refuses(fast.replace("s : f32", "t : f32"), 1, "Params differ", "mul.subgroup.wgsl")
        other = fast.replace("y  write", "z  write").replace("read_write> y", "read_write> z").replace("y[", "z[")
        self.refuses(other, 1, "bindings differ", "mul.subgroup.wgsl")
        self.refuses(fast, 1, "unknown tier", "mul.quick.wgsl")

    def test_what_is_written_compiles_and_says_what_was_read(self):
        self.put(GOOD)
        self.put(GOOD.replace("//!include", "enable subgroups;\n//!include"), "mul.subgroup.wgsl")
        out = self.dir / "gen"
        self.assertEqual(kernels.main(["", str(self.root), str(out)]), 0)
        dates = [(out / f).stat().st_mtime_ns for f in ("kernels.h", "kernels.c")]
        self.assertEqual(kernels.main(["", str(self.root), str(out)]), 0)
        self.assertEqual(dates, [(out / f).stat().st_mtime_ns for f in ("kernels.h", "kernels.c")])
        (self.dir / "use.c").write_text("""
            #include "kernels.h"
            #include <stdio.h>
            int main(void)
            {
                struct mul_params p = { .n = 1, .s = 2 };
                const struct kernel_info *a = &kernel_table[KERNEL_MUL], *b = &kernel_table[KERNEL_MUL_SUBGROUP];
                printf("%d %zu %s %s %s %u %u %u %d %u %u", N_KERNELS, sizeof p, a->name, b->name, a->bindings,
                       a->n_bindings, a->n_overrides, a->params_bytes, a->uses_step, a->needs, b->needs);
                printf(" %s %d %d", a->overrides[MUL_FAST], MUL_WG, MUL_SUBGROUP_FAST);
                return 0;
            }""")
        flags = "-std=c11 -Wall -Wextra -Werror -Wpedantic".split()
        subprocess.run(["cc", *flags, f"-I{out}", str(self.dir / "use.c"), str(out / "kernels.c"), "-o",
                        str(self.dir / "use")], check=True)
        said = subprocess.run([str(self.dir / "use")], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, "2 16 mul mul.subgroup uurw 4 2 16 1 0 1 FAST 0 1")

    def test_the_repositorys_own_kernels_are_accepted(self):
        self.assertGreater(len(kernels.read_all(ROOT / "kernels")), 0)


if __name__ == "__main__":
    unittest.main()
