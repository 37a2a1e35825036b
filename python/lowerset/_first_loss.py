"""The library beside the module that it was made from: outputs, and the first loss."""

from __future__ import annotations

import numpy as np

from ._arrays import as_numpy, is_torch
from ._export import _arguments, flat_outputs, named_inputs, tiled, unchanged
from .errors import CheckError

# How much results may differ, in parts of the largest one: rounding, of each type.
_EXACT, _ROUGH = 1e-3, 5e-2


# Options that make the loss, or the form, another than the module's own.
_OTHER_LOSS = {"class_axis", "label_smoothing", "class_weights", "ignore_index", "loss_input"}
_OTHER_FORM = {"dropout", "bn", "microbatches", "accumulate", "dp"}


def must_agree(t, module, example, loss, target, options: dict) -> None:
    """Raises CheckError if the library's evaluation form gives other outputs than the module's,
    or if its loss, in evaluation or in training form, is another.

    options: of the trainer, by keyword. The state is as from the file afterwards.
    """
    import torch
    named = named_inputs(module, example)
    tensors = [k for k, v in named.items() if is_torch(v)]
    count = min(max(2, len(named[tensors[0]])), t.batch)
    named.update({k: tiled(named[k], count) for k in tensors})
    numbers = f"{options.get('precision')} {options.get('eval_precision')}"
    short = any(p.element_size() < 4 for p in module.parameters())
    part = _ROUGH if short or "16" in numbers or "tf32" in numbers else _EXACT
    told = not _OTHER_LOSS & options.keys()
    with unchanged(module), torch.no_grad():
        modes = [(m, m.training) for m in module.modules()]
        module.eval()
        out = _run(module, named)
        y = _target(t, out, loss, target, count)
        want = _loss(loss, out, y) if told else None
        for m, mode in modes:
            m.training = mode
        same = want is not None and not _OTHER_FORM & options.keys()
        trained = _training_loss(module, named, loss, y) if same else None
    arrays = {k: named[k] for k in tensors}
    _compare_outputs(t, arrays, flat_outputs(out), part)
    arrays = {**arrays, **y}
    if want is not None:
        _compare(t.net.evaluate(t._order(arrays)), want, part, "the loss in evaluation form")
    if trained is not None:
        found = t.net.step(t._order(arrays), 0.0)
        t.net.begin(options.get("seed", 0))
        _compare(found, trained, part, "the loss in training form")


def _run(module, named: dict):
    by_name, ordered = _arguments(module, named)
    return module(*ordered, **by_name)


def _compare(found: float, want: float, part: float, what: str) -> None:
    if np.isfinite(want) and abs(found - want) > part * (1 + abs(want)):
        raise CheckError(f"{what} is {found:.7g}, and the module's own {want:.7g}: the file is "
                            "not the module", code=6,
                            hint="check=False trains it nevertheless; export it another way and "
                            "give the path, or say what is random or changed in forward()")


def _compare_outputs(t, arrays: dict, wanted: dict, part: float) -> None:
    given = {k: v for k, v in arrays.items() if k not in t._unread}
    found = t.predict(given)
    found = found if isinstance(found, dict) else {t.outputs[0]: found}
    for name, value in found.items():
        if name not in wanted or not wanted[name].is_floating_point():
            continue
        found, want = (as_numpy(v, name).astype(np.float64) for v in (value, wanted[name]))
        if found.shape != want.shape:
            raise CheckError(f"output '{name}' is {list(found.shape)}, and the module's own "
                                f"{list(want.shape)}", code=6)
        seen = np.isfinite(want)
        if not seen.any():
            continue
        off = np.abs(found - want)[seen].max()
        if not off <= part * (0.1 + np.abs(want[seen]).max()):
            raise CheckError(f"output '{name}' in evaluation form differs from the module's own "
                                f"by {off:.3g} (its largest is {np.abs(want[seen]).max():.3g}): "
                                "the file is not the module", code=6,
                                hint="check=False trains it nevertheless")


def _class_axis(out, label: tuple[int, ...]) -> int | None:
    """The axis without which an output has the label's shape: the last such one."""
    axes = [k for k in range(1, out.ndim)
            if tuple(out.shape[1:k]) + tuple(out.shape[k + 1:]) == label]
    return axes[-1] if len(axes) == 1 else None


def _target(t, out, loss, target, count: int) -> dict:
    """Targets by name: the example's, or some that are drawn."""
    import torch
    if not t.targets:
        return {}
    if target is not None:
        given = target if isinstance(target, dict) else dict(zip(
            t.targets, target if isinstance(target, (tuple, list)) else [target]))
        rows = {r.name: count * t.net.rows_of_sample(r) for r in t.net.inputs}
        return {k: tiled(v if is_torch(v) else torch.from_numpy(as_numpy(v, k).copy()), rows[k])
                for k, v in given.items()}
    flat = list(flat_outputs(out).values())
    made = {}
    draw = torch.Generator().manual_seed(0)
    for row in t.net.inputs:
        if row.name not in t.targets:
            continue
        shape = (count * t.net.rows_of_sample(row), *row.shape[1:])
        if row.dtype.kind == "i":
            axis = _class_axis(flat[0], row.shape[1:]) if flat else None
            classes = flat[0].shape[axis] if axis is not None else 2
            made[row.name] = torch.randint(0, classes, shape, generator=draw)
        else:
            made[row.name] = torch.rand(shape, generator=draw)
    return made


def _loss(loss, out, y: dict) -> float | None:
    """The module's own loss, if it can be told from outside."""
    import torch
    from torch.nn import functional as F
    flat = flat_outputs(out)
    first = next(iter(flat.values()))
    target = next(iter(y.values())).to(first.device) if y else None
    names = {"ce": F.cross_entropy, "mse": F.mse_loss, "l1": F.l1_loss,
             "bce": F.binary_cross_entropy_with_logits, "nll": F.nll_loss}
    if isinstance(loss, torch.nn.Module):
        function, name = loss, type(loss).__name__
    elif callable(loss):
        return float(loss(out, target))
    elif loss == "graph":
        found = [v for k, v in flat.items() if v.numel() == 1]
        return float(found[0]) if len(found) == 1 else None
    else:
        name = loss or "ce"
        function = names.get(name)
    if function is None or target is None:
        return None
    if name in ("ce", "nll", "CrossEntropyLoss", "NLLLoss"):
        axis = _class_axis(first, tuple(target.shape[1:]))
        if axis is None:
            return None
        first = first.movedim(axis, 1)
    return float(function(first, target))


def _training_loss(module, named, loss, y) -> float | None:
    """The loss in the form that the module is in, unless it draws random numbers."""
    import torch
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        try:
            found.append(_loss(loss, _run(module, named), y))
        except ValueError:      # a norm of one sample
            return None
    return found[0] if found[0] == found[1] else None
