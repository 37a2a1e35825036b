#!/usr/bin/env python3
"""Measures the gain of updates that compute the gradients of large products themselves.

    python3 bench/applied.py BUILD-FOLDER [--threads N] [--seconds S] [--rounds R]

Each network is compiled twice, the second time with --store-gradients. Prints the arena of a plan
without recomputation and the least that is found, in MiB, and the time of a step: the median of R
runs of S seconds, the two programs in turns. The losses of both must be the same to the digit."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

NETS = {                        # the generator's options, and how the network is trained
    'MLP 784-2048-10, batch 256': ('mlp --batch=256 --width=2048', []),
    'MLP 784-4096-10, batch 64': ('mlp --batch=64 --width=4096', []),
    'MLP of 3 x 4096, batch 16, AdamW': ('mlp --batch=16 --width=4096 --depth=3',
                                         ['--optimizer=adamw']),
    'VGG-16, 4x3x64x64': ('vgg16 --size=64 --batch=4', []),
    'VGG-16, 4x3x224x224': ('vgg16 --size=224 --batch=4', []),
}
WAYS = {'applied': [], 'stored': ['--store-gradients']}


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit('failed (%d): %s\n%s' % (done.returncode, ' '.join(command), done.stderr))
    return done.stdout


class Program:
    def __init__(self, lowerset, model, options, path):
        self.path, self.took = path, []
        said(lowerset, 'compile', model, *options, '-o', path)
        self.arena = [self.plan(lowerset, model, options, b) for b in ('100%', 'min')]
        self.loss = re.findall(r'loss ([0-9.]+)', said(path, '--data=synthetic', '--steps=4'))[-1]

    @staticmethod
    def plan(lowerset, model, options, budget):
        summary = said(lowerset, 'plan', model, *options, '--budget=' + budget, '--json')
        return json.loads(summary)['arena_bytes'] / 2**20

    def run(self, args, steps):
        out = self.path + '.json'
        said(self.path, '--data=synthetic', '--progress=none', '--steps=%d' % steps,
             '--threads=%d' % args.threads, '--profile=' + out)
        with open(out) as f:
            self.took.append(json.load(f)['step_ns'] / 1e6)


def measure(args, number, line, options):
    at = os.path.join(args.build, 'bench', 'applied-%d' % number)
    lowerset = os.path.join(args.build, 'lowerset')
    said(lowerset, 'model', *line.split(), '-o', at + '.onnx')
    made = [Program(lowerset, at + '.onnx', options + more, '%s.%s' % (at, way))
            for way, more in WAYS.items()]
    if made[0].loss != made[1].loss:
        sys.exit('the losses differ: %s and %s' % (made[0].loss, made[1].loss))
    made[0].run(args, 3)
    steps = max(5, int(args.seconds * 1e3 / made[0].took.pop()))
    for _ in range(args.rounds):
        for program in made:
            program.run(args, steps)
    return made


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('build')
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    print('| %d threads | arena, MiB: applied | stored | least: applied | stored | ms a step: '
          'applied | stored | stored / applied |' % args.threads)
    print('|---|' + '--:|' * 7)
    for number, (name, (line, options)) in enumerate(NETS.items()):
        a, b = measure(args, number, line, options)
        ms = [statistics.median(p.took) for p in (a, b)]
        print('| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |'
              % (name, a.arena[0], b.arena[0], a.arena[1], b.arena[1], *ms, ms[1] / ms[0]),
              flush=True)


if __name__ == '__main__':
    main()
