"""A library that `lowerset compile --emit=lib` made, by ctypes.

A library is a shared object whose header (net.h) says what its functions take; this module knows
that interface by heart and reads no header. State and arena are arrays of this process.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrays import Array, as_input, as_numpy
from ._gpu_arrays import OnGpu, Scalar, current_stream
from .errors import LowersetError, ModelError, UsageError, error_of

_ROLES = ("input", "parameter", "frozen", "statistic", "moment", "average", "sum", "target",
          "output")
_KINDS = ("real", "i8", "i4", "?", "u1", "u2")  # the last one: bits of a bfloat16


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 600)]


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("role", ctypes.c_int), ("type", ctypes.c_int),
                ("channels_last", ctypes.c_int), ("rank", ctypes.c_int),
                ("dim", ctypes.c_int64 * 8), ("data", ctypes.c_void_p)]


@dataclass(frozen=True)
class Tensor:
    """A row of a library's tables.

    shape: in logical order (N, C, spatial ...); of inputs and outputs that have samples, the first
        number is the samples of one batch
    role: input, target, output, parameter, frozen, statistic, moment, average or sum
    """

    name: str
    role: str
    dtype: np.dtype
    shape: tuple[int, ...]
    channels_last: bool = False

    @classmethod
    def _read(cls, t: _Tensor, real_bytes: int) -> Tensor:
        dtype = np.dtype(f"f{real_bytes}" if t.type == 0 else _KINDS[t.type])
        return cls(t.name.decode(), _ROLES[t.role], dtype, tuple(t.dim[:t.rank]),
                   bool(t.channels_last))


def _room(size: int, align: int) -> np.ndarray:
    """`size` bytes at a multiple of `align`."""
    whole = np.empty(size + align, np.uint8)
    start = -whole.ctypes.data % align
    return whole[start:start + size]


class Net:
    """An instance of a library: its own weights, statistics and moments.

    Net("libnet.so", prefix="net", threads=4, seed=0)

    path: the shared object; prefix: what its symbols begin with; threads: that compute, the
    caller's among them (default: all cores that the process may use); seed: of dropout.
    Two instances share nothing. An instance runs one call at a time.

    inputs (targets behind them), outputs, state: tables of Tensor; batch: samples of a full update;
    batch_least: the fewest that an update takes; rate: what --lr or the optimizer has as the rate;
    private: whether updates are (--dp), which take all data, of any number of samples, and draw
    their batch from them; on_gpu: whether it computes on a GPU, where tensors of torch and arrays
    with DLPack may lie, too, which then are not copied to the host, but for classes and indices.
    Work is done in the order of torch's current stream.
    """

    def __init__(self, path: str | os.PathLike[str], *, prefix: str = "net",
                 threads: int | None = None, seed: int = 0):
        self.path, self.prefix = os.fspath(path), prefix
        self._self: int | None = None
        self._held: list = []       # arrays on a GPU that work under way may read
        self._follows: int | None = None        # the stream that was set
        self._busy = threading.Lock()
        try:
            self._lib: ctypes.CDLL | None = ctypes.CDLL(os.path.abspath(self.path))
        except OSError as e:
            raise ModelError(f"{self.path} cannot be loaded: {e}") from None
        if not hasattr(self._lib, f"{prefix}_step"):
            raise UsageError(f"{self.path} has no function {prefix}_step: it is no library of "
                             "lowerset compile --emit=lib, or has another --prefix")
        self._error = _Error()
        self._declare()
        self.batch: int = self._call("batch")
        self.batch_least: int = self._call("batch_least")
        self.plan_hash: str = self._call("plan_hash").decode()
        self.rate: float = self._call("rate")
        self.private = bool(self._call("private"))
        threads = threads or len(os.sched_getaffinity(0))
        self.on_gpu = bool(self._call("on_gpu"))
        state, arena = ((0, 0) if self.on_gpu       # it takes its memory there itself
                        else (self._call("state_bytes"), self._call("arena_bytes")))
        align = self._call("align")
        self._state, self._arena = _room(state, align), _room(arena, align)
        self._self = self._call("open", self._state.ctypes.data, self._state.size,
                                self._arena.ctypes.data, self._arena.size, threads, seed,
                                self._error)
        if self._self is None:
            raise self._failure()
        self._tables()

    # ---- functions of the library ----

    def _declare(self) -> None:
        p, i64, size = ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t
        error, tensor = ctypes.POINTER(_Error), ctypes.POINTER(_Tensor)
        loss, number = ctypes.POINTER(ctypes.c_double), ctypes.c_int
        self._function = {}
        for name, result, takes in (
                ("state_bytes", size, ()), ("arena_bytes", size, ()), ("align", size, ()),
                ("batch", i64, ()), ("rate", ctypes.c_double, ()), ("private", number, ()),
                ("batch_least", i64, ()), ("micro_batch", i64, ()),
                ("plan_hash", ctypes.c_char_p, ()),
                ("real_bytes", number, ()), ("on_gpu", number, ()),
                ("open", p, (p, size, p, size, number, ctypes.c_uint64, error)),
                ("close", None, (p,)), ("updates", i64, (p,)),
                ("step", number, (p, p, i64, ctypes.c_double, loss, error)),
                ("wait", number, (p, loss, error)),
                ("set_stream", number, (p, p, error)),
                ("loss_on_gpu", number, (p, ctypes.POINTER(p), error)),
                ("evaluate", number, (p, p, i64, loss, error)),
                ("predict", number, (p, p, i64, p, error)),
                ("gradients", number, (p, p, i64, p, loss, error)),
                ("begin", number, (p, ctypes.c_uint64, error)),
                ("spent", number, (p, loss, loss, error)),
                ("save", number, (p, ctypes.c_char_p, error)),
                ("load", number, (p, ctypes.c_char_p, error)),
                ("read", number, (p, number, p, error)), ("write", number, (p, number, p, error)),
                ("input", number, (number, tensor)), ("output", number, (number, tensor)),
                ("state", number, (p, number, tensor))):
            function = getattr(self._lib, f"{self.prefix}_{name}", None)
            if function is not None:
                function.restype, function.argtypes = result, takes
                self._function[name] = function

    def _call(self, name: str, *arguments):
        return self._function[name](*arguments)

    def _failure(self) -> LowersetError:
        return error_of(self._error.code, self._error.text.decode(errors="replace"))

    def _must(self, name: str, *arguments, stream: int | None = None) -> None:
        """Calls a function of this instance that returns an error's number; on a GPU in the order
        of the stream."""
        with self._busy:
            if self._self is None:
                raise ValueError("the net is closed")
            if stream != self._follows and stream is not None:
                if self._function["set_stream"](self._self, stream, self._error) != 0:
                    raise self._failure()
                self._follows = stream
            if self._function[name](self._self, *arguments, self._error) != 0:
                raise self._failure()

    def _tables(self) -> None:
        t, real_bytes = _Tensor(), self._call("real_bytes")
        tables: dict[str, list[Tensor]] = {"input": [], "state": [], "output": []}
        for kind, rows in tables.items():
            own = (self._self,) if kind == "state" else ()
            while self._call(kind, *own, len(rows), t) == 0:
                rows.append(Tensor._read(t, real_bytes))
        self.inputs, self.state, self.outputs = (tuple(tables[k])
                                                 for k in ("input", "state", "output"))
        self._at = {s.name: k for k, s in enumerate(self.state)}
        self._pointers = ctypes.c_void_p * len(self.inputs)
        self._slice = self._call("micro_batch")     # samples

    # ---- runs ----

    def _take(self, arrays: Sequence | Mapping,
              optional: frozenset[str] = frozenset()) -> tuple[list[Array | None], int]:
        """Arrays of all inputs, and their samples. optional: roles of inputs that may lack."""
        if isinstance(arrays, Mapping):
            arrays = [arrays.get(t.name) for t in self.inputs]
        if len(arrays) != len(self.inputs):
            raise ValueError(f"there are {len(arrays)} arrays for {len(self.inputs)} inputs "
                             f"({', '.join(t.name for t in self.inputs)})")
        taken: list[Array | None] = []
        first = None
        for array, t in zip(arrays, self.inputs):
            if array is None:
                if t.role not in optional:
                    raise ValueError(f"there is no array for {t.role} '{t.name}'")
                taken.append(None)
                continue
            if not t.shape:     # a number
                array = as_numpy(array, t.name).reshape(-1)
            one = as_input(array, t.name, t.dtype, t.shape[1:], self._stream())
            taken.append(one)
            each = self.rows_of_sample(t)
            if each == 0:       # without samples
                if len(one) != (*t.shape, 1)[0]:
                    raise ValueError(f"'{t.name}' takes {list(t.shape)}, and the array is "
                                     f"{[len(one), *t.shape[1:]]}")
                continue
            if len(one) % each != 0:
                raise ValueError(f"'{t.name}' takes {each} rows for each sample, and the array has "
                                 f"{len(one)}")
            samples = len(one) // each
            first = first or (t.name, samples)
            if samples != first[1]:
                raise ValueError(f"'{t.name}' has {samples} samples, and '{first[0]}' has "
                                 f"{first[1]}")
        if first is None:
            raise ValueError("there are no arrays")
        return taken, first[1]

    def rows_of_sample(self, t: Tensor) -> int:
        """Rows that a sample has along the first axis of an input or output: mostly 1, and T where
        samples and tokens are one axis [N * T, C]; 0 if that axis has no samples."""
        return t.shape[0] // self._slice if t.shape and t.shape[0] % self._slice == 0 else 0

    def _stream(self) -> int | None:
        return current_stream() if self.on_gpu else None

    def _compute(self, name: str, taken: Sequence[Array | None], *arguments) -> None:
        """Calls a function that takes arrays. Those on a GPU are kept until the call after the
        next one, as so many steps are under way."""
        self._held = [*self._held[-1:], [a for a in taken if isinstance(a, OnGpu)]]
        self._must(name, self._point(taken), *arguments, stream=self._stream())

    def _point(self, taken: Sequence[Array | None]):
        """Their addresses. Their memory must live until the call is over."""
        return self._pointers(*[None if a is None else a.__array_interface__["data"][0]
                                for a in taken])

    def step(self, arrays: Sequence | Mapping, rate: float, wait: bool = True) -> Any:
        """One update over batch_least to batch samples; the loss before it.

        arrays: one for each input in order, or by name, of shape [samples, ...].
        wait: whether to wait for a GPU. If not, an error of the update is raised by a later call,
        and the loss is a tensor of torch on the GPU, or None without torch and where an update has
        several batches; wait() gives the last one.
        Raises ValueError or TypeError for arrays that do not fit; LowersetError with code 7 if the
        loss is not finite, 8 for labels out of range.
        """
        taken, samples = self._take(arrays)
        if not self.private and not self.batch_least <= samples <= self.batch:
            raise ValueError(f"an update takes {self._samples()} samples, and '"
                             f"{self.inputs[0].name}' has {samples}")
        loss = ctypes.c_double()
        self._compute("step", taken, samples, rate, loss if wait else None)
        return loss.value if wait else self._loss_there()

    def _loss_there(self):
        """A copy of the last loss, on the GPU."""
        torch, at = sys.modules.get("torch"), ctypes.c_void_p()
        if not self.on_gpu or torch is None or self._function["loss_on_gpu"](self._self, at,
                                                                             self._error) != 0:
            return None
        dtype = np.dtype(f"f{self._call('real_bytes')}")
        return torch.as_tensor(Scalar(at.value, dtype), device="cuda").clone()

    def wait(self) -> float:
        """Waits for all updates; the loss of the last one."""
        loss = ctypes.c_double()
        self._must("wait", loss)
        return loss.value

    def _samples(self) -> str:
        return (f"{self.batch_least} to {self.batch}" if self.batch_least < self.batch
                else str(self.batch))

    def evaluate(self, arrays: Sequence | Mapping) -> float:
        """The mean loss of the evaluation form over any number of samples."""
        taken, samples = self._take(arrays)
        loss = ctypes.c_double()
        self._compute("evaluate", taken, samples, loss)
        return loss.value

    def predict(self, arrays: Sequence | Mapping,
                outputs: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Outputs of the evaluation form by name, for any number of samples.

        arrays: as for step; targets may be None, or lack in a dict. outputs: those wanted (default:
        all). An output whose first axis has no samples has its value for the last batch.
        """
        taken, samples = self._take(arrays, frozenset(("target",)))
        found, to = {}, (ctypes.c_void_p * len(self.outputs))()
        for k, t in enumerate(self.outputs):
            if outputs is None or t.name in outputs:
                found[t.name] = np.empty(self._rows(t, samples), t.dtype)
                to[k] = found[t.name].ctypes.data
        self._compute("predict", taken, samples, to)
        return found

    def _rows(self, t: Tensor, samples: int) -> tuple[int, ...]:
        """The shape for all samples."""
        each = self.rows_of_sample(t)
        return (each * samples, *t.shape[1:]) if each > 0 else t.shape

    def gradients(self, arrays: Sequence | Mapping,
                  names: Sequence[str] | None = None) -> tuple[float, dict[str, np.ndarray]]:
        """The loss, and gradients by the names of parameters (default: all), of an update over
        these samples, before clipping. The state stays as it is; the call takes as much memory
        again."""
        taken, samples = self._take(arrays)
        found, to = {}, (ctypes.c_void_p * len(self.state))()
        for k, t in enumerate(self.state):
            if t.role == "parameter" and (names is None or t.name in names):
                found[t.name] = np.empty(t.shape, t.dtype)
                to[k] = found[t.name].ctypes.data
        loss = ctypes.c_double()
        self._compute("gradients", taken, samples, to, loss)
        return loss.value, found

    def begin(self, seed: int = 0) -> None:
        """The weights of the model's file again, and no updates done."""
        self._must("begin", seed)

    def spent(self) -> tuple[float, float]:
        """Of private training: the updates so far are (epsilon, delta)-private."""
        epsilon, delta = ctypes.c_double(), ctypes.c_double()
        self._must("spent", epsilon, delta)
        return epsilon.value, delta.value

    @property
    def updates(self) -> int:
        """Updates done."""
        return self._call("updates", self._self) if self._self is not None else 0

    # ---- the state ----

    def index(self, name: str) -> int:
        """Where a tensor stands in `state`. Raises KeyError if there is none of this name."""
        return self._at[name]

    def read(self, name: str) -> np.ndarray:
        """A copy of a tensor of the state, in logical order."""
        k = self._at[name]
        to = np.empty(self.state[k].shape, self.state[k].dtype)
        self._must("read", k, to.ctypes.data)
        return to

    def write(self, name: str, value) -> None:
        """Sets a tensor of the state. value: of its shape, converted to its type."""
        k = self._at[name]
        t = self.state[k]
        value = np.ascontiguousarray(value, t.dtype)
        if value.shape != t.shape:
            raise ValueError(f"'{name}' is {list(t.shape)}, and the array is {list(value.shape)}")
        self._must("write", k, value.ctypes.data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint of the trainer's format (safetensors)."""
        self._must("save", os.fsencode(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a checkpoint, bit for bit. One that is refused changes nothing."""
        self._must("load", os.fsencode(path))

    def close(self) -> None:
        """Ends threads and gives the memory back. A second call does nothing."""
        with self._busy:
            if self._self is not None:
                self._call("close", self._self)
            self._self = None
            self._held = []
            self._state = self._arena = np.empty(0, np.uint8)

    def __enter__(self) -> Net:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_self", None) is not None:
            self.close()
