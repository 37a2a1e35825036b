"""tests/export/rewrite.py -- what other programs make of a file of the TorchScript exporter
in training form.

sim: onnxsim; slim: onnxslim; ort: onnxruntime with its extended optimizations; fused: onnxruntime's
optimizer of transformers.
"""
import onnx


def by_sim(model, path, to, name):
    import onnxsim
    made, same = onnxsim.simplify(model)
    if not same:
        raise ValueError("onnxsim says that its result differs")
    onnx.save(made, to)


def by_slim(model, path, to, name):
    import onnxslim
    onnx.save(onnxslim.slim(model), to)


def by_ort(model, path, to, name):
    import onnxruntime
    o = onnxruntime.SessionOptions()
    o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    o.optimized_model_filepath, o.log_severity_level = str(to), 4
    onnxruntime.InferenceSession(str(path), o, providers=["CPUExecutionProvider"])


def by_fused(model, path, to, name):
    from onnxruntime.transformers import optimizer
    family = next((k for k in ("gpt2", "vit", "bart", "t5", "clip", "swin") if name.startswith(k)),
                  "bert")
    optimizer.optimize_model(str(path), model_type=family, opt_level=0).save_model_to_file(str(to))


REWRITES = {"sim": by_sim, "slim": by_slim, "ort": by_ort, "fused": by_fused}


def rewrite(call, path, to, name):
    """path: the file of the TorchScript exporter. Raises what the program raises."""
    REWRITES[call](onnx.load(path), path, to, name)
