"""A live torch module as a file: in the form it is in, unoptimised, under its own names, for a
batch of any size; and what of it no file says."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._arrays import as_numpy, is_torch
from ._program import run
from .errors import ModelError, UnsupportedError

LABEL = "label"     # the target input of a loss function
LOSS = "loss"       # the output that it makes
LARGE = 1 << 27     # bytes of weights, from which on they lie beside the file


@dataclass(frozen=True)
class Exported:
    """A file, and what of the module it does not say.

    path: of the file
    inputs, outputs: names, in the module's order; without `label` and `loss` of a loss function
    frozen: tensors of the file that are not trained: requires_grad=False, buffers
    names: for each entry of the module's state_dict that the file has, the file's name: of tied
        parameters all have one
    exporter: "dynamo" or "torchscript"
    any_batch: whether the file takes a batch of any size; else it has that of `batch`
    """

    path: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    frozen: tuple[str, ...]
    names: Mapping[str, str]
    exporter: str
    any_batch: bool
    batch: int
    notes: tuple[str, ...] = field(default=())

    @property
    def options(self) -> list[str]:
        """What compile, plan and check need beside the file."""
        options = ["--bn-var", "torch"]
        for name in self.frozen:
            options += ["--freeze", exactly(name)]
        return options


def exactly(name: str) -> str:
    """The pattern of an option that takes globs, for one name."""
    return re.sub(r"([][*?\\])", r"\\\1", name)


# ---- example inputs ----

def named_inputs(module, example) -> dict:
    """Example tensors by the names of forward's arguments. example: a tensor, a tuple of
    positional arguments, or a dict of named ones. What is no tensor stays as it is."""
    import torch
    if isinstance(example, Mapping):
        named = dict(example)
    else:
        values = list(example) if isinstance(example, (tuple, list)) else [example]
        named = dict(zip(_argument_names(module, len(values)), values))
    for name, value in named.items():
        if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
            if not is_torch(value):
                named[name] = torch.from_numpy(as_numpy(value, name).copy())
    tensors = [v for v in named.values() if is_torch(v)]
    if not tensors or tensors[0].ndim == 0:
        raise TypeError("example_inputs has no tensor with samples: give a tensor, a tuple of "
                        "them, or a dict by the names of forward's arguments")
    for name, value in named.items():
        if is_torch(value) and value.shape[:1] != tensors[0].shape[:1]:
            raise ValueError(f"example input '{name}' is {list(value.shape)}, and another has "
                             f"{len(tensors[0])} samples: the first axis is that of samples")
    if len(tensors[0]) == 0:
        raise ValueError("example_inputs has no samples")
    return named


def _argument_names(module, count: int) -> list[str]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in inspect.signature(module.forward).parameters.values()
             if p.kind in positional]
    return names[:count] + [f"input_{k}" for k in range(len(names), count)]


def tiled(value, samples: int):
    """A tensor's samples again and again, to so many."""
    again = -(-samples // len(value))
    return value.repeat(again, *[1] * (value.ndim - 1))[:samples] if again > 1 else value[:samples]


def flat_outputs(value, name: str = "output") -> dict:
    """Tensors of what a module returns, by names: keys, fields, or output_0, output_1 ..."""
    if is_torch(value):
        return {name: value}
    prefix = "" if name == "output" else name + "_"
    if isinstance(value, Mapping):
        parts = {f"{prefix}{k}": v for k, v in value.items()}
    elif hasattr(value, "_fields"):
        parts = {f"{prefix}{k}": getattr(value, k) for k in value._fields}
    elif isinstance(value, (tuple, list)):
        parts = {f"{name}_{k}": v for k, v in enumerate(value)}
    else:
        parts = {}
    return {k: t for name, part in parts.items() for k, t in flat_outputs(part, name).items()}


# ---- the module as exporters see it ----

class _Shell:
    """The module with another forward(): tensors in, a tuple of tensors out. It has the module's
    parameters, buffers, submodules and modes themselves, so names stay as they are."""

    def __init__(self, module, named: Mapping, loss: Callable | None):
        kind = type(module)
        own = module.__dict__.get("forward")
        tensors = [k for k, v in named.items() if is_torch(v)]
        self.outputs: list[str] = []

        def forward(it, *values):
            arguments = dict(named)
            arguments.update(zip(tensors, values))
            by_name, ordered = _arguments(module, arguments)
            out = own(*ordered, **by_name) if own else kind.forward(it, *ordered, **by_name)
            flat = flat_outputs(out)
            if loss is not None:
                flat = {LOSS: loss(out, values[-1]), **flat}
            self.outputs = list(flat)
            return tuple(flat.values())

        shape: Any = type(kind.__name__, (kind,),
                          {"forward": forward, "__module__": kind.__module__})
        self.module = shape.__new__(shape)
        self.module.__dict__.update(module.__dict__)
        self.module.__dict__.pop("forward", None)


def _arguments(module, named: Mapping) -> tuple[dict, list]:
    """By name where forward() has the name, else in order."""
    kinds = {p.name: p.kind for p in inspect.signature(module.forward).parameters.values()}
    free = inspect.Parameter.VAR_KEYWORD in kinds.values()
    ordered, by_name = [], {}
    for name, value in named.items():
        kind = kinds.get(name)
        in_order = kind is inspect.Parameter.POSITIONAL_ONLY or (
            kind is None and (name.startswith("input_") or not free))
        if in_order:
            ordered.append(value)
        else:
            by_name[name] = value
    if ordered and by_name:     # names that come before those without
        ordered, by_name = [*by_name.values(), *ordered], {}
    return by_name, ordered


@contextlib.contextmanager
def unchanged(module):
    """Buffers, modes and random numbers are after it what they were before."""
    import torch
    buffers = [(b, b.detach().clone()) for b in module.buffers()]
    tables = [(m, dict(m._buffers)) for m in module.modules()]      # forward() may bind them anew
    modes = [(m, m.training) for m in module.modules()]
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for m, mode in modes:
                m.training = mode
            for m, table in tables:
                m._buffers.clear()
                m._buffers.update(table)
            with torch.no_grad():
                for b, old in buffers:
                    if not torch.equal(b, old):
                        b.copy_(old)


def _refuse_unsayable(module) -> None:
    for name, m in module.named_modules():
        if m.training and getattr(m, "running_mean", None) is not None \
                and getattr(m, "momentum", 0) is None:
            raise UnsupportedError(
                f"norm '{name}' has momentum=None, a running average over all batches, which no "
                "file says", code=3, node=name,
                hint="give it a momentum such as 0.1, or .eval() it")


# ---- exporters ----

def _dynamo(shell: _Shell, named: dict, path: str, any_batch: bool, large: bool) -> None:
    import torch
    shapes = (tuple({0: "N"} for _ in named),) if any_batch else None
    program = torch.onnx.export(shell.module, tuple(named.values()), dynamo=True, optimize=False,
                                input_names=list(named), verbose=False, dynamic_shapes=shapes)
    graph = program.model.graph
    for value, name in zip(graph.outputs, shell.outputs):
        value.name = name
    _draw_in_attention(graph)
    program.save(path, external_data=large)


def _draw_in_attention(graph) -> None:
    """Dropouts within attention: the exporter writes them without training_mode, so that they would
    drop nothing. A module in evaluation form has none of them, as their rate is 0."""
    import numpy as np
    import onnx_ir
    silent = [n for n in graph if n.op_type == "Dropout" and not n.domain and len(n.inputs) < 3]
    for node in silent:
        on = onnx_ir.node("Constant", [], {"value": onnx_ir.tensor(np.array(True))})
        graph.insert_before(node, on)
        ratio = node.inputs[1] if len(node.inputs) > 1 else None
        node.resize_inputs(3)
        node.replace_input_with(1, ratio)
        node.replace_input_with(2, on.outputs[0])


@contextlib.contextmanager
def _statistics_stay(module):
    """This exporter runs the network, which updates running statistics before they are written:
    each norm gets its own back after it ran, in a way that the trace does not see."""
    import torch

    def restore(m, *_):
        tracing = torch._C._get_tracing_state()
        torch._C._set_tracing_state(None)
        try:
            for b, old in saved[m]:
                b.copy_(old)
        finally:
            torch._C._set_tracing_state(tracing)
    saved = {m: [(b, b.detach().clone()) for b in m.buffers(recurse=False)]
             for m in module.modules() if getattr(m, "running_mean", None) is not None}
    hooks = [m.register_forward_hook(restore) for m in saved]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _torchscript(shell: _Shell, named: dict, path: str, any_batch: bool, large: bool) -> None:
    import torch
    with torch.no_grad(), _statistics_stay(shell.module):
        shell.module(*named.values())       # for the names of outputs
    axes = {k: {0: "N"} for k in [*named, *shell.outputs]} if any_batch else None
    more = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    with torch.no_grad(), _statistics_stay(shell.module):
        torch.onnx.export(shell.module, tuple(named.values()), path, input_names=list(named),
                          output_names=list(shell.outputs), dynamic_axes=axes,
                          training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                          verbose=False, **more)


_EXPORTERS = {"dynamo": _dynamo, "torchscript": _torchscript}


@contextlib.contextmanager
def _quiet():
    """Exporters print what they do and, in C++, whole graphs; the reason of a failure is in its
    error. Both file descriptors of output lead nowhere meanwhile."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    kept = [(fd, os.dup(fd)) for fd in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for fd, _ in kept:
            os.dup2(nowhere, fd)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        for fd, old in kept:
            os.dup2(old, fd)
            os.close(old)
        os.close(nowhere)
        logging.disable(disabled)


def _first_line(e: BaseException) -> str:
    while e.__cause__ is not None:      # exporters wrap the reason
        e = e.__cause__
    lines = [re.sub(r"\033\[[0-9;]*m", "", s).strip() for s in str(e).splitlines()]
    return f"{type(e).__name__}: {next((s for s in lines if s), '')}"


def _try_exporters(shell: _Shell, named: dict, path: str, batch: int, large: bool,
                   exporters: Sequence[str]) -> tuple[str, bool, tuple[str, ...]]:
    """The first way that works: which one, whether for any batch, and what did not work."""
    failed: list[str] = []
    for exporter in exporters:
        for any_batch in (True, False):
            samples = max(2, len(next(iter(named.values())))) if any_batch else batch
            example = {k: tiled(v, samples) for k, v in named.items()}
            try:
                with _quiet():
                    _EXPORTERS[exporter](shell, example, path, any_batch, large)
                return exporter, any_batch, tuple(failed)
            except Exception as e:      # exporters fail in any way
                size = "any size" if any_batch else f"{batch} samples"
                failed.append(f"{exporter}, a batch of {size}: {_first_line(e)}")
    raise ModelError("torch cannot export the module:\n  " + "\n  ".join(failed), code=1,
                        hint="export it yourself, and give the path of the file in place of the "
                        "module")


# ---- what the file has ----

def _file_tensors(path: str, any_batch: bool) -> dict[str, str]:
    """Names of the file's tensors of reals, and what they are to the compiler."""
    batch = ["--batch", "2"] if any_batch else []
    report = json.loads(run(["inspect", path, "--json", *batch]))
    return {t["name"]: t["role"] for t in report["tensors"]}


def state_names(module, tensors: Mapping[str, str]) -> dict[str, str]:
    """For each entry of the state_dict, the file's name of it or of a tensor tied to it."""
    shared: dict[int, list[str]] = {}
    for name, value in module.state_dict(keep_vars=True).items():
        shared.setdefault(id(value), []).append(name)
    names = {}
    for same in shared.values():
        found = next((name for name in same if name in tensors), None)
        if found is not None:
            names.update(dict.fromkeys(same, found))
    return names


def _frozen(module, names: Mapping[str, str], tensors: Mapping[str, str]) -> list[str]:
    trained = {names.get(k) for k, p in module.named_parameters(remove_duplicate=False)
               if p.requires_grad}
    return [k for k in tensors if tensors[k] == "trained" and k in names.values()
            and k not in trained]


def _must_have_all(module, named: Mapping, names: Mapping[str, str]) -> None:
    """A trained parameter that the file lacks must be one that forward() does not read."""
    import torch
    lost = {k: p for k, p in module.named_parameters() if p.requires_grad and k not in names}
    if not lost:
        return
    few = {k: tiled(v, 2) if is_torch(v) else v for k, v in named.items()}
    by_name, ordered = _arguments(module, few)
    with torch.enable_grad():
        outs = [v.sum() for v in flat_outputs(module(*ordered, **by_name)).values()
                if v.requires_grad]
        found = torch.autograd.grad(sum(outs), list(lost.values()), allow_unused=True)
    read = [k for k, g in zip(lost, found) if g is not None]
    if read:
        raise ModelError(f"parameter '{read[0]}' of the module is not in the file that torch "
                         "exported: it would not be trained", node=read[0],
                         hint="exporter='torchscript' or 'dynamo' asks for the other exporter")


def export(module, example_inputs, path: str | os.PathLike[str], *, batch: int | None = None,
           loss: Callable | None = None, example_target=None,
           exporter: str | None = None) -> Exported:
    """Writes a live module as an ONNX file in which it trains as it does in torch.

    Each submodule keeps the mode that it is in: norms in eval() stay frozen, dropouts in eval() are
    off. The module is as before afterwards: running statistics, modes, random numbers.

    module: a torch.nn.Module
    example_inputs: a tensor [samples, ...], a tuple of forward's arguments, or a dict by their
        names; only their shapes and types matter
    path: of the file; weights from 128 MiB on lie beside it as PATH.data
    batch: samples, for modules that can only be exported for one number of them
    loss: a function (output, target) -> scalar, which becomes the output `loss` of the file, with
        example_target as an example of the input `label`
    exporter: "dynamo" or "torchscript" (default: the one that works, in this order)

    Raises LowersetError if no exporter takes the module, or if the file has operators that cannot
    be trained.
    """
    module = getattr(module, "_orig_mod", module)       # of torch.compile
    _refuse_unsayable(module)
    named = named_inputs(module, example_inputs)
    tensors = {k: v for k, v in named.items() if is_torch(v)}
    inputs = tuple(tensors)
    samples = len(tensors[inputs[0]])
    if loss is not None:
        if example_target is None:
            raise ValueError("a function as the loss needs example_target, such as the targets of "
                             "one batch")
        target = named_inputs(module, {LABEL: example_target})[LABEL]
        tensors[LABEL] = target.to(tensors[inputs[0]].device)
    large = sum(p.numel() * p.element_size() for p in module.parameters()) > LARGE
    shell = _Shell(module, named, loss)
    with unchanged(module):
        used, any_batch, notes = _try_exporters(
            shell, tensors, os.fspath(path), batch or samples, large,
            [exporter] if exporter else list(_EXPORTERS))
    found = _file_tensors(os.fspath(path), any_batch)
    names = state_names(module, found)
    with unchanged(module):
        _must_have_all(module, named, names)
    outputs = tuple(k for k in shell.outputs if k != LOSS or not loss)
    frozen = tuple(_frozen(module, names, found))
    return Exported(os.fspath(path), inputs, outputs, frozen, names, used, any_batch,
                    batch or samples, notes)
