"""A module in training: exported, compiled to a library, loaded, and compared with itself."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from . import _batches
from ._arrays import as_numpy, is_torch
from ._library import Net, Tensor
from ._program import option_words, run
from .errors import ModelError, UnsupportedError, UsageError

# Options of compile that plan does not take.
_ONLY_COMPILE = ("bf16_sums", "cc", "march", "nvcc", "opt")
# What the trainer sets itself, and what prints.
_PRINTED = "lowerset.compile has it, and python -m lowerset compile"
_OWN = {"emit": "a trainer is a library", "prefix": "a trainer is a library",
        "output": "give folder='DIR' to keep what compile writes",
        "dry_run": _PRINTED, "dump": _PRINTED, "json": "t.plan is the report",
        "schedule": "give t.fit(lr=function of the update), or t.step(x, y, lr=rate)"}


def _option_words(options: Mapping) -> tuple[list[str], list[str]]:
    """Keywords as words: those of compile and plan, and those of compile alone."""
    for key in options:
        if key in _OWN:
            raise UsageError(f"the option {key}= is not for a trainer", hint=_OWN[key])
    build = {k: v for k, v in options.items() if k in _ONLY_COMPILE}
    return (option_words(**{k: v for k, v in options.items() if k not in build}),
            option_words(**build))


class Trainer:
    """A network in training. Made by lowerset.trainer.

    net: the library's instance; inputs, targets: names of what a step takes; outputs: of what
    predict gives; batch: samples of a full update; lr: the rate of steps that name none (with an
    optimizer of torch: the optimizer's rate at the time, so that schedulers of torch work)
    """

    def __init__(self, net: Net, inputs: Sequence[str] | None, *, plan: Callable[[], dict],
                 rate: Callable[[], float], names: Mapping[str, str] | None = None,
                 counters: Mapping[str, int] | None = None, torch: bool = False,
                 folder: tempfile.TemporaryDirectory | None = None):
        here = [t.name for t in net.inputs if t.role == "input"]
        inputs = here if inputs is None else inputs
        self.net, self._plan, self._rate, self._folder = net, plan, rate, folder
        self.inputs = tuple(inputs)
        # A function as the loss is a part of the network, and its target an input of it.
        self.targets = tuple(t.name for t in net.inputs
                             if t.role == "target" or t.name not in set(self.inputs))
        self.outputs = tuple(t.name for t in net.outputs if t.shape)
        self._unread = frozenset(inputs) - frozenset(here)
        self._names = dict(names) if names is not None else {
            t.name: t.name for t in net.state if t.role in ("parameter", "frozen", "statistic")}
        self._counters, self._torch = dict(counters or {}), torch
        self.batch = net.batch

    @property
    def lr(self) -> float:
        """The rate of steps that name none."""
        return self._rate()

    @lr.setter
    def lr(self, rate: float) -> None:
        rate = float(rate)
        self._rate = lambda: rate

    @cached_property
    def plan(self) -> dict:
        """The report of `lowerset plan --json`: bytes, costs, what is kept and recomputed; in a
        notebook a timeline. It is made when it is first asked for, before close()."""
        return self._plan()

    @property
    def updates(self) -> int:
        """Updates done, those before a checkpoint that was resumed included."""
        return self.net.updates

    # ---- runs ----

    def _order(self, x, y=None) -> dict:
        return _batches.by_name(x, y, self.inputs, self.targets, self._unread)

    def step(self, x, y=None, lr: float | None = None, wait: bool = True) -> Any:
        """One update; the loss of these samples before it.

        x: an array [samples, ...], a tuple of them, or a dict by the names of inputs; y: the target
        (of a dict, x may have it); samples: at most `batch`, fewer make the batch short.
        wait: False: a GPU goes on computing, and the loss is a tensor of torch there; None where
            there is none (Net.step).
        Raises ValueError or TypeError, which name the input, if an array does not fit;
        LowersetError with code 7 if the loss is not finite, 8 if a class is out of range.
        """
        return self.net.step(self._order(x, y), self._rate() if lr is None else lr, wait)

    def fit(self, loader: Iterable, epochs: int = 1, val=None,
            lr: float | Callable[[int], float] | None = None,
            progress: bool | Callable[[dict], None] | None = None) -> list[dict]:
        """Trains over a loader of batches, tuples (x, y) or dicts by name.

        loader: any iterable that can begin anew, such as a DataLoader; the last batch may be small
        val: the same, or one batch (x, y), evaluated after each epoch
        lr: the rate, or a function of the number of updates done
        progress: whether to show a line on standard error (default: if it is a terminal), or a
            function that gets a dict after each update
        Returns a dict for each epoch: epoch (from 1), updates, loss (mean over samples), val_loss
        (if val is given), seconds.
        """
        return _batches.fit(self, loader, epochs, val, lr, progress)

    def evaluate(self, data, y=None) -> float:
        """The mean loss of the evaluation form.

        data: an array with y, a batch (x, y), [x, y] or a dict by name, of any number of samples;
        or a loader of batches: then the mean of their losses, each counted by its samples.
        """
        if y is not None or isinstance(data, (tuple, Mapping)) or self._is_batch(data):
            return self.net.evaluate(self._order(data, y))
        return _batches.mean_loss(self.net.evaluate, (self._order(b) for b in data))

    def _is_batch(self, data) -> bool:
        """Whether a list is one batch, as a DataLoader gives them, and not a list of batches."""
        return (isinstance(data, list) and 1 < len(data) == len(self.inputs) + len(self.targets)
                and all(_batches.is_array(v) for v in data))

    def predict(self, x):
        """The outputs of the evaluation form for any number of samples.

        x: as in step(). Returns an array [samples, ...], or a dict by name if there are several;
        tensors of torch if x has such, else arrays of numpy.
        """
        given = _batches.by_name(x, None, self.inputs, (), self._unread)
        count = _batches.samples(given)
        for t in self.net.inputs:
            if t.role == "input" and t.name in self.targets:    # only the loss reads it
                given[t.name] = np.zeros((count, *t.shape[1:]), t.dtype)
        found = self.net.predict(given, self.outputs)
        if any(is_torch(v) for v in given.values()):
            import torch
            found = {k: torch.from_numpy(v) for k, v in found.items()}
        return next(iter(found.values())) if len(found) == 1 else found

    # ---- weights ----

    def _home(self, file_name: str) -> str | None:
        """The tensor of the state that evaluation reads for a parameter: its average, if the
        program keeps one."""
        return self._averages.get(file_name) or (file_name if file_name in self._rows else None)

    @cached_property
    def _rows(self) -> dict[str, Tensor]:
        return {t.name: t for t in self.net.state}

    @cached_property
    def _averages(self) -> dict[str, str]:
        return {t.name.rsplit(".", 1)[0]: t.name for t in self.net.state if t.role == "average"}

    def state_dict(self) -> dict:
        """Trained weights and running statistics by the module's names: tensors of torch if the
        trainer was made from a module, else arrays. Averages (ema=) stand in their place."""
        read: dict[str, np.ndarray] = {}
        for name in self._names.values():
            home = self._home(name)
            if home is not None and name not in read:
                read[name] = self.net.read(home)
        state = {k: read[v] for k, v in self._names.items() if v in read}
        if self._torch:
            import torch
            state = {k: torch.from_numpy(v) for k, v in state.items()}
        return state

    def load_into(self, model) -> None:
        """Writes weights, running statistics and counters of batches into a module of torch.

        Tied parameters are written once; the module's types and devices stay.
        Raises KeyError if the module lacks a tensor, ValueError if one has another shape.
        """
        import torch
        model = getattr(model, "_orig_mod", model)
        own = model.state_dict(keep_vars=True)
        state = self.state_dict()
        for name, value in state.items():
            if name not in own and ".lora_" in name:
                raise UnsupportedError(f"the module has no place for the adapter's '{name}'",
                                       code=3, hint="t.save(path) and t.state_dict() keep "
                                       "adapters; load_into takes a module with their names")
            if name not in own:
                raise KeyError(f"the module has no '{name}'")
            if tuple(own[name].shape) != tuple(value.shape):
                raise ValueError(f"'{name}' is {list(own[name].shape)} in the module, and "
                                 f"{list(value.shape)} in the trainer")
        with torch.no_grad():
            for name, value in state.items():
                own[name].copy_(torch.as_tensor(value))
            for name, before in self._counters.items():
                if name in own:
                    own[name].fill_(before + self.updates)

    def load_from(self, model) -> None:
        """Takes weights and running statistics of a module, or of a state_dict. Moments stay.

        Raises KeyError if it lacks a tensor, ValueError if one has another shape.
        """
        state = model if isinstance(model, Mapping) else getattr(
            model, "_orig_mod", model).state_dict()
        done = set()
        for name, file_name in self._names.items():
            if file_name in done or file_name not in self._rows:
                continue
            if name not in state:
                raise KeyError(f"there is no '{name}'")
            value = as_numpy(state[name], name)
            self.net.write(file_name, value)
            if file_name in self._averages:
                self.net.write(self._averages[file_name], value)
            done.add(file_name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint (safetensors) with all that a run needs to go on, bit for bit."""
        self.net.save(path)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a checkpoint of this network and optimizer."""
        self.net.load(path)

    def close(self) -> None:
        """Ends threads, gives memory back, and removes the temporary folder."""
        self.net.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _loss_arguments(loss) -> tuple[list[str], Callable | None]:
    """Options, and the function that is exported with the module, if the loss is one."""
    if loss is None or isinstance(loss, str):
        return (["--loss", loss] if loss else []), None
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(loss, torch.nn.Module):
        from ._from_torch import loss_options
        return loss_options(loss), None
    if callable(loss):
        return ["--loss", "graph", "--loss-input", "loss"], loss
    raise TypeError(f"loss is a {type(loss).__name__}: give a name, a loss module of torch, or a "
                    "function (output, target) -> scalar")


def _optimizer_words(optimizer) -> list[str]:
    if optimizer is None or isinstance(optimizer, str):
        return ["--optimizer", optimizer or "sgd:momentum=0.9"]
    from ._from_torch import optimizer_options
    return optimizer_options(optimizer)


def _rate(lr: float | None, optimizer, net: Net) -> Callable[[], float]:
    """The rate of steps that name none: an optimizer of torch has one that changes."""
    if lr is None and hasattr(optimizer, "param_groups"):
        return lambda: float(optimizer.param_groups[0]["lr"])
    fixed = net.rate if lr is None else float(lr)
    return lambda: fixed


def _compiled(path: str, arguments: Sequence[str], folder: str) -> str:
    """The library of a file."""
    base = os.path.join(folder, "net")
    run(["compile", path, "-q", "--emit=lib", "--prefix", "net", "-o", base, *arguments])
    os.unlink(os.path.join(folder, "libnet.a"))
    return os.path.join(folder, "libnet.so")


def trainer(model, example_inputs=None, *, loss=None, optimizer=None,
            budget: str | int | None = None, precision: str | None = None,
            batch: int | None = None, threads: int | None = None, seed: int = 0,
            lr: float | None = None, example_target=None, exporter: str | None = None,
            check: bool = True, folder: str | os.PathLike[str] | None = None,
            **options) -> Trainer:
    """Compiles the training step of a module, inside a memory budget.

    model: a torch.nn.Module, trained in the form that it is in (each norm and dropout in its own
        mode, parameters with requires_grad=False left as they are); or the path of an ONNX file
    example_inputs: of a module: a tensor [samples, ...], a tuple of forward's arguments, or a dict
        by their names; of a file its inputs likewise, for the size of a batch alone
    loss: a name as --loss takes it ("ce", "mse", ...; default "ce"), a loss module of torch, or a
        function (output, target) -> scalar, which needs example_target
    optimizer: a spec as --optimizer takes it ("adamw:wd=0.01"; default "sgd:momentum=0.9"), or a
        new optimizer of torch
    budget: limit on all memory: bytes, "4GiB", "60%" of what the plan without recomputation takes,
        or "min"
    precision: "f32", "bf16", ... as --precision takes it
    batch: samples of a batch (default: of the example)
    threads: that compute (default: all cores); results do not depend on it
    seed: of dropout
    lr: rate of steps that name none (default: the optimizer's)
    example_target: targets for the example, for a function as the loss and for the check
    check: compare outputs and the loss with the module's own before the first step
    folder: where file and library are written and kept (default: a temporary folder)
    options: every other option of compile: clip_norm=1, accumulate=4, freeze=["a.*", "b.*"],
        store_gradients=True, dim={"T": 128}

    Raises LowersetError if the compiler refuses the network, the budget or an option, or if the
    library's loss is not the module's; ValueError for losses and optimizers that it cannot have.
    """
    temporary, net = None, None
    if folder is None:
        temporary = tempfile.TemporaryDirectory(prefix="lowerset-")
        place = temporary.name
    else:
        place = os.fspath(folder)
        os.makedirs(place, exist_ok=True)
    try:
        words = _optimizer_words(optimizer)
        loss_words, function = _loss_arguments(loss)
        more, build = _option_words(
            {"budget": budget, "precision": precision, "threads": threads, **options})
        made = _Source(model, example_inputs, place, batch, function, example_target, exporter,
                       optimizer)
        words += loss_words + more + made.words
        net = Net(_compiled(made.path, words + build, place), threads=threads, seed=seed)
        if made.module is not None:
            made.must_know(net, "lora" in options or "adapter" in options)
        t = Trainer(net, made.inputs, plan=_plan_of(made.path, words),
                    rate=_rate(lr, optimizer, net),
                    names=made.names or None, counters=made.counters, torch=made.module is not None,
                    folder=temporary)
        if made.module is not None:
            # The module lacks an adapter's values, and has other ones than codes stand for.
            if check and not {"adapter", "quantize_frozen"} & options.keys():
                from ._first_loss import must_agree
                must_agree(t, made.module, example_inputs, loss, example_target,
                           {"precision": precision, "seed": seed, **options})
        return t
    except BaseException:
        if net is not None:
            net.close()
        if temporary:
            temporary.cleanup()
        raise


def _plan_of(path: str, words: Sequence[str]) -> Callable[[], dict]:
    from .commands import planned
    return lambda: planned(path, words)


class _Source:
    """The file of a trainer, exported or given, and what compile needs beside it."""

    def __init__(self, model, example, place: str, batch: int | None, function, example_target,
                 exporter: str | None, optimizer):
        self.module, self.counters = None, None
        self.names: Mapping[str, str] = {}
        if isinstance(model, (str, os.PathLike)):
            self.path = os.fspath(model)
            if function is not None:
                raise TypeError("a function as the loss is exported with a module, but the model "
                                "is a file: give the loss as a name, or \"graph\"")
            if exporter is not None:
                raise TypeError(f"exporter={exporter!r} is for a module, but the model is a file")
            self.inputs = None
            batch = batch or _samples_of(example)
            self.words = ["--batch", str(batch)] if batch else []
            return
        import torch
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"model is a {type(model).__name__}: give a torch.nn.Module, or the "
                            "path of an ONNX file")
        if example_inputs_missing(example):
            raise TypeError("a module needs example_inputs, such as the inputs of one batch")
        from ._export import exactly, export
        self.module = model = getattr(model, "_orig_mod", model)
        made = export(model, example, os.path.join(place, "net.onnx"), batch=batch, loss=function,
                      example_target=example_target, exporter=exporter)
        self.path, self.inputs, self.names = made.path, made.inputs, made.names
        self.words = made.options + (["--batch", str(made.batch)] if made.any_batch else [])
        self.counters = _counters(model)
        if hasattr(optimizer, "param_groups"):
            from ._from_torch import undecayed, untrained
            left, spared = ({made.names[k] for k in names if k in made.names}
                            for names in (untrained(model, optimizer), undecayed(model, optimizer)))
            for name in sorted(left - set(made.frozen)):
                self.words += ["--freeze", exactly(name)]
            for name in sorted(spared - left - set(made.frozen)):
                self.words += ["--no-decay", exactly(name)]

    def must_know(self, net: Net, adapters: bool) -> None:
        """Every tensor that is trained must be one of the module's, or of an adapter."""
        known = set(self.names.values())
        strange = [t.name for t in net.state if t.role == "parameter" and t.name not in known]
        if adapters:
            own = [name for name in strange if ".lora_" in name]
            strange = [name for name in strange if name not in own]
            self.names = {**self.names, **{name: name for name in own}}
        if strange:
            raise ModelError(f"'{strange[0]}' is trained, but no parameter of the module is "
                                "called so", node=strange[0],
                                hint="the exporter renamed it, or it is a constant of the module's:"
                                " freeze= it, or make it a buffer")


def _samples_of(example) -> int | None:
    """Samples of an example of a file's inputs, if there is one."""
    if example_inputs_missing(example):
        return None
    if isinstance(example, Mapping):
        example = next(iter(example.values()))
    elif _batches.several(example):
        example = example[0]
    return len(as_numpy(example, "example_inputs"))


def example_inputs_missing(example) -> bool:
    return example is None or (isinstance(example, (tuple, list, Mapping)) and not len(example))


def _counters(model) -> dict[str, int]:
    """Batches that norms in training form have seen."""
    return {(name + "." if name else "") + "num_batches_tracked": int(m.num_batches_tracked)
            for name, m in model.named_modules()
            if m.training and getattr(m, "num_batches_tracked", None) is not None}
