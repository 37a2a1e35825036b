"""Arrays on a GPU, as far as a library is told where they lie: tensors of torch, and anything with
DLPack. Their memory is not copied here, and torch is not imported for them.

DLPack's rule is that the consumer names its stream, and the producer makes the data ready there.
The stream is that of torch, if torch uses a GPU in this process, else CUDA's default stream."""

from __future__ import annotations

import ctypes
import sys

import numpy as np

_CUDA = 2               # DLDeviceType; memory that both sides read is read by the host
_DEFAULT = 1            # cudaStreamLegacy, which DLPack numbers so, too
_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}       # DLDataTypeCode


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def current_stream() -> int:
    """The stream that work on arrays is issued to: a cudaStream_t."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return torch.cuda.current_stream().cuda_stream or _DEFAULT
    return _DEFAULT


class OnGpu:
    """An array on a GPU, as far as an array is asked for its place and length. `owner` keeps the
    memory."""

    def __init__(self, address: int, length: int, owner):
        self.address, self.length, self.owner = address, length, owner

    def __len__(self) -> int:
        return self.length

    @property
    def __array_interface__(self) -> dict:
        return {"data": (self.address, True)}


class Scalar:
    """A number on a GPU, for torch.as_tensor."""

    def __init__(self, address: int, dtype: np.dtype):
        self.__cuda_array_interface__ = {"shape": (), "typestr": dtype.str, "version": 3,
                                         "data": (address, False), "strides": None}


def _torch_tensor(value, dtype: np.dtype, row: tuple[int, ...]) -> OnGpu | None:
    import torch
    if not (value.is_cuda and tuple(value.shape[1:]) == row and len(value) > 0
            and value.dtype.is_floating_point == (dtype.kind == "f")):
        return None
    value = value.detach().to(getattr(torch, dtype.name)).contiguous()
    return OnGpu(value.data_ptr(), len(value), value)


def _view(capsule) -> _DLTensor | None:
    """What a capsule has; None if it has been taken, or is of a form of DLPack that is not read."""
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = (ctypes.py_object,
                                                                          ctypes.c_char_p)
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    if not api.PyCapsule_IsValid(capsule, b"dltensor"):
        return None
    return _DLTensor.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor"))


def _dlpack(capsule, dtype: np.dtype, row: tuple[int, ...]) -> OnGpu | None:
    """The capsule frees the memory when it goes, unless somebody else has taken it."""
    t = _view(capsule)
    if t is None or t.device_type != _CUDA or t.ndim != len(row) + 1:
        return None
    shape = tuple(t.shape[:t.ndim])
    apart = [int(np.prod(shape[k + 1:])) for k in range(t.ndim)]
    lies = not t.strides or all(t.strides[k] == apart[k] or shape[k] == 1 for k in range(t.ndim))
    if (t.code, t.bits, t.lanes) != (_KINDS.get(dtype.kind), 8 * dtype.itemsize, 1) or not lies \
            or shape[1:] != row or shape[0] == 0:
        return None
    return OnGpu(t.data + t.byte_offset, shape[0], capsule)


def on_gpu(value, dtype: np.dtype, row: tuple[int, ...], stream: int) -> OnGpu | None:
    """An array [samples, *row] of dtype that a library reads where it lies, ready for work on the
    stream; None: it lies on the host, or has another type, shape or order. (torch's own tensors
    are converted on the GPU.)"""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_tensor(value, dtype, row)
    if type(value).__name__ == "PyCapsule":
        return _dlpack(value, dtype, row)
    if not hasattr(value, "__dlpack__") or value.__dlpack_device__()[0] != _CUDA:
        return None
    return _dlpack(value.__dlpack__(stream=stream), dtype, row)
