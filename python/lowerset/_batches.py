"""Batches of a loader as a step takes them, and the loop over them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ._arrays import as_numpy

# What loaders call a target that has another name here.
_TARGETS = ("label", "labels", "target", "targets", "y")


def is_array(value) -> bool:
    """Whether this is an array of some library."""
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def several(value) -> bool:
    """Whether this is a tuple or list of arrays, and not one array written as lists of numbers."""
    return isinstance(value, tuple) or isinstance(value, list) and bool(value) and all(
        isinstance(v, (tuple, Mapping)) or is_array(v) for v in value)


def _put(found: dict, names: Sequence[str], values, what: str) -> None:
    if isinstance(values, Mapping):
        found.update(values)
        return
    values = list(values) if several(values) else [values]
    if len(values) != len(names):
        raise ValueError(f"there are {len(values)} {what} for {', '.join(names) or 'nothing'}")
    found.update(zip(names, values))


def by_name(x, y, inputs: Sequence[str], targets: Sequence[str],
            unread: frozenset[str] = frozenset()) -> dict:
    """Arrays by the names of inputs and targets.

    x: an array, a tuple of them, or a dict; a tuple without y may have all inputs and targets, or
    be (x, y) itself. unread: inputs that the network does not read.
    """
    found: dict = {}
    if y is None and several(x) and targets:
        x, y = _halves(list(x), len(inputs), len(targets))
    _put(found, inputs, x, "arrays")
    if y is not None:
        _put(found, targets, y, "targets")
    for name in targets:
        if name not in found and len(targets) == 1:
            other = next((k for k in _TARGETS if k in found and k not in inputs), None)
            if other is not None:
                found[name] = found.pop(other)
    wanted = [k for k in (*inputs, *targets) if k not in unread]
    for name in wanted:
        if name not in found:
            raise ValueError(f"there is no array for {'target' if name in targets else 'input'} "
                             f"'{name}'")
    return {k: found[k] for k in wanted}


def _halves(values: list, inputs: int, targets: int) -> tuple:
    if len(values) == inputs + targets and not (several(values[0])
                                                or isinstance(values[0], Mapping)):
        return tuple(values[:inputs]), tuple(values[inputs:])
    if len(values) == 2:
        return values[0], values[1]
    return tuple(values), None


def samples(batch: Mapping) -> int:
    return len(next(iter(batch.values())))


def full(batches: Iterator[dict], least: int, most: int) -> Iterator[dict]:
    """Batches as updates take them: those of a loader, or several of them together where an update
    takes at least so many samples (accumulate=)."""
    held: list[dict] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += samples(batch)
        if count > most and len(held) > 1:
            raise ValueError(f"batches of the loader do not make up an update of {most} samples: "
                             f"{count - samples(batch)} and {samples(batch)} more")
        if count >= least and (least == 1 or count == most):
            yield _joined(held)
            held, count = [], 0
    if held:
        if count < least:
            raise ValueError(f"the loader ends with {count} samples, and an update takes {least} "
                             f"to {most}: leave them out (drop_last)")
        yield _joined(held)


def _joined(held: list[dict]) -> dict:
    if len(held) == 1:
        return held[0]
    return {k: np.concatenate([as_numpy(b[k], k) for b in held]) for k in held[0]}


def mean_loss(evaluate: Callable[[dict], float], batches: Iterable[dict]) -> float:
    total, count = 0.0, 0
    for batch in batches:
        n = samples(batch)
        total, count = total + n * evaluate(batch), count + n
    if count == 0:
        raise ValueError("the loader has no batches")
    return total / count


class _Line:
    """A line on standard error that shows where a run is."""

    def __init__(self, shown: bool):
        self.shown, self.last = shown, 0.0

    def __call__(self, at: dict) -> None:
        now = time.monotonic()
        if self.shown and (now - self.last > 0.1 or at.get("end")):
            self.last = now
            of = f"/{at['of']}" if at.get("of") else ""
            text = f"\repoch {at['epoch']}/{at['epochs']}  {at['batch']}{of}  loss {at['loss']:.4g}"
            if "val_loss" in at:
                text += f"  val {at['val_loss']:.4g}"
            sys.stderr.write(text + ("\n" if at.get("end") else ""))
            sys.stderr.flush()


def fit(t, loader: Iterable, epochs: int, val, lr, progress) -> list[dict]:
    """See Trainer.fit."""
    if iter(loader) is loader and epochs > 1:
        raise ValueError("the loader is an iterator, which ends after one epoch: give a list, a "
                         "DataLoader, or an object whose __iter__ begins anew")
    if epochs > 1 and val is not None and not isinstance(val, (tuple, Mapping)) \
            and iter(val) is val:
        raise ValueError("val is an iterator, which ends after one epoch: give a list, a "
                         "DataLoader, or one batch (x, y)")
    if t.net.private:
        raise ValueError("updates of private training draw their samples from all data: call "
                         "t.step(x, y) with all of them, once for each update")
    tell = progress if callable(progress) else _Line(
        sys.stderr.isatty() if progress is None else bool(progress))
    history = []
    for epoch in range(1, epochs + 1):
        begun, total, count = time.monotonic(), 0.0, 0
        at: dict = {"epoch": epoch, "epochs": epochs, "of": _length(loader), "batch": 0}
        batches = full((t._order(b) for b in loader), t.net.batch_least, t.batch)
        for at["batch"], batch in enumerate(batches, 1):
            n = samples(batch)
            at["loss"] = t.net.step(batch, t.lr if lr is None else lr(t.updates) if callable(lr)
                                    else lr)
            total, count = total + n * at["loss"], count + n
            tell(dict(at))
        if count == 0:
            raise ValueError("the loader has no batches")
        row = {"epoch": epoch, "updates": t.updates, "loss": total / count}
        if val is not None:
            row["val_loss"] = t.evaluate(val)
        row["seconds"] = time.monotonic() - begun
        history.append(row)
        if isinstance(tell, _Line):
            tell({**at, **row, "end": True})
    return history


def _length(loader) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None
