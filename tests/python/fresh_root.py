"""Trains a small U-Net by the program and by the package, in a root that has nothing else:
fresh_roots.sh. Ends with a line of what was reached."""
import subprocess
import sys
from pathlib import Path

import numpy as np

import lowerset

program = str(Path(sys.executable).parent / "lowerset")
subprocess.run([program, "model", "unet", "--width=8", "--depth=2", "--size=32", "-o", "unet.onnx"],
               check=True)
lowerset.compile("unet.onnx", "unet", batch=8, budget="60%")
subprocess.run(["./unet", "--data", "synthetic:64", "--epochs", "2", "--export", "trained.onnx"],
               check=True)
with lowerset.trainer("unet.onnx", batch=8, budget="60%", optimizer="adam", lr=2e-3) as t:
    x = np.random.default_rng(0).random((64, *t.net.inputs[0].shape[1:]), np.float32)
    y = (x[:, :1] > 0.5).astype(np.int64).reshape((64, *t.net.inputs[1].shape[1:]))
    rows = t.fit([(x[k:k + 8], y[k:k + 8]) for k in range(0, 64, 8)], epochs=5)
first, last = rows[0]["loss"], rows[-1]["loss"]
if not last < 0.75 * first:
    sys.exit(f"the loss is {last}, and was {first}")
cc = next(t for t in Path(sys.prefix).glob("lib/python3*/site-packages/ziglang/zig"))
print(f"a U-Net trained by {cc.parent.name}'s compiler: loss {first:.3f}, then {last:.3f}")
