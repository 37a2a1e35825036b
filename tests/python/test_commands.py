"""The commands of `lowerset` as functions of Python: options, errors, reports. Needs no numpy.

   LOWERSET=build/lowerset PYTHONPATH=python python3 tests/python/test_commands.py
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

from lowerset import _program, commands, errors
from lowerset._program import option_words

PROGRAM = os.environ["LOWERSET"]
QUICK = {"plan_effort": 1}


def said_by(*words):
    return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True).stdout


class InFolder(unittest.TestCase):
    """A folder with two small networks."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.unet = self.path("unet.onnx")
        said_by("model", "unet", "--width=4", "--depth=2", "--size=16", "--batch=4", "-o",
                self.unet)
        self.mlp = self.path("mlp.onnx")
        said_by("model", "mlp", "--width=4", "--size=4", "--batch=0", "-o", self.mlp)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def script(self, name, text):
        path = self.path(name)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path


class Options(unittest.TestCase):
    def test_words(self):
        self.assertEqual(option_words(clip_norm=1, budget="4GiB", precision=None),
                         ["--clip-norm=1", "--budget=4GiB"])
        self.assertEqual(option_words(prove=True, tie=False), ["--prove"])
        self.assertEqual(option_words(freeze=["a", "b*"]), ["--freeze=a", "--freeze=b*"])
        self.assertEqual(option_words(class_weights=[1, 0.5], label_shape=(8, 3)),
                         ["--class-weights=1,0.5", "--label-shape=8x3"])
        self.assertEqual(option_words(dim={"N": 8}, shape={"x": (8, 3)}),
                         ["--dim=N=8", "--shape=x=8x3"])
        self.assertEqual(option_words(inplace=False, overlap=True, no_offsets=True),
                         ["--no-inplace", "--no-offsets"])
        self.assertEqual(option_words(from_="20%", march="x86-64-v3", class_axis=-1),
                         ["--from=20%", "-march=x86-64-v3", "--class-axis=-1"])
        self.assertEqual(option_words(costs=Path("a b.json")), ["--costs=a b.json"])

    def test_true_and_values(self):
        for bad in ({"ema": True}, {"ema": False}, {"prove": 3}, {"inplace": "yes"},
                    {"freeze": [True]}, {"no_such": False}):
            with self.assertRaises(errors.UsageError, msg=bad) as caught:
                option_words(**bad)
            self.assertEqual(caught.exception.code, 2)

    def test_flags_are_those_of_the_program(self):
        names = {row.split()[1] for row in said_by("help", "--table").splitlines()
                 if row.split()[0] != "model"}
        commands_with_options = {row.split()[0] for row in
                                 said_by("help", "--table").splitlines()} - {"model"}
        text = "".join(said_by("help", command) for command in commands_with_options)
        # The name, and what stands for the value, if any.
        rows = re.findall(r"^ {2,6}(?:-\w, +)?(--?[a-z0-9-]+)((?: \S+|\[\S+)?) *(?: {2}|$)",
                          text, re.M)
        flags = {name for name, value in rows if value == ""}
        self.assertEqual({name for name, _ in rows} & names, names)
        self.assertEqual({f"--{name}" for name in _program._FLAGS}
                         | {f"--no-{name}" for name in _program._NEGATIVES}, flags)
        missing = {f"--{name}" for name in _program._JOINED} - names
        self.assertEqual(missing, set())


class Errors(unittest.TestCase):
    def test_parts_of_a_message(self):
        error = errors.error_of(3, "a: b.onnx: node 57 'l: (2)/conv' (Conv): error LS-E0014: no\n"
                                   "  hint: do this\nb.onnx: 1 error\n")
        self.assertIsInstance(error, errors.UnsupportedError)
        self.assertEqual((error.code, error.node, error.hint), (3, "l: (2)/conv", "do this"))
        self.assertIn("LS-E0014", str(error))
        error = errors.error_of(1, "m.onnx: node 4 (Add): error LS-E0007: shapes")
        self.assertEqual((type(error), error.node, error.hint), (errors.ModelError, "4", None))
        error = errors.error_of(3, "m.onnx: error LS-E0014: operator X is not supported (1 node, "
                                   "the first is node 1 'nms')\n  hint: h")
        self.assertEqual((error.node, error.hint), ("nms", "h"))
        error = errors.error_of(2, "lowerset: unknown option '--foo'")
        self.assertEqual((type(error), error.node), (errors.UsageError, None))

    def test_every_exit_code(self):
        kinds = [type(errors.error_of(code, "")) for code in range(1, 10)]
        self.assertEqual(len(set(kinds)), 9)
        for code, kind in enumerate(kinds, 1):
            self.assertTrue(issubclass(kind, errors.LowersetError))
            self.assertIn(f"exit code {code})", kind.__doc__)
        self.assertIs(type(errors.error_of(130, "")), errors.LowersetError)


class Commands(InFolder):
    def test_plan(self):
        plan = commands.plan(self.unet, budget="70%", **QUICK)
        self.assertEqual((plan["feasible"], plan["graph"]), (True, self.unet))
        self.assertLess(plan["arena_bytes"], plan["no_recompute_arena_bytes"])
        self.assertTrue(plan.timeline.rstrip().endswith("</svg>"))
        page = plan._repr_html_()
        self.assertIn("data:image/svg+xml;base64,", page)
        self.assertIn(plan["plan"], page)
        self.assertNotEqual(plan["plan"], commands.plan(self.unet, **QUICK)["plan"])
        narrow = commands.plan(self.mlp, batch=4, precision="bf16", **QUICK)
        self.assertEqual(narrow["precision"], "bf16")

    def test_largest_batch(self):
        report = commands.plan(self.mlp, max_batch=True, budget="1MiB", **QUICK)
        self.assertIsNone(report.timeline)
        self.assertIn("<table>", report._repr_html_())

    def test_no_plan(self):
        with self.assertRaises(errors.BudgetError) as caught:
            commands.plan(self.unet, budget=1, **QUICK)
        error = caught.exception
        self.assertEqual((error.code, error.report["feasible"]), (4, False))
        self.assertGreater(error.report["least_arena_bytes"], 1)
        self.assertIsNotNone(error.node)
        least = int(re.search(r"--budget (\d+)", error.hint)[1])
        self.assertTrue(commands.plan(self.unet, budget=least, **QUICK)["feasible"])

    def test_compile(self):
        def plan_of(**options):
            program = commands.compile(self.mlp, self.path("net"), batch=4, opt=0, **QUICK,
                                       **options)
            return subprocess.run([program, "--version"], check=True, capture_output=True,
                                  text=True).stdout
        self.assertIn("adamw:wd=0.01", plan_of(optimizer="adamw:wd=0.01"))
        self.assertNotEqual(plan_of(clip_norm=1), plan_of())
        library = commands.compile(self.mlp, self.path("two"), batch=4, opt=0, emit="lib")
        self.assertTrue(library.exists())
        self.assertEqual(library.name, "libtwo.so")

    def test_refusals(self):
        with self.assertRaises(errors.ModelError) as caught:
            commands.plan(self.mlp)
        self.assertEqual(caught.exception.hint, "give --dim N=SIZE")
        with self.assertRaises(errors.UsageError):
            commands.plan(self.mlp, batch=4, optimizer="no-such")
        with self.assertRaises(errors.UsageError):
            commands.plan(self.mlp, batch=4, no_such=1)
        with self.assertRaises(errors.ToolError):
            commands.compile(self.mlp, self.path("net"), batch=4, cc="no-such-compiler")
        with self.assertRaises(errors.ModelError):
            commands.inspect(self.path("none.onnx"))
        for call in (commands.plan, commands.check, commands.inspect):
            with self.assertRaises(errors.UsageError):
                call(self.mlp, json=True)

    def test_check(self):
        report = commands.check(self.mlp, batch=4, opt=0, elements=3)
        self.assertTrue(report["passed"])
        self.assertIn("gradients: passed", report._repr_html_())

    def test_inspect(self):
        report = commands.inspect(self.mlp)
        self.assertEqual(report["operators"]["Gemm"], 2)
        self.assertTrue(report["trainable"])
        self.assertFalse(commands.inspect(self.mlp, freeze=["*"])["trainable"])

    def test_sweep(self):
        rows = commands.sweep(self.unet, points=2, from_="50%", strategies=["auto", "chen"],
                              output=self.path("out"), **QUICK)
        self.assertEqual([(row["strategy"], round(row["budget_percent"])) for row in rows],
                         [("auto", 50), ("chen", 50), ("auto", 100), ("chen", 100)])
        self.assertTrue(os.path.exists(self.path("out/index.html")))
        best = [row for row in rows if row["strategy"] == "auto"]
        self.assertLessEqual(best[1]["overhead"], best[0]["overhead"])
        try:
            import matplotlib
            matplotlib.use("Agg")
            self.assertEqual(rows.plot().get_xlabel(), "budget, MiB")
        except ImportError:
            with self.assertRaises(errors.UsageError):
                rows.plot()

    def test_warnings(self):
        said = "m.onnx: node 3 'bn': warning: odd\n  hint: see\nm.onnx: done\nm: warning: two\n"
        self.assertEqual(errors.warnings_of(said), ["m.onnx: node 3 'bn': warning: odd\n  hint: "
                                                    "see", "m: warning: two"])
        self.script("lowerset", f"printf '%b' '{said!r}' >&2; echo text")
        with mock.patch.dict(os.environ, {"LOWERSET": self.path("lowerset")}):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.assertEqual(_program.run(["plan"]), "text\n")
        self.assertEqual([w.category for w in caught], [errors.LowersetWarning] * 2)


class Compilers(InFolder):
    """CC of the program, by what is there."""

    GCC = "%s (Ubuntu 11.4.0-1ubuntu1~22.04) %s\\nCopyright (C) 2021 Free Software Foundation, Inc."
    CLANG = "Ubuntu clang version %s-1ubuntu1"

    def cc(self, *there, zig=None, given=None, says=""):
        for name in there:
            self.script(f"bin/{name}", f"printf '{says}'")
        variables = {"PATH": self.path("bin")}
        if given is not None:
            variables["CC"] = given
        with mock.patch.dict(os.environ, variables, clear=True):
            with mock.patch.object(_program, "_zig", lambda: zig):
                made = _program.environment()
        for name in there:
            os.unlink(self.path(f"bin/{name}"))
        return made.get("CC"), made["PATH"]

    def test_which(self):
        zig_cc = "/z/zig cc -fno-sanitize=undefined"
        self.assertIsNone(self.cc("cc", "gcc", zig="/z/zig")[0])
        self.assertEqual(self.cc(zig="/z/zig", given="my cc")[0], "my cc")
        self.assertEqual(self.cc("gcc", "clang")[0], "gcc")
        self.assertEqual(self.cc("clang", zig="/z/zig")[0], "clang")
        self.assertEqual(self.cc(zig="/z/zig", given="")[0], zig_cc)
        self.assertIsNone(self.cc()[0])
        for says, is_old in ((self.GCC % ("cc", "11.4.0"), True), (self.GCC % ("cc", "12"), False),
                             (self.CLANG % "12.0.1", True), (self.CLANG % "13.0.0", False)):
            self.assertEqual(self.cc("cc", zig="/z/zig", says=says)[0],
                             zig_cc if is_old else None, says)
            self.assertIsNone(self.cc("cc", says=says)[0])

    def test_oldest_are_those_of_the_program(self):
        header = Path(__file__).parents[2] / "codegen/toolchain/compiler_version.h"
        for kind, least in _program._LEAST.items():
            self.assertRegex(header.read_text(encoding="utf-8"),
                             rf"LS_{kind.upper()}_LEAST = {least}\b")

    def test_a_path_with_blanks(self):
        cc, path = self.cc(zig="/my site/zig")
        self.assertEqual((cc.split()[0], path.split(":")[0]), ("zig", "/my site"))


class CommandLine(InFolder):
    def run_module(self, *words, **variables):
        return subprocess.run([sys.executable, "-m", "lowerset", *words], check=False,
                              capture_output=True, text=True, env={**os.environ, **variables})

    def test_is_the_program(self):
        self.assertEqual(self.run_module("--version").stdout, said_by("--version"))
        self.assertEqual(self.run_module("plan", self.mlp).returncode, 1)
        self.assertEqual(self.run_module("no-such").returncode, 2)

    def copied(self):
        """A copy of the package in a folder of its own."""
        package = Path(_program.__file__).parent
        shutil.copytree(package, self.path("site/python/lowerset"),
                        ignore=shutil.ignore_patterns("__pycache__", "bin", "lib"))
        return {"PYTHONPATH": self.path("site/python"), "LOWERSET": ""}

    def test_zig_reaches_the_program(self):
        program = self.script("program", 'echo "$CC"')
        zig = self.script("packages/ziglang/zig", "exit 0")
        self.script("packages/ziglang/__init__.py", "")
        path = f"{Path(_program.__file__).parents[1]}:{self.path('packages')}"
        variables = {"LOWERSET": program, "PYTHONPATH": path, "PATH": self.path("bin"), "CC": ""}
        expected = f"{zig} cc -fno-sanitize=undefined\n"
        self.assertEqual(self.run_module(**variables).stdout, expected)
        words = "from lowerset._program import run; print(run(['plan']), end='')"
        done = subprocess.run([sys.executable, "-c", words], check=True, capture_output=True,
                              text=True, env={**os.environ, **variables})
        self.assertEqual(done.stdout, expected)

    def test_no_program(self):
        # Its own command on the path, a script, is not what it calls: it would never end.
        self.script("bin/lowerset", "exit 9")
        done = self.run_module(**self.copied(), PATH=self.path("bin"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no program `lowerset`", done.stderr)

    def test_where_the_program_is(self):
        there = self.copied()
        program = {place: Path(self.path(place)) for place in
                   ("site/python/lowerset/bin/lowerset", "site/build/lowerset", "bin/lowerset")}
        Path(self.path("site")).joinpath("meson.build").touch()
        for path in program.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROGRAM, path)
        with mock.patch.dict(os.environ, PATH=self.path("bin")):
            self.assertEqual(self.found(there | {"LOWERSET": PROGRAM}), PROGRAM)
            for path in program.values():
                self.assertEqual(self.found(there), str(path))
                path.unlink()

    def found(self, variables):
        words = "from lowerset._program import find_program; print(find_program())"
        return subprocess.run([sys.executable, "-c", words], check=True, capture_output=True,
                              text=True, env={**os.environ, **variables}).stdout.strip()


if __name__ == "__main__":
    unittest.main()
