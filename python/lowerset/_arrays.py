"""Arrays of any library as inputs: by the buffer protocol or DLPack, without a copy where they
have the right type and lie as C has them."""

from __future__ import annotations

import sys
from typing import Union

import numpy as np

from ._gpu_arrays import OnGpu, on_gpu


def is_torch(value) -> bool:
    """Whether this is a tensor of torch, which is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_numpy(value, name: str = "the array") -> np.ndarray:
    """The values as a numpy array: a view where the memory is the host's, else a copy.

    value: an array of numpy, a tensor of torch on any device, anything with DLPack (JAX) or the
    buffer protocol, or numbers in lists.
    """
    if isinstance(value, np.ndarray):
        return value
    if is_torch(value):
        return _from_torch(value)
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError):
            pass        # on another device, or of a type that DLPack lacks: by a copy
    if type(value).__name__ == "PyCapsule":
        raise TypeError(f"'{name}' is a capsule of DLPack that is not on the GPU, has another type "
                        "or shape, or was taken before: give the array itself")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as e:
        raise TypeError(f"'{name}' is a {type(value).__name__} that is no array: {e}") from None
    if array.dtype == object:
        raise TypeError(f"'{name}' is a {type(value).__name__} that is no array of numbers")
    return array


def _from_torch(value) -> np.ndarray:
    value = value.detach()
    if value.device.type != "cpu":
        value = value.cpu()
    if str(value.dtype) == "torch.bfloat16":
        value = value.float()       # numpy has no such type
    return value.resolve_conj().resolve_neg().numpy()


def _kind(dtype: np.dtype) -> str:
    return {"f": "real numbers", "i": "integers", "b": "booleans"}[dtype.kind]


def _convert(array: np.ndarray, name: str, dtype: np.dtype) -> np.ndarray:
    """The array in another type, if no value changes its meaning."""
    refused = TypeError(f"'{name}' takes {_kind(dtype)} ({dtype}), and the array has {array.dtype}")
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise refused
    if dtype.kind == "f":
        return array.astype(dtype)
    if array.dtype.kind not in "iub":
        raise refused
    if dtype.kind == "b":
        if array.size and not ((array == 0) | (array == 1)).all():
            raise ValueError(f"'{name}' takes booleans, and the array has integers other than 0 "
                             "and 1")
        return array.astype(dtype)
    if array.size and array.dtype.itemsize >= dtype.itemsize and array.dtype.kind != "b":
        range_ = np.iinfo(dtype)
        if int(array.max()) > range_.max or int(array.min()) < range_.min:
            raise ValueError(f"'{name}' takes {dtype}, and the array has larger numbers")
    return array.astype(dtype)


Array = Union[np.ndarray, OnGpu]


def as_input(value, name: str, dtype: np.dtype, row: tuple[int, ...],
             stream: int | None = None) -> Array:
    """The array of an input: C-contiguous, [samples, *row] of `dtype`, without a copy if it is so.
    stream: of a GPU, where the array may lie, and stays.

    Raises TypeError for numbers of the wrong kind (reals for classes), ValueError for shapes that
    do not fit and for no samples; both name the input, what it has and what is wanted.
    """
    there = on_gpu(value, dtype, row, stream) if stream is not None else None
    if there is not None:
        return there
    array = as_numpy(value, name)
    if array.shape[1:] != row or array.ndim == 0:
        wanted = ", ".join(["samples", *map(str, row)])
        hint = ("; it is one sample, which x[None] makes a batch" if array.shape == row else "")
        raise ValueError(f"'{name}' takes [{wanted}], and the array is {list(array.shape)}{hint}")
    if len(array) == 0:
        raise ValueError(f"'{name}' has no samples")
    if array.dtype != dtype:
        array = _convert(array, name, dtype)
    return np.ascontiguousarray(array)
