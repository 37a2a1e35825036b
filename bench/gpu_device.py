"""Describes the machine: versions, the device's properties as cuDNN has them, and its clocks. Run
as a program it asks the libraries and prints one line of JSON; a crash in a library then ends
this program only."""
import ctypes
import difflib
import glob
import json
import os
import platform
import shutil
import sys

from gpu_tools import library_folders, nvidia_smi

# cudnn_graph.h
DEVICEPROP, ATTR_ID, ATTR_JSON, TYPE_INT32, TYPE_CHAR = 38, 2700, 2702, 23, 24


def open_library(*names):
    """The first library that loads, from the Python packages or by the loader; None."""
    for folder in library_folders() + ["/usr/local/cuda/lib64", ""]:
        for name in names:
            try:
                return ctypes.CDLL(os.path.join(folder, name))
            except OSError:
                continue
    return None


def device_properties():
    """cuDNN's description of device 0 as JSON text, or the reason why there is none."""
    dnn = open_library("libcudnn_graph.so.9", "libcudnn.so.9")
    if dnn is None:
        return None, "no cuDNN 9"
    desc, zero, size = ctypes.c_void_p(), ctypes.c_int32(0), ctypes.c_int64(0)
    dnn.cudnnGetErrorString.restype = ctypes.c_char_p
    text = ctypes.create_string_buffer(1 << 16)
    calls = [
        ("create", lambda: dnn.cudnnBackendCreateDescriptor(DEVICEPROP, ctypes.byref(desc))),
        ("device", lambda: dnn.cudnnBackendSetAttribute(desc, ATTR_ID, TYPE_INT32,
                                                        ctypes.c_int64(1), ctypes.byref(zero))),
        ("finalize", lambda: dnn.cudnnBackendFinalize(desc)),
        ("read", lambda: dnn.cudnnBackendGetAttribute(desc, ATTR_JSON, TYPE_CHAR,
                                                      ctypes.c_int64(1 << 16), ctypes.byref(size),
                                                      text)),
    ]
    for what, call in calls:
        status = call()
        if status != 0:
            return None, f"{what}: {dnn.cudnnGetErrorString(status).decode()}"
    return text.raw[:size.value].rstrip(b"\0").decode(), ""


def ask_libraries():
    """{"versions": {name: number}, "properties": text or None, "why": not}"""
    versions = {}
    for name, function, *files in (("cuDNN", "cudnnGetVersion", "libcudnn.so.9"),
                                   ("cuBLASLt", "cublasLtGetVersion", "libcublasLt.so.13",
                                    "libcublasLt.so.12")):
        library = open_library(*files)
        if library is not None:
            call = getattr(library, function)
            call.restype = ctypes.c_size_t
            versions[name] = call()
    text, why = device_properties()
    return {"versions": versions, "properties": text, "why": why}


def differences(ours, theirs):
    """Keys in which two descriptions differ, as text."""
    a, b = json.loads(ours), json.loads(theirs)
    return [f"{k}: {a.get(k)} here, {b.get(k)} as shipped" for k in sorted(set(a) | set(b))
            if a.get(k) != b.get(k)]


def describe(s):
    """Records the machine; writes the device's description for compiler/machines/."""
    fields = ["name", "driver_version", "memory.total", "clocks.max.sm", "clocks.max.memory",
              "pstate", "clocks_throttle_reasons.active"]
    gpu = nvidia_smi(s, fields) or nvidia_smi(s, fields[:3])
    versions = {"python": platform.python_version(), "machine": platform.machine(),
                "cpu cores": os.cpu_count()}
    for tool in ("nvcc", "gcc", s.o.sanitizer):
        if shutil.which(tool):
            lines = [t for t in s.call([tool, "--version"], 20).out.splitlines() if t.strip()]
            versions[tool] = next((t for t in lines if "release" in t), lines[0] if lines else "?")
    asked = s.call([sys.executable, os.path.abspath(__file__)], 60)
    said = asked.json() or {"versions": {}, "properties": None,
                            "why": f"rc {asked.rc}: {asked.tail(2)}"}
    versions.update(said["versions"])
    targets = s.call([s.lowerset, "targets"], 30)
    if targets.rc != 0:
        s.fail(f"lowerset targets: {targets.tail()}")
    s.record("machine", gpu=gpu, versions=versions, targets=targets.out)
    s.say(f"{gpu.get('name', 'no GPU')}, driver {gpu.get('driver_version', '-')}")
    text = said["properties"]
    if text is None:
        s.note(f"no device properties: {said['why']}")
        return
    with open(os.path.join(s.out, "device.cudnn.json"), "w", encoding="utf-8") as f:
        f.write(text + "\n")
    shipped = sorted(glob.glob(os.path.join(s.here, "..", "compiler", "machines", "*.cudnn.json")))
    name = json.loads(text).get("deviceName", "").lower().replace("geforce", "").replace(" ", "")
    near = [p for p in shipped if os.path.basename(p).split(".")[0] in name]
    if not near:
        s.note(f"no description of {name} is shipped; the nearest is "
               f"{difflib.get_close_matches(name, [os.path.basename(p) for p in shipped], 1, 0)}")
        return
    with open(near[0], encoding="utf-8") as f:
        other = differences(text, f.read())
    s.record("device", description=json.loads(text), differences=other)
    for line in other:
        s.say("device: " + line)


if __name__ == "__main__":
    print(json.dumps(ask_libraries()), flush=True)
