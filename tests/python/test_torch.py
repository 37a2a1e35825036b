"""The package beside torch: the same modules, the same data, the same numbers.

    PYTHON=venv/bin/python sh tests/python/run.sh build/lowerset tests/python/test_torch.py torch

torch with onnx and onnxscript; modules of torchvision and transformers are left out where these
are missing. LS_MODULES=vit,gru runs some of the modules alone, LS_WHOLE=1 all of them by the
TorchScript exporter, too.
"""
import copy
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "python"), str(HERE)]

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import lowerset
import zoo

torch.set_num_threads(1)
FAST = {"opt": 0, "plan_effort": 1, "threads": 2}
CLOSE = 1e-4


def off(found, want) -> float:
    """The largest difference, in parts of the tensor's size; of a hundredth at least, as small
    tensors such as biases are sums of larger numbers."""
    found, want = (v.detach().double() for v in (found, want))
    return ((found - want).abs().max() / (want.abs().max() + 1e-2)).item()


class Compared(unittest.TestCase):
    def assert_close(self, found, want, what, limit=CLOSE):
        self.assertLess(abs(found - want), limit * max(abs(want), 0.1), what)

    def assert_state(self, t, module, limit=CLOSE):
        """All that the trainer has is as in the module, and nothing is missing."""
        found, want = t.state_dict(), module.state_dict()
        for name, value in want.items():
            if name.endswith("num_batches_tracked") or not value.is_floating_point():
                continue
            self.assertIn(name, found)
            self.assertLess(off(found[name], value), limit, name)

    def assert_steps(self, t, module, x, y, optimizer, steps, loss=F.cross_entropy, what="loss",
                     schedule=None):
        """Steps of the trainer and of torch over the same batch have the same losses."""
        for _ in range(steps):
            optimizer.zero_grad()
            want = loss(module(**x) if isinstance(x, dict) else module(x), y)
            want.backward()
            self.assert_close(t.step(x, y), want.item(), what)
            optimizer.step()
            if schedule is not None:
                schedule.step()     # the trainer reads the rate there


def optimizer_of(kind, module, **settings):
    return kind([p for p in module.parameters() if p.requires_grad], **settings)


class Modules(Compared):
    """20 steps of SGD and 5 of AdamW are torch's; then evaluation and load_into."""

    def train(self, case, optimizer, steps, **options):
        before = copy.deepcopy(case.module)
        random = torch.random.get_rng_state()
        t = lowerset.trainer(case.module, case.inputs, loss=case.loss, optimizer=optimizer,
                             example_target=case.target, **{**FAST, **case.options, **options})
        self.addCleanup(t.close)
        self.assertTrue(torch.equal(random, torch.random.get_rng_state()))
        self.assertEqual([m.training for m in before.modules()],
                         [m.training for m in case.module.modules()])
        for name, value in before.state_dict().items():
            self.assertTrue(torch.equal(value, case.module.state_dict()[name]), name)
        for k in range(steps):
            found = t.step(case.inputs, case.target)
            optimizer.zero_grad()
            want = case.torch_loss()
            want.backward()
            optimizer.step()
            self.assert_close(found, want.item(), f"loss of step {k}")
        self.assert_state(t, case.module)
        return t, before

    def loads(self, t, case, before):
        """What is written into a copy evaluates as the trained module does."""
        t.load_into(before)
        for name, value in before.state_dict().items():
            if name.endswith("num_batches_tracked"):
                self.assertEqual(value, case.module.state_dict()[name], name)
        shared = {k: id(v) for k, v in before.state_dict(keep_vars=True).items()}
        self.assertEqual(len(set(shared.values())),
                         len({id(v) for v in case.module.state_dict(keep_vars=True).values()}))
        for m in (before, case.module):
            m.eval()
        with torch.no_grad():
            want = case.scores()
            trained, case.module = case.module, before
            self.assertLess(off(case.scores(), want), CLOSE)
            case.module = trained
            found = t.predict(case.inputs)
            found = found if torch.is_tensor(found) else found["logits"]
            found = found.movedim(-1, 1) if found.shape != want.shape else found
            self.assertLess(off(found, want), CLOSE)
            self.assert_close(t.evaluate(case.inputs, case.target), case.torch_loss().item(),
                              "evaluation")

    def trained(self, name, **options):
        try:
            case = zoo.case(name)
        except ImportError as e:
            self.skipTest(str(e))
        optimizer = optimizer_of(torch.optim.SGD, case.module, lr=case.lr)
        self.loads(*self.both(case, optimizer, **options))
        case = zoo.case(name)
        if case.adam_lr == 0:
            return
        optimizer = optimizer_of(torch.optim.AdamW, case.module, lr=case.adam_lr,
                                 weight_decay=0.1, eps=1e-3)
        self.train(case, optimizer, 5, **options)

    def both(self, case, optimizer, **options):
        t, before = self.train(case, optimizer, case.steps, **options)
        return t, case, before


def _add_modules():
    wanted = os.environ.get("LS_MODULES", "").split(",")
    for name in zoo.ZOO:
        if wanted == [""] or name in wanted:
            setattr(Modules, f"test_{name}", lambda self, name=name: self.trained(name))
    some = ("unet", "one_norm_in_eval", "mlp_partly_frozen", "gpt2_tied_head", "lstm")
    for name in zoo.ZOO if os.environ.get("LS_WHOLE") else some:
        if wanted == [""] or name in wanted:
            setattr(Modules, f"test_{name}_by_torchscript",
                    lambda self, name=name: self.trained(name, exporter="torchscript"))


_add_modules()


def small(classes=4, **kind):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, classes))


class Losses(Compared):
    def compared(self, loss, target, module=None, x=None, **options):
        module = module or small()
        x = torch.randn(8, 6) if x is None else x
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        with lowerset.trainer(module, x, loss=loss, optimizer=optimizer, example_target=target,
                              **FAST, **options) as t:
            self.assert_steps(t, module, x, target, optimizer, 5, loss, str(loss))
            self.assert_state(t, module)
            # a last batch that is smaller
            self.assert_steps(t, module, x[:3], target[:3], optimizer, 1, loss,
                              f"{loss}, a short batch")
            self.assert_state(t, module)

    def test_of_classes(self):
        y = torch.tensor([0, 1, 2, 3, -100, 2, 1, 1])
        self.compared(nn.CrossEntropyLoss(), y)
        self.compared(nn.CrossEntropyLoss(ignore_index=2, label_smoothing=0.2), y.clamp(0))
        self.compared(nn.CrossEntropyLoss(weight=torch.tensor([1., 2, 0.5, 3])), y)
        module = nn.Sequential(small(), nn.LogSoftmax(1))
        self.compared(nn.NLLLoss(ignore_index=1), y.clamp(0), module)

    def test_of_numbers(self):
        y = torch.randn(8, 4)
        for loss in (nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(beta=0.5), nn.HuberLoss(delta=2.5)):
            self.compared(loss, y)
        self.compared(nn.BCEWithLogitsLoss(), y.sigmoid())
        module = nn.Sequential(small(), nn.LogSoftmax(1))
        self.compared(nn.KLDivLoss(reduction="batchmean"), y.softmax(1), module)

    def test_a_function_is_exported(self):
        def loss(output, target):
            return ((output - target).abs() ** 3).mean() + 0.1 * output.square().mean()
        y = torch.randn(8, 4)
        module, x = small(), torch.randn(8, 6)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        with lowerset.trainer(module, x, loss=loss, optimizer=optimizer, example_target=y,
                              **FAST) as t:
            self.assert_steps(t, module, x, y, optimizer, 5, loss, "a function")
            self.assert_state(t, module)
            self.assertLess(off(t.predict(x), module(x)), CLOSE)
            self.assert_close(t.evaluate(x, y), loss(module(x), y).item(), "evaluation")
            for call in (t.step, t.evaluate):   # a mean over a part of the batch cannot be told
                with self.assertRaisesRegex(lowerset.DataError, "computes its own loss"):
                    call(x[:3], y[:3])
        module = small()

        def known(output, target):
            return F.cross_entropy(output, target)
        y = torch.randint(0, 4, (8,))
        with lowerset.trainer(module, x, loss=known, example_target=y, **FAST) as t:
            for n in (3, 8):
                self.assert_close(t.evaluate(x[:n], y[:n]), known(module(x[:n]), y[:n]).item(),
                                  "evaluation")
            self.assert_close(t.step(x[:3], y[:3]), known(module(x[:3]), y[:3]).item(), "short")
        module, y = small(), torch.randn(8, 4)
        with self.assertRaisesRegex(ValueError, "example_target"):
            lowerset.trainer(module, x, loss=loss, **FAST)

    def test_refusals(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        for words, loss in (("reduction='sum'", nn.CrossEntropyLoss(reduction="sum")),
                            ("pos_weight|weights", nn.BCEWithLogitsLoss(
                                pos_weight=torch.tensor(2.))),
                            ("batchmean", nn.KLDivLoss()),
                            ("none of the losses", nn.PoissonNLLLoss())):
            with self.assertRaisesRegex(ValueError, words):
                lowerset.trainer(small(), x, loss=loss, example_target=y, **FAST)


class Optimizers(Compared):
    def test_are_torchs(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        for kind, settings in (
                (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
                (torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
                (torch.optim.Adam, {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1}),
                (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.3,
                                    "decoupled_weight_decay": True}),
                (torch.optim.AdamW, {"lr": 0.01, "eps": 1e-4, "weight_decay": 0.3}),
                (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
                (torch.optim.RMSprop, {"lr": 0.01, "alpha": 0.9, "weight_decay": 0.1}),
                (torch.optim.Adagrad, {"lr": 0.05, "lr_decay": 0.1,
                                       "initial_accumulator_value": 0.2}),
                (torch.optim.NAdam, {"lr": 0.01, "weight_decay": 0.1, "momentum_decay": 0.05}),
                (torch.optim.RAdam, {"lr": 0.01, "weight_decay": 0.1,
                                     "decoupled_weight_decay": True})):
            with self.subTest(kind=kind.__name__, **settings):
                module = small()
                optimizer = kind(module.parameters(), **settings)
                schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
                with lowerset.trainer(module, x, optimizer=optimizer, **FAST) as t:
                    self.assert_steps(t, module, x, y, optimizer, 10, schedule=schedule)
                    self.assert_state(t, module)

    def test_refusals(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        module = small()
        p = list(module.parameters())
        used = torch.optim.AdamW(p)
        F.cross_entropy(module(x), y).backward()
        used.step()
        groups = [{"params": p[:2], "lr": 0.1}, {"params": p[2:], "lr": 0.2}]
        for words, optimizer in (
                ("differ in lr", torch.optim.SGD(groups, lr=0.1)),
                ("differ in weight_decay", torch.optim.SGD(
                    [{"params": p[:2], "weight_decay": 0.1},
                     {"params": p[2:], "weight_decay": 0.2}], lr=0.1)),
                ("maximize", torch.optim.SGD(p, lr=0.1, maximize=True)),
                ("dampening", torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5)),
                ("amsgrad", torch.optim.Adam(p, amsgrad=True)),
                ("none of the optimizers", torch.optim.Rprop(p)),
                ("made steps already", used)):
            with self.assertRaisesRegex(ValueError, words):
                lowerset.trainer(module, x, optimizer=optimizer, **FAST)

    def test_groups_without_weight_decay(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        for kind, at in ((torch.optim.AdamW, 0), (torch.optim.SGD, 1)):
            module = small()
            p = dict(module.named_parameters())
            plain = [p.pop("0.weight"), p.pop("1.bias")]
            groups = [{"params": plain, "weight_decay": 0.0},
                      {"params": list(p.values()), "weight_decay": 0.3}]
            optimizer = kind(groups if at else groups[::-1], lr=0.05)
            with lowerset.trainer(module, x, optimizer=optimizer, **FAST) as t:
                self.assert_steps(t, module, x, y, optimizer, 10)
                self.assert_state(t, module)

    def test_what_the_optimizer_lacks_stays(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        module = small()
        optimizer = torch.optim.SGD(module[3].parameters(), lr=0.1)
        with lowerset.trainer(module, x, optimizer=optimizer, **FAST) as t:
            t.step(x, y)
            optimizer.zero_grad()
            F.cross_entropy(module(x), y).backward()
            optimizer.step()
            self.assert_state(t, module)


class Draws(nn.Module):
    """Attention whose own dropout is all that draws."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 12)

    def forward(self, x):
        h = self.linear(x).unflatten(-1, (2, 6)).transpose(1, 2)
        h = F.scaled_dot_product_attention(h, h, h, dropout_p=0.9 if self.training else 0.0)
        return h.transpose(1, 2).flatten(2).mean(1)


class Unused(nn.Module):
    """Parameters that forward() does not read, one that is read twice, a table that is none."""

    def __init__(self):
        super().__init__()
        self.first, self.idle = nn.Linear(6, 6), nn.Linear(6, 6)
        self.again = self.first
        self.register_buffer("table", torch.randn(6))
        self.register_buffer("hidden", torch.randn(6), persistent=False)

    def forward(self, x, scale=None, *, shift=0.0):
        return self.again(torch.tanh(self.first(x) + self.table) * self.hidden) + shift


class Fixed(nn.Module):
    """A network for eight samples, and no other number."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 4)

    def forward(self, x):
        return self.linear(x).reshape(8, 2, 2).reshape(8, 4)


class Counting(nn.Module):
    """A buffer that forward() binds anew, and one that it changes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 4)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        y = self.linear(x)
        self.seen = self.seen + 1
        self.total.add_(y.detach().sum(0))
        return y


class Exports(Compared):
    def train(self, module, x, y, steps=4, loss=F.cross_entropy, **options):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        t = lowerset.trainer(module, x, optimizer=optimizer, **{**FAST, **options})
        self.addCleanup(t.close)
        self.assert_steps(t, module, x, y, optimizer, steps, loss)
        return t

    def test_dropout_of_attention_draws(self):
        losses = set()
        x, y = torch.randn(4, 5, 6), torch.randint(0, 6, (4,))
        module = Draws()
        for seed in (1, 2):
            with lowerset.trainer(module, x, seed=seed, **FAST) as t:
                losses.add(t.step(x, y))
        self.assertEqual(len(losses), 2)
        self.train(module.eval(), x, y)

    def test_shared_idle_and_constant(self):
        for exporter in ("dynamo", "torchscript"):
            torch.manual_seed(1)
            module = Unused()
            x, y = torch.randn(8, 6), torch.randint(0, 6, (8,))
            t = self.train(module, x, y, exporter=exporter)
            state = t.state_dict()
            self.assertEqual({k for k in state if "table" not in k},
                             {f"{m}.{p}" for m in ("first", "again") for p in ("weight", "bias")})
            for name, value in state.items():
                self.assertLess(off(value, module.state_dict()[name]), CLOSE, name)

    def test_buffers_that_forward_changes(self):
        for exporter in ("dynamo", "torchscript"):
            module, x, y = Counting(), torch.randn(8, 6), torch.randint(0, 4, (8,))
            seen = module.seen
            with lowerset.trainer(module, x, exporter=exporter, **FAST) as t:
                self.assertIs(module.seen, seen)
                self.assertEqual((seen.item(), module.total.abs().max().item()), (0, 0))
                self.assert_close(t.step(x, y), F.cross_entropy(module(x), y).item(), "loss")

    def test_a_parameter_that_is_lost_is_noticed(self):
        from lowerset import _export
        module, x = small(), torch.randn(8, 6)
        names = dict.fromkeys(module.state_dict())
        _export._must_have_all(module, {"input": x}, names)
        del names["1.bias"]
        with self.assertRaisesRegex(lowerset.ModelError, "'1.bias' of the module is not in"):
            _export._must_have_all(module, {"input": x}, names)

    def test_precisions(self):
        """A module of 16 or 64 bits is trained as f32, or as asked for, and gets its own back."""
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        for kind in (torch.float64, torch.bfloat16):
            module = small().to(kind)
            want = F.cross_entropy(module.float()(x), y).item()
            module = module.to(kind)
            with lowerset.trainer(module, x.to(kind), **FAST) as t:
                self.assert_close(t.step(x.to(kind), y), want, str(kind), 1e-2)
                t.load_into(module)
                self.assertEqual(module[0].weight.dtype, kind)
                self.assertLess(off(module.float()(x), t.predict(x)), 1e-2)
        with lowerset.trainer(small().double(), x.double(), precision="f64", **FAST) as t:
            self.assertEqual(t.predict(x).dtype, torch.float64)
            self.assert_close(t.step(x.double(), y),
                              F.cross_entropy(small().double()(x.double()), y).item(), "f64", 1e-12)
        for precision in ("bf16", "f16"):
            with lowerset.trainer(small(), x, precision=precision, **FAST) as t:
                self.assert_close(t.step(x, y), F.cross_entropy(small()(x), y).item(), precision,
                                  1e-2)

    def test_arguments_by_name(self):
        module = Unused()
        x, y = torch.randn(8, 6), torch.randint(0, 6, (8,))
        t = self.train(module, {"x": x, "shift": 1.5}, y)
        self.assertEqual(t.inputs, ("x",))
        t = self.train(module, {"shift": torch.randn(8, 6), "x": x}, y)
        self.assertEqual(t.inputs, ("shift", "x"))

    def test_one_batch_alone(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        t = self.train(Fixed(), x, y)
        self.assertEqual(t.batch, 8)

    def test_an_example_of_one_sample(self):
        module = zoo.UNet(4).train()
        x, y = torch.randn(5, 3, 8, 8), torch.randint(0, 4, (5, 8, 8))
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(lowerset.export(module, x[:1], folder + "/net.onnx").any_batch)
        with lowerset.trainer(module, x[:1], batch=5, **FAST) as t:
            want = F.cross_entropy(module(x), y).item()
            self.assert_close(t.step(x, y), want, "loss")

    def test_many_outputs(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(6, 3), nn.Linear(6, 2)

            def forward(self, x):
                return {"classes": self.a(x), "boxes": (self.b(x), x.sum(1))}
        x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
        module = Two()
        with lowerset.trainer(module, x, loss="ce:classes", **FAST) as t:
            t.step(x, y)
            t.load_into(module)
            found, want = t.predict(x), module(x)
            self.assertEqual(list(found), ["classes", "boxes_0", "boxes_1"])
            self.assertLess(off(found["classes"], want["classes"]), CLOSE)
            self.assertLess(off(found["boxes_0"], want["boxes"][0]), CLOSE)
            self.assertLess(off(found["boxes_1"], want["boxes"][1]), CLOSE)

    def test_several_rows_of_a_sample(self):
        """Samples and tokens in one axis, as many write it before a cross-entropy."""
        module = nn.Sequential(nn.Linear(6, 4), nn.Flatten(0, 1))
        x, y = torch.randn(11, 5, 6), torch.randint(0, 4, (55,))
        with lowerset.trainer(module, x[:4], loss=nn.CrossEntropyLoss(), **FAST) as t:
            found = t.predict(x)
            self.assertEqual(found.shape, (55, 4))
            self.assertLess(off(found, module(x)), CLOSE)
            self.assertLess(off(t.predict(x[:2]), module(x[:2])), CLOSE)
            self.assert_close(t.evaluate(x[:8], y[:40]), F.cross_entropy(module(x[:8]),
                                                                         y[:40]).item(), "loss")
            self.assert_close(t.step(x[:4], y[:20]), F.cross_entropy(module(x[:4]), y[:20]).item(),
                              "loss")
            with self.assertRaisesRegex(ValueError, "5 rows for each sample"):
                t.step(x[:4], y[:4])
            with self.assertRaisesRegex(ValueError, "'label' has 3 samples, and 'input' has 4"):
                t.step(x[:4], y[:15])

    def test_the_loss_of_the_model_itself(self):
        try:
            case = zoo.bert()
        except ImportError as e:
            self.skipTest(str(e))
        x = {**case.inputs, "labels": case.target}
        optimizer = torch.optim.SGD(case.module.parameters(), lr=0.02)
        with lowerset.trainer(case.module, x, loss="graph", loss_input="loss", optimizer=optimizer,
                              **FAST) as t:
            self.assertEqual(t.targets, ())
            for _ in range(5):
                optimizer.zero_grad()
                want = case.module(**x).loss
                want.backward()
                self.assert_close(t.step(x), want.item(), "loss")
                optimizer.step()
            self.assert_state(t, case.module)

    def test_refusals(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        cumulative = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, momentum=None))
        with self.assertRaisesRegex(lowerset.LowersetError, "momentum=None"):
            lowerset.trainer(cumulative, x, **FAST)
        with self.assertRaisesRegex(TypeError, "example_inputs"):
            lowerset.trainer(small(), **FAST)
        with self.assertRaisesRegex(ValueError, "no samples"):
            lowerset.trainer(small(), x[:0], **FAST)
        with self.assertRaisesRegex(TypeError, "torch.nn.Module"):
            lowerset.trainer(3, x, **FAST)

        class Odd(nn.Module):
            def forward(self, x):
                return torch.linalg.eigvals(x.T @ x).real + small()(x).sum()
        with self.assertRaises(lowerset.LowersetError):
            lowerset.trainer(Odd(), x, example_target=y, **FAST)

    def test_another_network_is_noticed(self):
        """A loss that is not the module's ends in an error before the first step."""
        x = torch.randn(8, 6)

        class Lies(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(6, 4)

            def forward(self, x):
                scale = 2.0 if torch.compiler.is_compiling() else 1.0
                return self.linear(x) * scale
        with self.assertRaisesRegex(lowerset.CheckError, "differs from the module's own"):
            lowerset.trainer(Lies(), x, **FAST)
        lowerset.trainer(Lies(), x, check=False, **FAST).close()

    def test_adapters(self):
        module, x, y = small(), torch.randn(8, 6), torch.randint(0, 4, (8,))
        before = copy.deepcopy(module.state_dict())
        with lowerset.trainer(module, x, lora="r=2:0,3", optimizer="adamw", lr=0.1, **FAST) as t:
            for _ in range(4):
                t.step(x, y)
            state = t.state_dict()
            for name, value in before.items():
                self.assertTrue(torch.equal(state[name], value), name)
            for name in ("0", "3"):     # merged by hand: alpha is 8
                a, b = (state[f"{name}.lora_{k}.weight"] for k in "AB")
                before[f"{name}.weight"] = before[f"{name}.weight"] + 8 / 2 * (b @ a)
            with self.assertRaisesRegex(lowerset.UnsupportedError, "adapter"):
                t.load_into(module)
            module.load_state_dict(before)
            self.assertLess(off(t.predict(x), module(x)), CLOSE)

    def test_few_bits(self):
        """Frozen weights in codes: numbers of bfloat16 stay what they are, NF4 has other ones."""
        module, x, y = small(), torch.randn(8, 6), torch.randint(0, 4, (8,))
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(p.bfloat16())
        losses = []
        for kept in ({}, {"quantize_frozen": "bf16:0,3"}, {"quantize_frozen": ["nf4:0", "bf16:3"]}):
            with lowerset.trainer(module, x, lora="r=2:0,3", optimizer="adamw", lr=0.1, **kept,
                                  **FAST) as t:
                losses.append([float(t.step(x, y)) for _ in range(4)])
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])
        self.assertLess(abs(losses[0][0] - losses[2][0]), 0.2)

    def test_export_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.onnx")
            case = zoo.case("mlp_partly_frozen")
            made = lowerset.export(case.module, case.inputs, path)
            self.assertTrue(os.path.exists(path))
            self.assertEqual(set(made.frozen), {"0.weight", "2.bias"})
            self.assertEqual((made.inputs, made.outputs, made.exporter, made.any_batch),
                             (("input",), ("output",), "dynamo", True))
            self.assertIn("--freeze", made.options)
            with lowerset.trainer(path, batch=4, freeze=list(made.frozen), **FAST) as t:
                t.step(case.inputs[:4], case.target[:4])


class Tensors(Compared):
    @classmethod
    def setUpClass(cls):
        cls.module = small()
        cls.x, cls.y = torch.randn(8, 6), torch.randint(0, 4, (8,))
        cls.t = lowerset.trainer(cls.module, cls.x, optimizer="none", **FAST)
        cls.want = cls.t.step(cls.x, cls.y)

    @classmethod
    def tearDownClass(cls):
        cls.t.close()

    def test_forms(self):
        step, want, x, y = self.t.step, self.want, self.x, self.y
        self.assertEqual(step(x.double(), y.int()), want)
        self.assertEqual(step(x.T.contiguous().T, y), want)
        self.assertEqual(step(x.clone().requires_grad_(), y), want)
        self.assertEqual(step(x.numpy(), y), want)
        self.assertEqual(step([x, y]), want)
        self.assert_close(step(x.bfloat16(), y), F.cross_entropy(
            self.module(x.bfloat16().float()), y).item(), "bfloat16")
        with self.assertRaisesRegex(TypeError, "'label' takes integers"):
            step(x, y.float())
        with self.assertRaisesRegex(ValueError, "'label' takes"):
            step(x, F.one_hot(y, 4))
        with self.assertRaisesRegex(ValueError, "'input' takes"):
            step(x.T, y)
        with self.assertRaisesRegex(ValueError, "no samples"):
            step(x[:0], y[:0])

    def test_nothing_is_copied_that_fits(self):
        from lowerset._arrays import as_input
        taken = as_input(self.x, "x", np.dtype("f4"), (6,))
        self.assertEqual(taken.__array_interface__["data"][0], self.x.data_ptr())

    def test_torch_in_torch_out(self):
        self.assertIsInstance(self.t.predict(self.x), torch.Tensor)
        self.assertIsInstance(self.t.predict(self.x.numpy()), np.ndarray)
        self.assertLess(off(self.t.predict(self.x), self.module(self.x)), CLOSE)

    def test_loaders(self):
        data = torch.utils.data.TensorDataset(torch.randn(21, 6), torch.randint(0, 4, (21,)))
        loader = torch.utils.data.DataLoader(data, 8)
        module = small()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        with lowerset.trainer(module, self.x, optimizer=optimizer, **FAST) as t:
            rows = t.fit(loader, epochs=2, val=loader, progress=False)
            self.assertEqual([r["updates"] for r in rows], [3, 6])
            for _ in range(2):
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(module(x), y).backward()
                    optimizer.step()
            self.assert_state(t, module)
            self.assert_close(rows[1]["val_loss"], F.cross_entropy(
                module(data.tensors[0]), data.tensors[1]).item(), "val")

    def test_weights_go_both_ways(self):
        other = small()
        with torch.no_grad():
            for p in other.parameters():
                p.add_(0.1)
        with lowerset.trainer(self.module, self.x, **FAST) as t:
            t.load_from(other)
            self.assertLess(off(t.predict(self.x), other(self.x)), CLOSE)
            self.assert_state(t, other, 1e-9)
            with self.assertRaisesRegex(KeyError, "has no"):
                t.load_into(nn.Linear(6, 4))
            with self.assertRaisesRegex(ValueError, "in the module"):
                t.load_into(small(5))
            half = small().double()
            t.load_into(half)
            self.assertEqual(half[0].weight.dtype, torch.float64)
            self.assertLess(off(half[0].weight, other[0].weight), 1e-9)


if __name__ == "__main__":
    if "LOWERSET" not in os.environ:
        sys.exit("LOWERSET is not set: the path of the program")
    unittest.main()
