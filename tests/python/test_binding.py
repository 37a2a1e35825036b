"""The package without torch: a library of a small network by ctypes, arrays of every kind.

    LOWERSET=build/lowerset python3 tests/python/test_binding.py

Exits with 77 if there is no numpy.
"""
import array
import ast
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
sys.path.insert(0, str(PACKAGE))
try:
    import numpy as np
except ImportError:
    print("skipped: python3 has no numpy")
    sys.exit(77)

import lowerset

FAST = {"opt": 0, "plan_effort": 1, "threads": 2}
FOLDER = tempfile.TemporaryDirectory()


def network(name, *options):
    path = os.path.join(FOLDER.name, f"{name}{abs(hash(options))}.onnx")
    if not os.path.exists(path):
        subprocess.run([os.environ["LOWERSET"], "model", name, *options, "-o", path], check=True)
    return path


def mlp(dropout=0):
    return network("mlp", "--batch=0", "--width=16", "--size=6", f"--dropout={dropout}")


def trainer(batch=8, loss="ce", optimizer="sgd", model=None, **options):
    return lowerset.trainer(model or mlp(), loss=loss, optimizer=optimizer, batch=batch,
                            **{**FAST, **options})


def data(t, count=8, seed=0):
    """Arrays of the inputs and the target."""
    draw = np.random.default_rng(seed)
    row = t.net.inputs[0].shape[1:]
    return (draw.random((count, *row), np.float32), np.arange(count) * 3 % 5)


def cross_entropy(scores, label):
    scores = scores.astype(np.float64)
    top = scores.max(1, keepdims=True)
    log = scores - top - np.log(np.exp(scores - top).sum(1, keepdims=True))
    return -log[np.arange(len(label)), label].mean()


def bytes_of(checkpoint):
    """Names and bytes of the tensors of a checkpoint."""
    raw = pathlib.Path(checkpoint).read_bytes()
    size, = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8:8 + size])
    head.pop("__metadata__", None)
    return {k: raw[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]
            for k, t in head.items()}


class Import(unittest.TestCase):
    def test_loads_nothing(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import lowerset; "
                "print('numpy' in sys.modules, 'torch' in sys.modules, 'ctypes' in sys.modules)")
        said = subprocess.run([sys.executable, "-c", code, str(PACKAGE)], check=True, text=True,
                              capture_output=True).stdout
        self.assertEqual(said.split(), ["False"] * 3)

    def test_a_file_is_trained_without_torch(self):
        with trainer() as t:
            t.step(*data(t))
        self.assertNotIn("torch", sys.modules)

    def test_takes_no_time(self):
        """The least of five processes: others may be slowed down by other work."""
        code = ("import sys, time; sys.path.insert(0, sys.argv[1]); t = time.perf_counter(); "
                "import lowerset; print(1e3 * (time.perf_counter() - t))")
        took = min(float(subprocess.run([sys.executable, "-c", code, str(PACKAGE)], check=True,
                                        text=True, capture_output=True).stdout) for _ in range(5))
        print(f"import lowerset: {took:.1f} ms")
        self.assertLess(took, 50)

    def test_names(self):
        for name in lowerset.__all__:
            self.assertTrue(hasattr(lowerset, name), name)
        tree = ast.parse((PACKAGE / "lowerset" / "__init__.py").read_text())
        typed = {alias.name: node.module for block in tree.body if isinstance(block, ast.If)
                 for node in block.body for alias in node.names}
        self.assertEqual(typed, lowerset._HOMES)
        self.assertTrue((PACKAGE / "lowerset" / "py.typed").exists())
        self.assertTrue(callable(lowerset.trainer))
        with self.assertRaises(AttributeError):
            lowerset.nothing        # noqa: B018


class Step(unittest.TestCase):
    def test_is_descent_along_the_gradient(self):
        with trainer() as t:
            x, y = data(t)
            before = t.state_dict()
            loss, gradients = t.net.gradients((x, y))
            self.assertEqual(t.step(x, y, lr=0.5), loss)
            after = t.state_dict()
            self.assertEqual(set(gradients), set(before))
            for name, g in gradients.items():
                self.assertGreater(np.abs(g).max(), 0, name)
                np.testing.assert_allclose(after[name], before[name] - 0.5 * g, rtol=1e-5,
                                           atol=1e-7)

    def test_losses_are_those_of_numpy(self):
        with trainer() as t:
            for count in (1, 5, 8):
                x, y = data(t, count, count)
                want = cross_entropy(t.predict(x), y)
                self.assertAlmostEqual(t.evaluate(x, y), want, 5)
                self.assertAlmostEqual(t.step(x, y), want, 5)
            x, y = data(t, 21)          # more than a batch
            self.assertEqual(t.predict(x).shape[0], 21)
            self.assertAlmostEqual(t.evaluate((x, y)), cross_entropy(t.predict(x), y), 5)
            parts = [(x[:8], y[:8]), (x[8:16], y[8:16]), (x[16:], y[16:])]
            self.assertAlmostEqual(t.evaluate(parts), t.evaluate((x, y)), 5)
            self.assertEqual(t.evaluate([x, y]), t.evaluate((x, y)))

    def test_rates(self):
        with trainer(optimizer="adamw") as t:
            self.assertEqual(t.lr, 1e-3)
        with trainer(optimizer="adamw:wd=0,lr=0.25") as t:
            self.assertEqual(t.lr, 0.25)
        with trainer(lr=0.125) as t, trainer() as other:
            x, y = data(t)
            self.assertEqual((t.lr, other.lr), (0.125, 0.01))
            t.step(x, y)
            other.step(x, y, lr=0.125)
            for name, value in t.state_dict().items():
                np.testing.assert_array_equal(value, other.state_dict()[name])

    def test_a_rate_is_finite(self):
        with trainer() as t:
            before = t.state_dict()
            for rate in (-0.1, float("nan"), float("inf")):
                with self.assertRaisesRegex(lowerset.UsageError, "the rate is"):
                    t.step(*data(t), lr=rate)
            for name, value in t.state_dict().items():
                np.testing.assert_array_equal(value, before[name])

    def test_two_nets_share_nothing(self):
        with trainer() as a, trainer(optimizer="adamw", batch=4) as b, trainer() as alone:
            x, y = data(a)
            losses = []
            for _ in range(4):
                losses.append(a.step(x, y))
                b.step(x[:4], y[:4])
            self.assertEqual(losses, [alone.step(x, y) for _ in range(4)])

    def test_dropout_follows_the_seed(self):
        losses = []
        for seed in (1, 1, 2):
            with trainer(model=mlp(0.5), seed=seed) as t:
                losses.append(t.step(*data(t)))
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])

    def test_threads_take_turns(self):
        """Calls of several threads, each with its own data, do not get into each other's way."""
        with trainer(optimizer="none") as t:
            batches = [data(t, 8, seed) for seed in range(3)]
            want = [t.step(*b) for b in batches]
            found = [set() for _ in batches]

            def run(k):
                for _ in range(300):
                    found[k].add(t.step(*batches[k]))
            threads = [threading.Thread(target=run, args=(k,)) for k in range(3)]
            interval = sys.getswitchinterval()
            sys.setswitchinterval(1e-6)
            try:
                for one in threads:
                    one.start()
                for one in threads:
                    one.join()
            finally:
                sys.setswitchinterval(interval)
            self.assertEqual(found, [{loss} for loss in want])
            self.assertEqual(t.updates, 903)

    def test_a_fork_is_told(self):
        with trainer() as t:
            x, y = data(t)
            t.step(x, y)
            child = os.fork()
            if child == 0:
                try:
                    t.step(x, y)
                except lowerset.UsageError as e:
                    os._exit(42 if "fork" in str(e) else 1)
                os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 42)
            t.step(x, y)

    def test_a_closed_trainer_says_so(self):
        t = trainer()
        x, y = data(t)
        t.close()
        t.close()
        for call in (lambda: t.step(x, y), lambda: t.predict(x), lambda: t.save("no")):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()


class Arrays(unittest.TestCase):
    """Each form of the same numbers gives the same bits, or an error that names the input."""

    @classmethod
    def setUpClass(cls):
        cls.t = trainer(optimizer="none")
        cls.x, cls.y = data(cls.t)
        cls.want = cls.t.step(cls.x, cls.y)

    @classmethod
    def tearDownClass(cls):
        cls.t.close()

    def same(self, x, y):
        self.assertEqual(self.t.step(x, y), self.want)

    def test_types(self):
        self.same(self.x.astype(np.float64), self.y)
        self.same(self.x, self.y.astype(np.int32))
        self.same(self.x, self.y.astype(np.uint8))
        self.same(self.x.astype(">f4"), self.y.astype(">i8"))

    def test_order_in_memory(self):
        wide = np.empty((8, 2, *self.x.shape[1:]), np.float32)
        wide[:, 0] = self.x
        wide[:, 1] = np.nan
        self.same(wide[:, 0], self.y)
        self.same(np.asfortranarray(self.x), self.y)
        self.same(self.x[::-1][::-1], self.y[::-1][::-1])
        backwards = self.t.step(self.x[::-1], self.y)
        self.assertNotEqual(backwards, self.want)
        self.assertEqual(backwards, self.t.step(self.x[::-1].copy(), self.y))

    def test_other_objects(self):
        class Foreign:
            def __init__(self, a):
                self.a = a

            def __dlpack__(self, **how):
                return self.a.__dlpack__()

            def __dlpack_device__(self):
                return self.a.__dlpack_device__()
        self.same(Foreign(self.x), Foreign(self.y))
        self.same(memoryview(self.x), array.array("q", self.y.tolist()))
        self.same(self.x.tolist(), self.y.tolist())

    def test_nothing_is_copied_that_fits(self):
        from lowerset._arrays import as_input
        taken = as_input(self.x, "x", np.dtype("f4"), self.x.shape[1:])
        self.assertTrue(np.shares_memory(taken, self.x))
        self.assertFalse(np.shares_memory(as_input(self.x.T, "x", np.dtype("f4"),
                                                   self.x.T.shape[1:]), self.x))

    def test_by_name_or_in_a_tuple(self):
        name = self.t.inputs[0]
        self.assertEqual(self.t.targets, ("label",))
        self.same({name: self.x, "label": self.y}, None)
        self.same({name: self.x, "labels": self.y, "index": 3}, None)
        self.same({name: self.x}, self.y)
        self.same((self.x,), self.y)
        self.same((self.x, self.y), None)

    def refused(self, kind, words, x, y=None):
        with self.assertRaisesRegex(kind, words):
            self.t.step(x, self.y if y is None else y)
        self.same(self.x, self.y)       # and nothing is broken

    def test_wrong_shapes(self):
        row = list(self.x.shape[1:])
        wanted = ", ".join(["samples", *map(str, row)])
        self.refused(ValueError, rf"takes \[{wanted}\], and the array is", self.x[:, :-1])
        self.refused(ValueError, r"x\[None\]", self.x[0])
        self.refused(ValueError, "'label' takes", self.x, self.y[:, None])
        self.refused(ValueError, "'label' has 7 samples, and .* has 8", self.x, self.y[:7])
        self.refused(ValueError, "takes", np.float32(3))
        self.refused(ValueError, "no samples", self.x[:0], self.y[:0])
        self.refused(ValueError, "1 to 8 samples, and .* has 9", np.concatenate(
            [self.x, self.x[:1]]), np.concatenate([self.y, self.y[:1]]))

    def test_wrong_kinds(self):
        self.refused(TypeError, "'label' takes integers", self.x, self.y.astype(np.float32))
        self.refused(TypeError, "takes real numbers", self.x.astype(np.complex64))
        self.refused(TypeError, "takes real numbers", np.full(self.x.shape, "a"))
        self.refused(TypeError, "no array", [object()])
        self.refused(TypeError, "no array", [[1.0], [1.0, 2.0]])
        self.refused(ValueError, "larger numbers", self.x,
                     np.full(8, 2**63, np.uint64))
        with self.assertRaisesRegex(ValueError, "no array for target 'label'"):
            self.t.step(self.x)
        with self.assertRaisesRegex(ValueError, "2 targets for label"):
            self.t.step(self.x, (self.y, self.y))
        with self.assertRaisesRegex(ValueError, "no array for input 'x'"):
            self.t.step(None, self.y)

    def test_wrong_values(self):
        with self.assertRaises(lowerset.DataError) as e:
            self.t.step(self.x, self.y + 1000)
        self.assertEqual(e.exception.code, 8)
        self.assertIn("label", str(e.exception))
        with self.assertRaises(lowerset.DivergedError) as e:
            self.t.step(np.full_like(self.x, np.nan), self.y)
        self.assertEqual(e.exception.code, 7)


class Codes(unittest.TestCase):
    def test_moments_in_codes_are_bytes(self):
        model = network("mlp", "--batch=0", "--width=64", "--size=8")
        with trainer(model=model, optimizer="adam8") as t, \
                trainer(model=model, optimizer="adam8") as other:
            x, y = data(t)
            t.step(x, y)
            for s in t.net.state:
                other.net.write(s.name, t.net.read(s.name))
            codes = t.net.read("fc1.weight.m")
            self.assertEqual((codes.dtype, codes.shape), (np.uint8, (64 * 64,)))
            self.assertGreater(len(set(codes.tolist())), 100)
            for s in t.net.state:
                self.assertTrue(np.array_equal(t.net.read(s.name), other.net.read(s.name)), s.name)


class Halves(unittest.TestCase):
    def test_moments_in_bfloat16_are_bits(self):
        with trainer(optimizer="adamw:bf16") as t:
            x, y = data(t)
            t.step(x, y)
            name = next(s.name for s in t.net.state if s.role == "moment")
            bits = t.net.read(name)
            self.assertEqual(bits.dtype, np.uint16)
            t.net.write(name, bits)
            self.assertTrue(np.array_equal(t.net.read(name), bits))
            self.assertGreater(np.unique(bits).size, 3)


class Loops(unittest.TestCase):
    def test_fit_is_its_steps(self):
        with trainer(optimizer="adamw") as t, trainer(optimizer="adamw") as other:
            x, y = data(t, 21)
            loader = [(x[k:k + 8], y[k:k + 8]) for k in (0, 8, 16)]     # the last one is small
            seen = []
            rows = t.fit(loader, epochs=2, val=(x, y), lr=lambda n: 0.01 / (n + 1),
                         progress=seen.append)
            losses = [other.step(*b, lr=0.01 / (k + 1)) for k, b in enumerate(loader + loader)]
            self.assertEqual([s["loss"] for s in seen], losses)
            self.assertEqual([r["updates"] for r in rows], [3, 6])
            for row, three in zip(rows, (losses[:3], losses[3:])):
                self.assertAlmostEqual(row["loss"], np.dot(three, (8, 8, 5)) / 21, 12)
            self.assertEqual(rows[1]["val_loss"], other.evaluate((x, y)))

    def test_loaders_of_dicts(self):
        with trainer() as t:
            x, y = data(t)
            self.assertEqual(t.fit([{t.inputs[0]: x, "label": y}])[0]["updates"], 1)

    def test_an_iterator_ends(self):
        with trainer() as t:
            x, y = data(t)
            with self.assertRaisesRegex(ValueError, "val is an iterator"):
                t.fit([(x, y)], epochs=2, val=iter([(x, y)]))
            self.assertEqual(t.updates, 0)
            t.fit(iter([(x, y)]))
            with self.assertRaisesRegex(ValueError, "iterator"):
                t.fit(iter([(x, y)]), epochs=2)
            with self.assertRaisesRegex(ValueError, "no batches"):
                t.fit([])

    def test_batches_make_up_an_update(self):
        with trainer(batch=4, accumulate=2) as t, trainer(batch=8) as whole:
            self.assertEqual((t.batch, t.net.batch_least), (8, 5))
            x, y = data(t, 16)
            rows = t.fit([(x[k:k + 4], y[k:k + 4]) for k in (0, 4, 8, 12)])
            self.assertEqual(rows[0]["updates"], 2)
            whole.fit([(x[:8], y[:8]), (x[8:], y[8:])])
            for name, value in t.state_dict().items():
                np.testing.assert_allclose(value, whole.state_dict()[name], rtol=1e-5, atol=1e-7)
            with self.assertRaisesRegex(ValueError, "ends with 4 samples"):
                t.fit([(x[:4], y[:4])])
            with self.assertRaisesRegex(ValueError, "do not make up"):
                t.fit([(x[:3], y[:3])] * 4)


    def test_a_batch_is_as_large_as_the_example(self):
        with trainer() as t:
            x, _ = data(t, 5)
        for example in (x, (x,), {"x": x}):
            with lowerset.trainer(mlp(), example, **FAST) as t:
                self.assertEqual(t.batch, 5)


class Weights(unittest.TestCase):
    def test_a_run_goes_on(self):
        path = os.path.join(FOLDER.name, "half.safetensors")
        model = mlp(0.5)
        with trainer(model=model, optimizer="adamw", seed=3) as t:
            x, y = data(t)
            for _ in range(2):
                t.step(x, y)
            t.save(path)
            want = [t.step(x, y) for _ in range(3)]
        with trainer(model=model, optimizer="adamw", seed=4) as t:
            t.resume(path)
            self.assertEqual(t.updates, 2)
            self.assertEqual([t.step(x, y) for _ in range(3)], want)
            t.net.begin(3)
            self.assertEqual(t.updates, 0)
        with trainer() as t, self.assertRaises(lowerset.LowersetError) as e:
            t.resume(os.path.join(FOLDER.name, "absent"))
        self.assertEqual(e.exception.code, 8)

    def test_a_program_goes_on(self):
        """Updates here and by the program that compile makes leave the same bytes."""
        program, saved = (os.path.join(FOLDER.name, n) for n in ("program", "saved"))
        here = os.path.join(FOLDER.name, "here.safetensors")
        subprocess.run([os.environ["LOWERSET"], "compile", mlp(), "-q", "-O", "0", "--plan-effort",
                        "1", "--batch", "8", "--loss", "ce", "--optimizer", "adamw", "-o",
                        program], check=True)
        with trainer(optimizer="adamw") as t:
            x, y = data(t)
            np.save(os.path.join(FOLDER.name, "x.npy"), x)
            np.save(os.path.join(FOLDER.name, "label.npy"), y)
            for _ in range(3):
                t.step(x, y)
            t.save(here)
            files = ",".join(f"{n}={FOLDER.name}/{f}.npy"
                             for n, f in ((t.inputs[0], "x"), ("label", "label")))
        subprocess.run([program, "--data", files, "--steps", "3", "--epochs", "9", "--no-shuffle",
                        "--threads", "1", "--progress", "none", "--save", saved], check=True,
                       stdout=subprocess.DEVNULL)
        there, = pathlib.Path(saved).glob("*0003.safetensors")
        self.assertEqual(bytes_of(there), bytes_of(here))

    def test_read_and_write(self):
        model = network("cnn", "--batch=0", "--size=8", "--width=4")
        with trainer(model=model, batch=4) as t, trainer(model=model, batch=4) as other:
            x, y = data(t, 4)
            first = t.predict(x)
            t.step(x, y, lr=0.1)
            self.assertGreater(np.abs(t.predict(x) - first).max(), 0)
            other.load_from(t.state_dict())
            np.testing.assert_array_equal(other.predict(x), t.predict(x))
            name = t.net.state[0].name
            with self.assertRaisesRegex(ValueError, "and the array is"):
                other.net.write(name, np.zeros(3))
            with self.assertRaises(KeyError):
                other.load_from({name: t.net.read(name)})

    def test_averages_are_what_is_evaluated(self):
        with trainer(ema=0.5) as t, trainer() as plain:
            x, y = data(t)
            for _ in range(3):
                t.step(x, y, lr=0.5)
                plain.step(x, y, lr=0.5)
            name = next(iter(t.state_dict()))
            self.assertGreater(np.abs(t.state_dict()[name] - plain.state_dict()[name]).max(), 0)
            plain.load_from(t.state_dict())
            np.testing.assert_array_equal(plain.predict(x), t.predict(x))


class Options(unittest.TestCase):
    def test_words(self):
        from lowerset._trainer import _option_words
        self.assertEqual(_option_words({"clip_norm": 1, "opt": 2, "freeze": ["a", "b"],
                                        "march": "native", "ema": None}),
                         (["--clip-norm=1", "--freeze=a", "--freeze=b"],
                          ["--opt=2", "-march=native"]))

    def test_they_reach_the_program(self):
        with trainer(clip_norm=1e-3) as t:
            x, y = data(t)
            before = t.state_dict()
            t.step(x, y, lr=1)
            moved = sum(((v - before[k]).astype(np.float64)**2).sum()
                        for k, v in t.state_dict().items())
            self.assertAlmostEqual(moved**0.5, 1e-3, 6)
        with trainer(budget="min") as t, trainer() as free:
            self.assertIsInstance(t.plan, lowerset.Plan)
            self.assertLessEqual(t.plan["arena_bytes"], free.plan["arena_bytes"])
            self.assertEqual(t.plan["arena_bytes"], t.plan["least_arena_bytes"])

    def test_refusals(self):
        for code, kind, options in (
                (2, lowerset.UsageError, {"nonsense": 3}),
                (4, lowerset.BudgetError, {"budget": 1000}),
                (2, lowerset.UsageError, {"loss": "cee"}),
                (2, lowerset.UsageError, {"freeze": "no.such.name"})):
            with self.assertRaises(kind) as e:
                trainer(**options)
            self.assertEqual(e.exception.code, code, options)
            self.assertTrue(str(e.exception))
        with self.assertRaisesRegex(lowerset.UsageError, "not for a trainer") as e:
            trainer(schedule="cosine")
        self.assertIn("t.fit", e.exception.hint)
        for option in ({"dry_run": True}, {"json": True}, {"dump": "fuse"}):
            with self.assertRaisesRegex(lowerset.UsageError, "not for a trainer"):
                trainer(**option)
        with self.assertRaisesRegex(TypeError, "exporter='dynamo' is for a module"):
            trainer(exporter="dynamo")
        with self.assertRaisesRegex(TypeError, "the model is a file"):
            trainer(loss=lambda a, b: a)

    def test_private_training(self):
        with trainer(dp="clip=1,noise=1,delta=1e-5") as t:
            x, y = data(t, 40)
            t.step(x, y)
            epsilon, delta = t.net.spent()
            self.assertTrue(0 < epsilon < 100 and delta == 1e-5)
            with self.assertRaisesRegex(ValueError, "private"):
                t.fit([(x, y)])

    def test_no_library(self):
        path = os.path.join(FOLDER.name, "no.so")
        pathlib.Path(path).write_text("nothing")
        for made in (path, os.path.join(FOLDER.name, "absent.so")):
            with self.assertRaisesRegex(lowerset.LowersetError, "cannot be loaded"):
                lowerset.Net(made)


if __name__ == "__main__":
    if "LOWERSET" not in os.environ:
        sys.exit("LOWERSET is not set: the path of the program")
    unittest.main()
