"""Packed data sets: what Python reads is what was packed; pictures are Pillow's where it is there.

   PYTHON=venv/bin/python sh tests/python/run.sh build/lowerset tests/python/test_dataset.py numpy
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import lowerset

try:
    import PIL
    from PIL import Image, ImageOps
except ImportError:
    PIL = None
try:
    import tokenizers
except ImportError:
    tokenizers = None


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.rng = np.random.default_rng(1)

    def path(self, *names):
        return os.path.join(self.folder.name, *names)


class Arrays(InFolder):
    def test_every_form_of_an_array(self):
        arrays = {
            "x": np.asfortranarray(self.rng.normal(size=(50, 3, 4, 5)).astype(">f4")),
            "h": self.rng.normal(size=(50, 6)).astype(np.float16),
            "b": self.rng.integers(0, 2, (50, 2)).astype(bool),
            "label": self.rng.integers(0, 9, 50).astype(">i8"),
        }
        np.savez_compressed(self.path("a.npz"), **arrays)
        np.savez(self.path("b.npz"), **{k: np.ascontiguousarray(v[:7]) for k, v in arrays.items()})
        data = lowerset.pack(self.path("a.npz"), self.path("b.npz"), output=self.path("d.lsd"))
        self.assertEqual(data.samples, 57)
        for name, value in arrays.items():
            np.testing.assert_array_equal(data[name], np.concatenate([value, value[:7]]))
        whole = np.concatenate([arrays["x"], arrays["x"][:7]]).astype(float)
        np.testing.assert_allclose(data.fields["x"]["mean"], whole.mean((0, 2, 3)), rtol=1e-12)
        np.testing.assert_allclose(data.fields["x"]["std"], whole.std((0, 2, 3)), rtol=1e-12)
        self.assertEqual(data.fields["label"]["role"], "label")
        data.check()

    def test_damage_is_found(self):
        np.save(self.path("x.npy"), self.rng.normal(size=(4, 3)))
        path = self.path("d.lsd")
        lowerset.pack(self.path("x.npy"), output=path)
        whole = Path(path).read_bytes()
        for n in (0, 63, 4095, len(whole) - 1):
            Path(path).write_bytes(whole[:n])
            with self.assertRaises(lowerset.DataError):
                lowerset.open_dataset(path)
        for at in (9, 20, len(whole) - 5):
            Path(path).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            with self.assertRaises(lowerset.DataError):
                lowerset.open_dataset(path)
        Path(path).write_bytes(whole[:4100] + bytes([whole[4100] ^ 1]) + whole[4101:])
        with self.assertRaises(lowerset.DataError):
            lowerset.open_dataset(path).check()

    def test_a_table(self):
        Path(self.path("t.csv")).write_text("a,b,c\n1,red,x\n2,blue,y\n", encoding="utf-8")
        data = lowerset.pack(self.path("t.csv"), output=self.path("t.lsd"), label_column="c",
                             one_hot=True)
        self.assertEqual(data["x"].tolist(), [[1, 0, 1], [2, 1, 0]])
        self.assertEqual(data.classes, ["x", "y"])
        with self.assertRaisesRegex(lowerset.DataError, "t.csv"):
            lowerset.pack(self.path("t.csv"), output=self.path("t.lsd"), categories=["b"],
                          missing="mean", like=self.path("t.csv"))


@unittest.skipIf(PIL is None, "no Pillow")
class Pictures(InFolder):
    def save(self, name, picture, **how):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        picture.save(self.path(name), **how)

    def smooth(self, width, height):
        small = self.rng.integers(0, 256, (height // 6 + 2, width // 6 + 2, 3), dtype=np.uint8)
        return Image.fromarray(small).resize((width, height), Image.BICUBIC)

    def make(self):
        for k in range(12):
            width, height = (int(v) for v in self.rng.integers(30, 150, 2))
            self.save(f"p/{'ab'[k % 2]}/{k:02d}.jpg", self.smooth(width, height), quality=90)
        self.save("p/a/cmyk.jpg", self.smooth(50, 60).convert("CMYK"))
        self.save("p/a/grey.png", self.smooth(50, 60).convert("L"))
        self.save("p/a/palette.png", self.smooth(50, 60).quantize(20))
        self.save("p/b/alpha.png", self.smooth(50, 60).convert("RGBA"))
        self.save("p/b/progressive.jpg", self.smooth(50, 60), progressive=True)
        for k in range(1, 9):
            picture = self.smooth(40, 60)
            exif = picture.getexif()
            exif[0x112] = k
            self.save(f"p/b/turned{k}.jpg", picture, exif=exif)

    @staticmethod
    def short_side(picture, side):
        width, height = picture.size
        size = ((int(side * width / height), side) if width > height
                else (side, int(side * height / width)))
        return picture.resize(size, Image.BILINEAR)

    @staticmethod
    def centre(picture, height, width):
        left, top = (round((picture.size[0] - width) / 2), round((picture.size[1] - height) / 2))
        return picture.crop((left, top, left + width, top + height))

    def compare(self, wanted, **options):
        data = lowerset.pack(self.path("p"), output=self.path("p.lsd"), **options)
        files = [self.path("p", c, n) for c in "ab" for n in sorted(os.listdir(self.path("p", c)))]
        self.assertEqual(data.samples, len(files))
        slack = 0 if int(PIL.__version__.split(".")[0]) < 13 else 1
        for k, name in enumerate(files):
            picture = np.asarray(wanted(ImageOps.exif_transpose(Image.open(name))))
            picture = picture.transpose(2, 0, 1) if picture.ndim == 3 else picture[None]
            worst = np.abs(picture.astype(int) - data["image"][k]).max()
            self.assertLessEqual(worst, slack, name)
            self.assertEqual(data["label"][k], "ab".index(os.path.basename(os.path.dirname(name))))
        values = np.asarray(data["image"]) / 255
        np.testing.assert_allclose(data.fields["image"]["mean"], values.mean((0, 2, 3)), rtol=1e-9)
        np.testing.assert_allclose(data.fields["image"]["std"], values.std((0, 2, 3)), rtol=1e-9)

    def test_pictures_are_pillows(self):
        self.make()
        self.compare(lambda p: self.centre(self.short_side(p.convert("RGB"), 32), 32, 32), size=32)
        self.compare(lambda p: p.convert("RGB").resize((41, 30), Image.BILINEAR), size="30x41")
        self.compare(lambda p: self.centre(self.short_side(p.convert("L"), 40), 31, 28), size=40,
                     crop="31x28", channels=1)

    def test_masks_go_with_their_pictures(self):
        for k in range(3):
            self.save(f"p/{k}.png", self.smooth(50, 40))
            mask = Image.fromarray(self.rng.integers(0, 5, (40, 50), dtype=np.uint8))
            self.save(f"m/{k}.png", mask)
        data = lowerset.pack(self.path("p"), output=self.path("p.lsd"), masks=self.path("m"),
                             size=20, crop=18)
        for k in range(3):
            mask = Image.open(self.path("m", f"{k}.png")).resize((25, 20), Image.NEAREST)
            np.testing.assert_array_equal(data["label"][k], np.asarray(self.centre(mask, 18, 18)))


@unittest.skipIf(tokenizers is None, "no tokenizers")
class Texts(InFolder):
    def test_a_text_by_a_tokenizer(self):
        words = ["[UNK]", "to", "be", "or", "not"]
        made = tokenizers.Tokenizer(tokenizers.models.WordLevel(
            {w: k for k, w in enumerate(words)}, unk_token="[UNK]"))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        made.save(self.path("t.json"))
        Path(self.path("a.txt")).write_text("to be or not\nto see\n" * 3, encoding="utf-8")
        data = lowerset.pack(self.path("a.txt"), output=self.path("a.lsd"),
                             tokenizer=self.path("t.json"))
        self.assertEqual(data["tokens"].tolist(), [1, 2, 3, 4, 1, 0] * 3)
        said = subprocess.run([sys.executable, "-m", "lowerset", "data", "pack",
                               self.path("a.txt"), "-o", self.path("b.lsd"),
                               f"--tokenizer={self.path('t.json')}"],
                              check=True, capture_output=True, text=True).stdout
        self.assertIn("18 samples", said)
        self.assertEqual(lowerset.open_dataset(self.path("b.lsd"))["tokens"].tolist(),
                         data["tokens"].tolist())


if __name__ == "__main__":
    unittest.main()
