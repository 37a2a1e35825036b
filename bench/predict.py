#!/usr/bin/env python3
"""Predicted step times beside measured ones, per network and budget, in one table.

    python3 bench/predict.py BUILD-FOLDER [--threads N] [--budgets 100,50] [--seconds S]
                             [--rounds R] [--machine FILE] [--compile] [--keep] [MODEL...]

Each network is compiled once per budget (percent of the arena without recomputation; min, where
nothing fits that); --compile stops there, --keep continues from its files. The measured time of a
step is the median of the steps' times in a run of S seconds, and the median of R runs, in rounds
over all networks and budgets, so that a short disturbance spoils only one run of a network; a ratio
of two budgets is the median of the rounds' ratios. Predictions are the plan's time by the built-in
machine "cpu" and by --machine (a file of `lowerset calibrate -o FILE`), run by run as `lowerset
plan` prints it, and the sum of the costs by a profile of the program of the first budget (of R
profiles, the profile with the median sum). Programs are planned by "cpu". The last columns are a
budget's times divided by the first budget's times."""

import argparse
import json
import os
import statistics
import subprocess
import sys

# Generator's options, and how the network is trained.
NETS = {
    'resnet18': ('resnet18 --batch=8', []),
    'unet': ('unet --size=128 --batch=2', []),
    'densenet121': ('densenet121 --size=112 --batch=4', []),
    'mlp': ('mlp --batch=256', []),
    'gpt': ('gpt --depth=4 --width=256 --heads=8 --context=256 --vocab=4096 --batch=4',
            ['--optimizer=adamw:wd=0.01']),
    'autoencoder': ('autoencoder --batch=16', ['--loss=mse']),
    'vgg': ('vgg16 --size=64 --batch=4 --width=32', []),
    'resnet50': ('resnet50 --size=96 --batch=8', []),
    'googlenet': ('googlenet --size=112 --batch=8', []),
    'cnn': ('cnn --batch=16', []),
    'pspnet50': ('pspnet50 --size=137 --batch=1', []),
}


def run(*command, may_fail=0):
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False,
                          stderr=subprocess.DEVNULL if may_fail else None)
    if done.returncode not in (0, may_fail):
        sys.exit('failed (%d): %s' % (done.returncode, ' '.join(command)))
    return done.returncode == 0


class Net:
    def __init__(self, args, name):
        self.args, self.name = args, name
        self.lowerset = os.path.join(args.build, 'lowerset')
        self.at = os.path.join(args.build, 'bench', 'predict-' + name)
        self.budgets, self.steps, self.rounds = [], 0, []
        zoo, self.train = NETS[name]
        run(self.lowerset, 'model', *zoo.split(), '-o', self.at + '.onnx')

    def compile(self, budget):
        """False: nothing fits."""
        program = '%s.%s' % (self.at, budget)
        if self.args.keep and os.path.exists(program):
            return True
        return run(self.lowerset, 'compile', self.at + '.onnx', *self.train, *planned(budget),
                   '-o', program, may_fail=4)

    def trainer(self, budget, steps, *more):
        run('%s.%s' % (self.at, budget), '--data', 'synthetic', '--steps', str(steps), '--threads',
            str(self.args.threads), '--progress', 'none', *more)

    def step_ns(self, budget, steps):
        """Median of the steps' times, without the first two."""
        log = self.at + '.jsonl'
        if os.path.exists(log):
            os.remove(log)
        self.trainer(budget, steps, '--log', log)
        with open(log) as f:
            rows = [json.loads(line) for line in f]
        at = [r['time'] for r in rows if 'step' in r and 'time' in r and 'loss' in r]
        took = sorted(b - a for a, b in zip(at[1:], at[2:]))
        return statistics.median(took) * 1e9

    def profile(self, budget, steps, number):
        path = '%s.%s.%s.json' % (self.at, budget, number)
        self.trainer(budget, steps, '--profile', path)
        with open(path) as f:
            return path, json.load(f)

    def measured_costs(self, profile):
        """ns by node."""
        path = self.at + '.graph.json'
        run(self.lowerset, 'plan', self.at + '.onnx', '--strategy=none', *self.train, '--costs',
            profile, '--graph-json', path)
        with open(path) as f:
            return [n['cost'] for n in json.load(f)['nodes']]

    def step_times(self, budget, plan):
        """ns of the program's plan by each machine; the plan must have the given hash."""
        tool = os.path.join(self.args.build, 'bench', 'step_time')
        machines = ['cpu'] + ([self.args.machine] if self.args.machine else [])
        said = subprocess.run([tool, ','.join(machines), self.at + '.onnx', *self.train,
                               *planned(budget)], check=True, capture_output=True, text=True)
        lines = said.stdout.split('\n')
        if lines[0] != plan:
            sys.exit('%s: the program has plan %s, not %s: build it again'
                     % (self.name, plan, lines[0]))
        names = ['default', 'calibrated']
        return {name: float(line.split()[0]) for name, line in zip(names, lines[1:]) if line}


def planned(budget):
    # Enough time that the usual number of moves is made: the same plan every time.
    return ['--machine=cpu', '--plan-time=30', '--plan-effort=100',
            '--budget=' + (budget if budget == 'min' else budget + '%')]


def build(net, args):
    """The budgets that there are programs for."""
    budgets = [b if net.compile(b) else 'min' for b in args.budgets.split(',')]
    if 'min' in budgets:
        net.compile('min')
    return budgets


def one_round(net, args):
    """ns of each budget's step, and a profile of the first budget: (path, contents)."""
    if not net.steps:
        net.trainer(net.budgets[0], 3)
        net.steps = max(6, int(args.seconds * 1e9 / net.step_ns(net.budgets[0], 6)))
    took = {b: net.step_ns(b, net.steps) for b in net.budgets}
    net.rounds.append((took, net.profile(net.budgets[0], net.steps, len(net.rounds))))


def rows_of(net):
    first = net.budgets[0]
    profiles = sorted((p for _, p in net.rounds), key=lambda p: sum(s['ns'] for s in p[1]['steps']))
    path, profile = profiles[len(profiles) // 2]
    cost = net.measured_costs(path)
    rows = []
    for b in net.budgets:
        of_plan = profile if b == first else net.profile(b, 3, 'of')[1]
        ratio = statistics.median(took[b] / took[first] for took, _ in net.rounds)
        says = net.step_times(b, of_plan['plan'])
        says['profiled'] = sum(cost[s['node']] for s in of_plan['steps'])
        rows.append((b, statistics.median(took[b] for took, _ in net.rounds), ratio, says))
    return rows


def show(name, rows, worst):
    ways = list(rows[0][3])
    for k, (budget, ns, ratio, predicted) in enumerate(rows):
        line = '| %-11s | %6s | %9.3f |' % (name if k == 0 else '', budget, ns * 1e-6)
        for w in ways:
            off = 100 * (predicted[w] / ns - 1)
            worst[w] = max(worst.get(w, 0), abs(off))
            line += ' %9.3f %+6.1f %% |' % (predicted[w] * 1e-6, off)
        if k > 0:
            line += ' %6.3f |' % ratio
            for w in ways:
                own = predicted[w] / rows[0][3][w]
                off = 100 * (own / ratio - 1)
                worst[w + ' ratio'] = max(worst.get(w + ' ratio', 0), abs(off))
                line += ' %6.3f %+5.1f %% |' % (own, off)
        print(line)
    sys.stdout.flush()


def main():
    p = argparse.ArgumentParser()
    p.add_argument('build')
    p.add_argument('nets', nargs='*', metavar='MODEL')
    p.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument('--budgets', default='100,50')
    p.add_argument('--seconds', type=float, default=1)
    p.add_argument('--rounds', type=int, default=7)
    p.add_argument('--machine')
    p.add_argument('--compile', action='store_true', help='measure nothing')
    p.add_argument('--keep', action='store_true', help='use programs that are there')
    args = p.parse_intermixed_args()
    os.makedirs(os.path.join(args.build, 'bench'), exist_ok=True)
    for name in args.nets:
        if name not in NETS:
            sys.exit('no such network: %s (%s)' % (name, ' '.join(NETS)))
    if args.compile:
        for name in args.nets or NETS:
            build(Net(args, name), args)
        return
    worst = {}
    print('%d threads; ms, and how far off\n' % args.threads)
    ways = ['default'] + (['calibrated'] if args.machine else []) + ['profiled']
    print('| network     | budget | measured  |%s ratio  |%s'
          % (''.join(' %-18s |' % w for w in ways), ''.join(' %-14s |' % w for w in ways)))
    print('|---|---|---|' + '---|' * (2 * len(ways) + 1))
    nets = [Net(args, name) for name in args.nets or NETS]
    for net in nets:
        net.budgets = build(net, args)
    for _ in range(args.rounds):
        for net in nets:
            one_round(net, args)
    for net in nets:
        show(net.name, rows_of(net), worst)
    print('\nworst: ' + ', '.join('%s %.1f %%' % (w, v) for w, v in worst.items()))


if __name__ == '__main__':
    main()
