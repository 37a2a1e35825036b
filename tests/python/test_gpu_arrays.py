"""The package's arrays on a GPU, on a simulated one: DLPack, and a stand-in of torch.

    PYTHONPATH=python LIBRARY=libnet.so python3 tests/python/test_gpu_arrays.py

LIBRARY: of an MLP with a batch of 8, linked with the fake CUDA runtime (tests/support/paper.sh),
which ends the process if the host touches memory of the device.
"""
import ctypes
import os
import sys
import types
import unittest

import numpy as np

import lowerset
from lowerset import _gpu_arrays
from lowerset._library import Net

# Global, as the fake libraries look for the runtime.
CUDA = ctypes.CDLL(os.environ["LIBRARY"], ctypes.RTLD_GLOBAL)
DTensor = _gpu_arrays._DLTensor


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


capsule_of = ctypes.pythonapi.PyCapsule_New
capsule_of.restype = ctypes.py_object
capsule_of.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def new_stream():
    stream = ctypes.c_void_p()
    assert CUDA.cudaStreamCreateWithFlags(ctypes.byref(stream), 1) == 0
    return stream


class There:
    """A copy of an array on the device, as DLPack gives it, `skip` elements behind its start."""

    kind = 2

    def __init__(self, array, skip=0, strides=None):
        self.array, self.asked = np.ascontiguousarray(array), []
        size = self.array.itemsize
        self.at = ctypes.c_void_p()
        assert CUDA.cudaMalloc(ctypes.byref(self.at),
                               ctypes.c_size_t(self.array.nbytes + skip * size)) == 0
        self.address = self.at.value + skip * size
        self.stream = new_stream()
        assert CUDA.cudaMemcpyAsync(ctypes.c_void_p(self.address),
                                    ctypes.c_void_p(self.array.ctypes.data),
                                    ctypes.c_size_t(self.array.nbytes), 1, self.stream) == 0
        n = self.array.ndim
        self.shape = (ctypes.c_int64 * n)(*self.array.shape)
        self.strides = (ctypes.c_int64 * n)(*strides) if strides else None
        code = {"f": 2, "i": 0, "b": 6}[self.array.dtype.kind]
        self.managed = Managed(DTensor(self.at, self.kind, 0, n, code, 8 * size, 1, self.shape,
                                       self.strides, skip * size), None, None)

    def __dlpack_device__(self):
        return (self.kind, 0)

    def __dlpack__(self, *, stream=None, **_):
        self.asked.append(stream)
        return capsule_of(ctypes.addressof(self.managed), b"dltensor", None)

    def __array__(self, *_, **__):
        return self.array       # by a copy, as JAX has it

    def __len__(self):
        return len(self.array)


def samples(count=8, seed=0):
    draw = np.random.default_rng(seed)
    return draw.random((count, 1, 6, 6), np.float32), np.arange(count) * 3 % 5


class OnTheGpu(unittest.TestCase):
    def setUp(self):
        self.net = Net(os.environ["LIBRARY"])
        self.x, self.y = samples()
        self.want = [self.net.step([self.x, self.y], 0.1) for _ in range(4)]
        self.net.begin()

    def tearDown(self):
        self.net.close()
        sys.modules.pop("torch", None)

    def taken(self, value):
        return self.net._take([value, self.y])[0][0]

    def test_arrays_with_dlpack_stay_there(self):
        for skip in (0, 3):
            x = There(self.x, skip)
            self.net.begin()
            losses = [self.net.step([x, self.y], 0.1) for _ in range(4)]
            self.assertEqual(losses, self.want)
            self.assertEqual(x.asked, [1] * 4)          # CUDA's default stream
            self.assertEqual(self.taken(x).address, x.address)
        self.assertEqual(self.net.evaluate([x, There(self.y)]),
                         self.net.evaluate([self.x, self.y]))
        for a, b in zip(self.net.predict([x, None]).values(),
                        self.net.predict([self.x, None]).values()):
            np.testing.assert_array_equal(a, b)
        self.assertEqual(self.taken(There(self.x, strides=(36, 7, 6, 1))).address % 4, 0)

    def test_capsules_are_taken_once(self):
        x = There(self.x)
        self.assertEqual(self.net.step([x.__dlpack__(), self.y], 0.1), self.want[0])
        for wrong in (There(self.x.astype(np.float64)), There(self.x[:, :, :5])):
            with self.assertRaisesRegex(TypeError, "'x' is a capsule of DLPack that"):
                self.net.step([wrong.__dlpack__(), self.y], 0.1)

    def test_others_come_by_the_host(self):
        for value in (There(self.x.astype(np.float64)), There(self.x, strides=(36, 36, 1, 6))):
            self.assertIsInstance(self.taken(value), np.ndarray)
        there = There(self.x[:, :, :5])
        with self.assertRaisesRegex(ValueError, "'x' takes .samples, 1, 6, 6."):
            self.net.step([there, self.y], 0.1)
        with self.assertRaisesRegex(lowerset.LowersetError, r"label 7\d is not one of") as failed:
            self.net.step([There(self.x), There(self.y + 70)], 0.1)
        self.assertEqual(failed.exception.code, 8)
        self.assertEqual(self.net.step([self.x, self.y], 0.1), self.want[0])

    def test_a_step_need_not_be_waited_for(self):
        for k in range(4):
            self.assertIsNone(self.net.step([There(self.x), self.y], 0.1, wait=False))
            self.assertLessEqual(len(self.net._held), 2)
        self.assertEqual(self.net.wait(), self.want[3])

    def test_a_stream_that_is_none(self):
        self.net._follows = None
        self.net._stream = lambda: 12345
        with self.assertRaisesRegex(lowerset.LowersetError, "no stream of the GPU"):
            self.net.step([self.x, self.y], 0.1)
        del self.net._stream
        self.assertEqual(self.net.step([self.x, self.y], 0.1), self.want[0])

    def test_tensors_and_the_stream_of_torch(self):
        stream = new_stream().value
        seen = []

        class Tensor:
            def __init__(self, there):
                self.there, self.is_cuda, self.shape = there, True, there.array.shape
                self.dtype = types.SimpleNamespace(
                    is_floating_point=there.array.dtype.kind == "f")
            detach = contiguous = lambda self: self
            to = lambda self, dtype: self
            data_ptr = lambda self: self.there.address
            __len__ = lambda self: len(self.there)

        class Copy:
            def __init__(self, scalar):
                self.scalar = scalar
            clone = lambda self: self.scalar.__cuda_array_interface__

        torch = types.ModuleType("torch")
        torch.Tensor, torch.float32, torch.int64 = Tensor, "float32", "int64"
        torch.cuda = types.SimpleNamespace(
            is_initialized=lambda: True,
            current_stream=lambda: seen.append(1) or types.SimpleNamespace(cuda_stream=stream))
        torch.as_tensor = lambda scalar, device: Copy(scalar)
        sys.modules["torch"] = torch
        x = Tensor(There(self.x))
        self.assertEqual(self.taken(x).address, x.there.address)
        for k in range(4):
            loss = self.net.step([x, self.y], 0.1, wait=False)
            value = np.empty((), np.float32)
            copied = CUDA.cudaMemcpyAsync(ctypes.c_void_p(value.ctypes.data),
                                          ctypes.c_void_p(loss["data"][0]), ctypes.c_size_t(4), 2,
                                          ctypes.c_void_p(stream))
            self.assertEqual((copied, loss["shape"], loss["typestr"]), (0, (), "<f4"))
            self.assertAlmostEqual(float(value), self.want[k], places=6)
        self.assertEqual(self.net._follows, stream)
        self.assertTrue(seen)
        del sys.modules["torch"]
        self.assertEqual(self.net.wait(), self.want[3])


if __name__ == "__main__":
    unittest.main()
