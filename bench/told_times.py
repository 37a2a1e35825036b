#!/usr/bin/env python3
"""The step time that `compile` tells beside the one that the program measures, as Markdown.

    python3 bench/told_times.py BUILD-FOLDER [NETWORK...]

Five networks and four with values in parts, f32 and bf16, one and two threads. Every program is
compiled as a user does it, and runs 22 updates; its own note has the measured time, the median of
the last 15 of the first 20. No machine file of a calibration is used: XDG_CONFIG_HOME is an empty
folder."""
import os
import re
import subprocess
import sys
import tempfile

from predict import NETS

NAMES = ('mlp', 'resnet18', 'unet', 'densenet121', 'gpt')
# Values in parts: what runs again, and kernels that are thin.
IN_PARTS = {
    'resnet18 in 4 parts': ('resnet18 --batch=8', ['--tiles=4@10MiB', '--budget=min']),
    'vgg16 in 4 parts': ('vgg16 --size=128 --batch=8', ['--tiles=4@4MiB', '--budget=min']),
    'gpt in 4 parts': (NETS['gpt'][0], [*NETS['gpt'][1], '--tiles=4@4MiB', '--budget=min']),
    'unet in 4 bands': ('unet --size=512 --width=16 --batch=1',
                        ['--tiles=4rows@8MiB', '--budget=min']),
}
NETS = {**NETS, **IN_PARTS}
TIME = r'([\d.e+]+) (ns|us|ms|s)\b'
MS = {'ns': 1e-6, 'us': 1e-3, 'ms': 1, 's': 1e3}


def ms(text, pattern):
    found = re.search(pattern, text)
    if found is None:
        sys.exit('no time in: ' + text)
    return float(found[1]) * MS[found[2]]


def row(lowerset, name, precision, threads, folder, env):
    def call(*argv):
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit('failed (%d): %s\n%s' % (done.returncode, ' '.join(argv), done.stderr))
        return done.stdout + done.stderr
    said = call(lowerset, 'compile', 'net.onnx', '--precision=' + precision,
                '--threads=%d' % threads, *NETS[name][1], '-o', 'program')
    told = ms(said, 'a step of about ' + TIME)
    ran = call('./program', '--threads', str(threads), '--steps', '22', '--data', 'synthetic')
    measured = ms(ran, 'a step takes ' + TIME)
    print('| %s | %s | %d | %.3g | %.3g | %+.0f %% |' % (name, precision, threads, told, measured,
                                                         100 * (told / measured - 1)),
          flush=True)
    return abs(told / measured - 1) <= 0.2


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lowerset = os.path.join(os.path.abspath(sys.argv[1]), 'lowerset')
    names = sys.argv[2:] or (*NAMES, *IN_PARTS)
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, XDG_CONFIG_HOME=os.path.join(folder, 'config'))
        print('| network | type | threads | told ms | measured ms | told against measured '
              '|\n|---|---|--:|--:|--:|--:|')
        near = []
        for name in names:
            subprocess.run([lowerset, 'model', *NETS[name][0].split(), '-o',
                            os.path.join(folder, 'net.onnx')],
                           check=True, stdout=subprocess.DEVNULL)
            near += [row(lowerset, name, p, t, folder, env) for p in ('f32', 'bf16')
                     for t in (1, 2)]
        print('\n%d of %d within 20 %%' % (sum(near), len(near)))


if __name__ == '__main__':
    main()
