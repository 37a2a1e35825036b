#!/usr/bin/env python3
"""Pictures a second of the trainer's loader beside torchvision's, and whether training waits for
it.

    python3 bench/loader.py BUILD-FOLDER [--seconds S] [--workers N] [--threads N] [--steps N]
                            [--pictures N] [--no-train]

Data: smooth random pictures of 256x256, as bytes in an NPZ and as JPEG files of quality 90. Inputs
have 224x224. Torch reads the same bytes as tensors, and the JPEG files with PIL, as most programs
do, by a DataLoader with as many workers and the transforms of torchvision.transforms.v2. Then
ResNet-18 with batches of 32 is trained on the bytes: with augmentation, and on pictures that have
the input's size already. Needs numpy and pillow; without torch and torchvision their columns are
empty."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BATCH, SIZE, FROM = 32, 224, 256
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HOWS = ['none', 'crop,flip', 'resized-crop,flip', 'resized-crop,flip,jitter=0.4/0.4/0.4',
        'resized-crop,flip,jitter=0.4/0.4/0.4/0.1']


def make_data(folder, count):
    import numpy as np
    from PIL import Image
    r = np.random.RandomState(0)
    x = np.empty((count, 3, FROM, FROM), np.uint8)
    for k in range(count):
        small = Image.fromarray(r.randint(0, 256, (32, 32, 3)).astype(np.uint8))
        picture = small.resize((FROM, FROM), Image.BICUBIC)
        picture.save(os.path.join(folder, f'{k}.jpg'), quality=90)
        x[k] = np.asarray(picture).transpose(2, 0, 1)
    label = r.randint(0, 1000, count)
    np.savez(os.path.join(folder, 'from.npz'), x=x, label=label)
    edge = (FROM - SIZE) // 2
    np.savez(os.path.join(folder, 'same.npz'), label=label,
             x=np.ascontiguousarray(x[:, :, edge:edge + SIZE, edge:edge + SIZE]))


def ours(build, folder, how, workers, seconds):
    name = 'same.npz' if how == 'none' else 'from.npz'
    out = subprocess.run([os.path.join(build, 'bench/loader_bench'), os.path.join(folder, name),
                          str(SIZE), how, str(workers), str(seconds)],
                         check=True, capture_output=True, text=True).stdout
    return float(out)


def transform_of(how, v2, torch):
    steps = [v2.CenterCrop(SIZE)] if how == 'none' else []
    for word in how.split(','):
        if word == 'crop':
            steps.append(v2.RandomCrop(SIZE))
        elif word == 'resized-crop':
            steps.append(v2.RandomResizedCrop(SIZE, antialias=True))
        elif word == 'flip':
            steps.append(v2.RandomHorizontalFlip())
        elif word.startswith('jitter='):
            steps.append(v2.ColorJitter(*map(float, word[7:].split('/'))))
    return v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])


def peer(folder, how, workers, seconds, jpeg):
    import numpy as np
    import torch
    from PIL import Image
    from torchvision.transforms import v2
    torch.set_num_threads(1)
    change = transform_of(how, v2, torch)
    held = np.load(os.path.join(folder, 'from.npz'))
    tensors, labels = torch.from_numpy(held['x']), held['label']

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return len(labels)

        def __getitem__(self, k):
            if not jpeg:
                return change(tensors[k]), int(labels[k])
            with Image.open(os.path.join(folder, f'{k}.jpg')) as picture:
                return change(v2.functional.pil_to_tensor(picture.convert('RGB'))), int(labels[k])

    loader = torch.utils.data.DataLoader(Pictures(), BATCH, shuffle=True, drop_last=True,
                                         num_workers=workers, persistent_workers=workers > 0)
    done, start = 0, None
    while True:
        for batch in loader:
            if start is None:           # workers have started
                start = time.monotonic()
                continue
            done += len(batch[1])
            if time.monotonic() - start > seconds:
                return done / (time.monotonic() - start)


def steps(program, data, words, threads, workers, count):
    """The median time of a step, seconds, without the first steps."""
    log = program + '.log'
    if os.path.exists(log):
        os.remove(log)
    subprocess.run([program, '--data', data, '--steps', str(count), '--threads', str(threads),
                    '--workers', str(workers), '--log', log, '--progress', 'none', *words],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(log) as f:
        times = [json.loads(line).get('time') for line in f]
    times = [t for t in times if t is not None]
    return statistics.median([b - a for a, b in zip(times[1:], times[2:])])


def train(build, folder, o):
    lowerset = os.path.join(build, 'lowerset')
    model, program = os.path.join(folder, 'net.onnx'), os.path.join(folder, 'net')
    subprocess.run([lowerset, 'model', 'resnet18', '-o', model], check=True)
    subprocess.run([lowerset, 'compile', model, '--batch', str(BATCH), '--loss', 'soft_ce', '-q',
                    '-o', program], check=True)
    print(f'\nResNet-18, {BATCH} x 3x{SIZE}x{SIZE}, {o.threads} threads, {o.workers} workers, '
          f'median of {o.steps - 2} steps')
    cases = [('bytes of the input\'s size', 'same.npz', [])]
    cases += [(how, 'from.npz', ['--augment', how]) for how in HOWS[2:] + [HOWS[2] + ',mixup=0.2']]
    for name, data, words in cases:
        t = steps(program, os.path.join(folder, data), words, o.threads, o.workers, o.steps)
        print(f'  {name:48} {t:8.3f} s/step {BATCH / t:8.1f} pictures/s', flush=True)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument('build')
    p.add_argument('--seconds', type=float, default=4)
    p.add_argument('--workers', type=int, default=2)
    p.add_argument('--threads', type=int, default=2)
    p.add_argument('--steps', type=int, default=8)
    p.add_argument('--pictures', type=int, default=512)
    p.add_argument('--no-train', action='store_true')
    o = p.parse_args()
    try:
        import torch  # noqa: F401
        import torchvision  # noqa: F401
        has_torch = True
    except ImportError:
        has_torch = False
    with tempfile.TemporaryDirectory() as folder:
        make_data(folder, o.pictures)
        print(f'pictures a second, {o.workers} workers: {FROM}x{FROM} bytes -> {SIZE}x{SIZE} reals')
        print(f'{"":44}{"lowerset":>10}{"torch":>10}{"JPEG":>10}')
        for how in HOWS:
            row = [ours(o.build, folder, how, o.workers, o.seconds)]
            if has_torch:
                row += [peer(folder, how, o.workers, o.seconds, jpeg) for jpeg in (False, True)]
            print(f'{how:44}' + ''.join(f'{v:10.0f}' for v in row), flush=True)
        if not o.no_train:
            train(o.build, folder, o)


if __name__ == '__main__':
    sys.exit(main())
