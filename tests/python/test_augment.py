"""What --augment makes of pictures and targets, computed a second time with NumPy.

usage: LOWERSET=build/lowerset test_augment.py
The programs give their input as an output, and the gradient of a bias shows their target."""
import colorsys
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from onnx_file import Model

HIGH, WIDE, CLASSES, SAMPLES, SEED = 8, 10, 5, 7, 3
MASK = (1 << 64) - 1


# ---- numbers that are drawn ----
def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


GOLDEN = 0x9E3779B97F4A7C15


def shuffled(seed, epoch, n, i):
    half = 1
    while half < 31 and 1 << 2 * half < n:
        half += 1
    low, x = (1 << half) - 1, i
    key = mix(mix(seed + GOLDEN & MASK) + epoch & MASK)
    while True:
        for turn in range(6):
            right = x & low
            x = right << half | (x >> half ^ mix(key + (turn << 32 | right) & MASK)) & low
        if x < n:
            return x


class Draws:
    def __init__(self, seed, epoch, sample):
        of = mix(seed + 0x6175676D656E7473 & MASK)
        self.key = mix(mix(of + epoch & MASK) + sample & MASK)

    def unit(self, k):
        return (mix(self.key + (k + 1) * GOLDEN & MASK) >> 11) * 2.0**-53

    def below(self, k, n):
        return min(int(self.unit(k) * n), n - 1)

    def between(self, k, low, high):
        return low + self.unit(k) * (high - low)


# ---- geometry: a function of rows, columns -> those of the picture ----
def parse(how):
    return dict((w.split("=") + [None])[:2] for w in how.split(","))


def draw_window(how, d, fh, fw):
    top, left, high, wide = (fh - HIGH) // 2, (fw - WIDE) // 2, HIGH, WIDE
    flip = "flip" in how and d.unit(0x100) < float(how["flip"] or 0.5)
    vflip = "vflip" in how and d.unit(0x200) < float(how["vflip"] or 0.5)
    if "crop" in how:
        pad = int((how["crop"] or "0").split(":")[0])
        top = d.below(0x300, fh + 2 * pad - HIGH + 1) - pad
        left = d.below(0x400, fw + 2 * pad - WIDE + 1) - pad
    if "resized-crop" in how:
        least, most = map(float, (how["resized-crop"] or "0.08-1").split("-"))
        for k in range(10):
            area = fh * fw * d.between(0x500 + k, least, most)
            shape = math.exp(d.between(0x600 + k, math.log(3 / 4), math.log(4 / 3)))
            wide, high = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < wide <= fw and 0 < high <= fh:
                top, left = d.below(0x300 + k, fh - high + 1), d.below(0x400 + k, fw - wide + 1)
                break
        else:
            high, wide = fh, fw
            if fw / fh < 3 / 4:
                high = round(wide / (3 / 4))
            elif fw / fh > 4 / 3:
                wide = round(high * 4 / 3)
            top, left = (fh - high) // 2, (fw - wide) // 2
    return top, left, high, wide, flip, vflip


def cut(picture, window, reflect, nothing):
    """A window of the input's size."""
    top, left, high, wide, flip, vflip = window
    room = max(HIGH, WIDE) + 40
    pads = ((0, 0), (room, room), (room, room))
    if reflect:
        far = min(picture.shape[1:]) - 1
        pads = ((0, 0), (far, far), (far, far))
        room = far
        big = np.pad(picture, pads, mode="reflect")
    else:
        big = np.pad(picture, pads, constant_values=nothing)
    out = big[:, room + top : room + top + high, room + left : room + left + wide]
    out = out[:, ::-1] if vflip else out
    return out[:, :, ::-1] if flip else out


def weights(n, length):
    scale = length / n
    reach = max(scale, 1.0)
    w = np.zeros((n, length))
    for k in range(n):
        middle = scale * (k + 0.5)
        w[k] = np.maximum(0, 1 - abs(np.arange(length) - middle + 0.5) / reach)
        w[k] /= w[k].sum()
    return w


def resize(picture, window):
    top, left, high, wide, flip, vflip = window
    part = picture[:, top : top + high, left : left + wide]
    out = np.einsum("yh,chw,xw->cyx", weights(HIGH, high), part, weights(WIDE, wide))
    out = out[:, ::-1] if vflip else out
    return out[:, :, ::-1] if flip else out


def nearest(labels, window):
    top, left, high, wide, flip, vflip = window
    y = [top + int((k + 0.5) * high / HIGH) for k in range(HIGH)]
    x = [left + int((k + 0.5) * wide / WIDE) for k in range(WIDE)]
    out = labels[y][:, x]
    out = out[::-1] if vflip else out
    return out[:, ::-1] if flip else out


# ---- turns ----
def turned(planes, degrees, d, sharp):
    """Around the middle, counterclockwise; between pixels, or (sharp) the nearest one."""
    angle = math.radians(d.between(0xB00, -degrees, degrees))
    y, x = np.mgrid[:HIGH, :WIDE] - np.array([HIGH - 1, WIDE - 1])[:, None, None] / 2
    y, x = (math.sin(angle) * x + math.cos(angle) * y + (HIGH - 1) / 2,
            math.cos(angle) * x - math.sin(angle) * y + (WIDE - 1) / 2)
    room = HIGH + WIDE
    big = np.pad(planes, ((0, 0), (room, room), (room, room)))
    if sharp:
        return big[:, room + np.rint(y).astype(int), room + np.rint(x).astype(int)]
    out = np.zeros((len(planes), HIGH, WIDE))
    for v in (0, 1):
        for u in (0, 1):
            row, column = np.floor(y).astype(int) + v, np.floor(x).astype(int) + u
            part = (1 - abs(row - y)) * (1 - abs(column - x))
            out += part * big[:, room + row, room + column]
    return out


# ---- colours ----
def grey(p):
    return 0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2]


def turn_hue(p, by):
    out = np.empty_like(p)
    for y in range(p.shape[1]):
        for x in range(p.shape[2]):
            h, s, v = colorsys.rgb_to_hsv(*p[:, y, x])
            out[:, y, x] = colorsys.hsv_to_rgb((h + by) % 1.0, s, v)
    return out


def jitter(p, most, d):
    for k, m in enumerate(most):
        low = -m if k == 3 else max(0, 1 - m)
        f = d.between(0x700 + k, low, m if k == 3 else 1 + m)
        if m == 0:
            continue
        if k == 0:
            p = p * f
        elif k == 1:
            p = f * p + (1 - f) * grey(p).mean()
        elif k == 2:
            p = f * p + (1 - f) * grey(p)
        else:
            p = turn_hue(p, f)
        p = p.clip(0, 1)
    return p


# ---- one sample ----
def one(how, data, epoch, i, norm):
    d = Draws(SEED, epoch, i)
    picture = data["x"][i].astype(np.float64)
    white = 255.0 if data["x"].dtype == np.uint8 else 1.0
    window = draw_window(how, d, *picture.shape[1:])
    reflect = ":reflect" in (how.get("crop") or "")
    if "resized-crop" in how:
        p = resize(picture, window)
    else:
        p = cut(picture, window, reflect, 0)
    if "rotate" in how:
        p = turned(p, float(how["rotate"]), d, False)
    p = p / white
    if "jitter" in how:
        p = jitter(p, [float(v) for v in how["jitter"].split("/")], d)
    label = data["label"][i]
    if label.ndim == 2:
        if "resized-crop" in how:
            label = nearest(label, window)
        else:
            label = cut(label[None], window, reflect, 0)[0]
        if "rotate" in how:
            label = turned(label[None], float(how["rotate"]), d, True)[0]
    mean, std = norm
    p = (p - np.array(mean)[:, None, None]) / np.array(std)[:, None, None]
    return p, np.moveaxis(np.eye(CLASSES)[label], -1, 0)


def log_gamma(d, k, alpha):
    big = alpha + 2 / 3
    c = 1 / (3 * math.sqrt(big))
    while True:
        a, b, u = 2 * d.unit(k) - 1, 2 * d.unit(k + 1) - 1, 1 - d.unit(k + 2)
        k += 3
        r = a * a + b * b
        if r >= 1 or r == 0:
            continue
        x = a * math.sqrt(-2 * math.log(r) / r)
        v = 1 + c * x
        if v <= 0 or math.log(u) >= 0.5 * x * x + big - big * v**3 + big * math.log(v**3):
            continue
        return math.log(big * v**3) + math.log(1 - d.unit(k)) / alpha, k + 1


def sample(how, data, epoch, i, norm):
    p, t = one(how, data, epoch, i, norm)
    if "mixup" not in how and "cutmix" not in how:
        return p, t
    d = Draws(SEED, epoch, i)
    box = "cutmix" in how and ("mixup" not in how or d.unit(0x800) < 0.5)
    alpha = float(how["cutmix" if box else "mixup"])
    a, k = log_gamma(d, 0x10000, alpha)
    b, k = log_gamma(d, k, alpha)
    own = 1 / (1 + math.exp(b - a))
    order = mix(SEED + 0x5061726E)
    q, u = one(how, data, epoch, shuffled(order, epoch, SAMPLES, i), norm)
    if not box:
        own = round(own * 2**24) / 2**24
        return own * p + (1 - own) * q, own * t + (1 - own) * u
    side = math.sqrt(1 - own)
    h, w = int(HIGH * side), int(WIDE * side)
    y, x = d.below(0x900, HIGH), d.below(0xA00, WIDE)
    top, left = max(0, y - h // 2), max(0, x - w // 2)
    bottom, right = min(HIGH, y - h // 2 + h), min(WIDE, x - w // 2 + w)
    p[:, top:bottom, left:right] = q[:, top:bottom, left:right]
    if t.ndim == 3:
        t[:, top:bottom, left:right] = u[:, top:bottom, left:right]
        return p, t
    own = round((1 - (bottom - top) * (right - left) / (HIGH * WIDE)) * 2**24) / 2**24
    return p, own * t + (1 - own) * u


# ---- the trainer's ----
def check(program, name, steps, how, options):
    data = np.load(name)
    parts = [] if how == "none" else ["--augment", how]
    subprocess.run(
        [program, "--data", name, "--seed", str(SEED), "--steps", str(steps), "--lr", "1e-30",
         "--dump", "dump.npz", "--progress", "none", *parts, *options],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    dump = np.load("dump.npz")
    norm = [[0.0] * 3, [1.0] * 3]
    for k, option in enumerate(("--mean", "--std")):
        if option in options:
            norm[k] = [float(v) for v in options[options.index(option) + 1].split(",")]
    epoch = (steps - 1) // SAMPLES
    i = shuffled(SEED, epoch, SAMPLES, (steps - 1) % SAMPLES)
    p, t = sample({} if how == "none" else parse(how), data, epoch, i, norm)
    seen = dump["out/y1"][0]
    error = abs(seen - p).max()
    plain = not any(w in how for w in ("resized", "rotate", "jitter", "mixup"))
    assert error <= (1e-6 if plain else 1e-5), f"{how}: step {steps}: pixels differ by {error:g}"
    grad = next(dump[k][0] for k in dump.files if k.startswith("grad/b"))
    target = 1 / CLASSES - grad * (t[0].size if t.ndim == 3 else 1)
    error = abs(target - t).max()
    assert error <= 2e-5, f"{how}: step {steps}: the target differs by {error:g}"


# ---- files ----
def write_models():
    n, size = HIGH * WIDE, 3 * HIGH * WIDE
    m = Model()
    x = m.input("x", ["N", 3, HIGH, WIDE])
    weight = m.weight([size, CLASSES], [0] * size * CLASSES)
    scores = m.node("MatMul", [m.node("Flatten", [x]), weight])
    bias = m.weight([1, CLASSES], [0] * CLASSES, prefix="b")
    m.output(m.node("Add", [scores, bias]), ["N", CLASSES])
    m.output(m.node("Mul", [x, m.weight([1], [1])]), ["N", 3, HIGH, WIDE])
    m.write("classes.onnx")
    m = Model()
    x = m.input("x", ["N", 3, HIGH, WIDE])
    scores = m.node("Conv", [x, m.weight([CLASSES, 3, 1, 1], [0] * CLASSES * 3)])
    bias = m.weight([1, CLASSES, HIGH, WIDE], [0] * CLASSES * n, prefix="b")
    m.output(m.node("Add", [scores, bias]), ["N", CLASSES, HIGH, WIDE])
    m.output(m.node("Mul", [x, m.weight([1], [1])]), ["N", 3, HIGH, WIDE])
    m.write("pixels.onnx")


def write_data():
    r = np.random.RandomState(5)
    for name, size in (("same", (HIGH, WIDE)), ("large", (13, 19)), ("long", (9, 40))):
        x = r.randint(0, 256, (SAMPLES, 3, *size)).astype(np.uint8)
        x[0, :, :3] = 77                # grey has no hue
        np.savez(name + ".npz", x=x, label=r.randint(0, CLASSES, SAMPLES))
        np.savez(name + "_real.npz", x=(x / 255).astype(np.float32),
                 label=r.randint(0, CLASSES, SAMPLES))
        np.savez(name + "_maps.npz", x=x,
                 label=r.randint(0, CLASSES, (SAMPLES, *size)).astype(np.uint8))


SAME = ["flip=0.9,vflip", "crop=3", "crop=3:reflect,flip", "jitter=0.4", "jitter=0/0.5",
        "jitter=0/0/0.7", "jitter=0/0/0/0.3", "flip,crop=2,jitter=0.4/0.4/0.4/0.1", "mixup=0.3",
        "cutmix=1", "mixup=0.2,cutmix=0.7,flip,crop=1", "rotate=30",
        "rotate=180,flip,vflip,jitter=0.4"]
OTHER = ["crop", "flip,crop=2", "resized-crop=0.05-0.2,flip", "resized-crop=0.5-1,mixup=1",
         "resized-crop,cutmix=1,jitter=0.4/0.4/0.4/0.1,vflip", "rotate=45,crop=3:reflect,flip",
        "resized-crop,rotate=20,vflip,mixup=0.4"]
NORM = ["--mean", "0.4,0.5,0.6", "--std", "0.2,0.25,0.3"]


def main(lowerset):
    os.environ["LOWERSET_PROBE"] = "off"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_models()
        write_data()
        for name in ("classes", "pixels"):
            subprocess.run([lowerset, "compile", name + ".onnx", "--batch", "1", "--loss",
                            "soft_ce:y0", "--optimizer", "sgd", "-O", "0", "-q", "-o", name],
                           check=True)
        for sizes, hows in ((["same"], SAME), (["large", "long"], OTHER)):
            for how in hows:
                for size in sizes:
                    for step in (1, 9, 15):
                        check("./classes", size + ".npz", step, how, [])
                        check("./classes", size + "_real.npz", step, how, [])
                        check("./pixels", size + "_maps.npz", step, how, NORM)


if __name__ == "__main__":
    main(os.environ["LOWERSET"])
