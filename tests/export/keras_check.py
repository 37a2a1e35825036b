#!/usr/bin/env python3
"""tests/export/keras_check.py -- exports Keras models, and compares one step of training.

    keras_check.py LOWERSET [--keep FOLDER]

Needs keras with TensorFlow, and tf2onnx. Each model is exported by Model.export(format="onnx") and
by tf2onnx, and compiled with the mean squared error to random targets. The loss and the gradients
of all trainable weights are compared with TensorFlow's. Names and layouts differ, so gradients are
compared by their sorted elements. Batch norms have their inference form in such files; the
compiler must say so. Prints a row an export, with the outcomes of zoo_check.py; exit 1 if any is
SILENT or broken.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")
import numpy as np
import keras
import tensorflow as tf
import tf2onnx
from keras import Input, Model, Sequential, layers as L


def mlp():
    return Sequential([Input((6,)), L.Dense(8, activation="relu"), L.Dropout(0.0), L.Dense(3)])


def cnn():
    return Sequential([Input((8, 8, 3)), L.Conv2D(4, 3, padding="same"), L.BatchNormalization(),
                       L.ReLU(), L.MaxPooling2D(),
                       L.Conv2D(6, 3, strides=2, padding="same", activation="relu"), L.Flatten(),
                       L.Dense(3)])


def plain_cnn():
    return Sequential([Input((8, 8, 3)), L.Conv2D(4, 3, activation="elu"), L.AveragePooling2D(2),
                       L.Conv2D(6, 2, padding="same"),
                       L.PReLU(shared_axes=[1, 2]), L.Flatten(), L.Dense(3)])


def separable():
    return Sequential([Input((8, 8, 3)), L.SeparableConv2D(6, 3, padding="same"),
                       L.DepthwiseConv2D(3), L.LayerNormalization(),
                       L.Conv2DTranspose(4, 2, strides=2), L.GlobalAveragePooling2D(), L.Dense(3)])


def recurrent():
    return Sequential([Input((5,), dtype="int32"), L.Embedding(11, 6),
                       L.LSTM(7, return_sequences=True), L.GRU(5), L.Dense(3)])


def transformer():
    x = Input((5,), dtype="int32")
    h = L.Embedding(11, 8)(x)
    h = L.LayerNormalization()(h + L.MultiHeadAttention(2, 4)(h, h))
    h = h + L.Dense(8)(L.Dense(16, activation="silu")(h))
    return Model(x, L.Dense(3)(L.GlobalAveragePooling1D()(h)))


def causal():
    return Sequential([Input((9, 4)), L.Conv1D(6, 3, padding="causal", activation="silu"),
                       L.AveragePooling1D(2), L.GroupNormalization(2), L.Flatten(), L.Dense(3)])


NETS = [mlp, cnn, plain_cnn, separable, recurrent, transformer, causal]


def batch(model):
    rng = np.random.RandomState(0)
    shape = (4, *model.input_shape[1:])
    x = rng.randint(0, 11, shape).astype(np.int32) if "int" in model.inputs[0].dtype \
        else rng.standard_normal(shape).astype(np.float32)
    return x, rng.standard_normal((4, 3)).astype(np.float32)


def reference(model, x, want):
    """Loss and gradients, with batch norms in inference form. Biases keep their zeros: exporters
    merge equal tensors."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=False) - want) ** 2)
    grads = tape.gradient(loss, model.trainable_weights)
    return float(loss), {w.path: tf.convert_to_tensor(g).numpy()
                         for w, g in zip(model.trainable_weights, grads)}


def export(call, model, path):
    if call == "keras":
        model.export(str(path), format="onnx", verbose=False)
        return
    spec = tf.TensorSpec((None, *model.input_shape[1:]), model.inputs[0].dtype, name="x")
    tf2onnx.convert.from_function(tf.function(lambda x: model(x)), input_signature=[spec],
                                  output_path=str(path), opset=17)


def compare(loss, grads, dump):
    if not abs(dump["loss"][0] / loss - 1) <= 1e-4:
        return f"loss is {dump['loss'][0]:.6g}, not {loss:.6g}"
    got = {k[5:]: np.sort(v.reshape(-1)) for k, v in dump.items() if k.startswith("grad/")}
    lost = []
    for k, v in grads.items():
        v = np.sort(v.reshape(-1))
        same = [m for m, g in got.items() if g.size == v.size
                and np.abs(g - v).max() <= 1e-3 * max(np.abs(v).max(), 1e-3)]
        if same:
            del got[same[0]]
        else:
            lost.append(k)
    return "; ".join([f"{k} is not trained likewise" for k in lost]
                     + [f"{k} is trained" for k, g in got.items() if np.abs(g).max() > 1e-6])


def check(model, call, lowerset, folder):
    x, want = batch(model)
    loss, grads = reference(model, x, want)
    try:
        export(call, model, folder / f"{call}.onnx")
    except Exception as e:      # an exporter may refuse in any way; that is an outcome
        return "unmade", f"{type(e).__name__}: {str(e).splitlines()[0][:100]}"
    import onnx
    name = onnx.load(folder / f"{call}.onnx").graph.input[0].name
    np.savez(folder / "data.npz", **{name: x, "label": want})
    made = subprocess.run([lowerset, "compile", folder / f"{call}.onnx", "--batch", "4",
                           "-O0", "--strategy=none", "--loss=mse",
                           "--optimizer=sgd:momentum=0", "--store-gradients", "-o", folder / "t"],
                          capture_output=True, text=True)
    said = [s.split(".onnx: ")[-1] for s in made.stderr.splitlines() if "warning" in s
            or "error" in s]
    if made.returncode != 0:
        return "refused" if made.returncode < 6 else "broken", said[-1] if said else ""
    ran = subprocess.run([folder / "t", "--data", folder / "data.npz",
                          "--no-shuffle", "--progress=none", "--threads=1", "--lr=0",
                          "--steps=1", "--dump", folder / "dump.npz"], capture_output=True,
                         text=True)
    if ran.returncode != 0:
        return "broken", ran.stderr.strip()[-200:]
    differs = compare(loss, grads, dict(np.load(folder / "dump.npz")))
    if not differs:
        return "equal", said[0][:150] if said else ""
    return ("warned", f"{said[0][:200]} [{differs[:100]}]") if said else ("SILENT", differs)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("lowerset", type=pathlib.Path)
    p.add_argument("--keep", type=pathlib.Path)
    a = p.parse_args()
    bad, made = 0, tempfile.TemporaryDirectory()
    for make in NETS:
        for call in ("keras", "tf2onnx"):
            keras.utils.set_random_seed(1)
            folder = (a.keep or pathlib.Path(made.name)).resolve() / make.__name__
            folder.mkdir(parents=True, exist_ok=True)
            model = make()
            # the exporter wants a model that was called
            model.predict(batch(model)[0], verbose=0)
            got, why = check(model, call, a.lowerset.resolve(), folder)
            print(f"{make.__name__:16} {call:8} {got:8} {why}", flush=True)
            bad += got in ("SILENT", "broken")
    return 1 if bad else 0


sys.exit(main())
