#!/usr/bin/env python3
"""Damages the code in one place at a time, and sees whether a test finds it, as Markdown.

    python3 bench/mutants.py BUILD-FOLDER [--sound] [--list FILE] [NUMBER...]

bench/mutants.txt has a block for each mutant: the file, the text that occurs in it once, the text
in its place, and the tests that are to find it. Each mutant is made in a copy of the tree with a
build folder of its own, in BUILD-FOLDER/mutants. It must compile without warnings. It is killed if
a test fails or does not end. The tests run on the right code first, where all must pass; --sound
says that they did. Numbers choose mutants; the exit status is 1 if one of them lives."""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 240                     # seconds that a test may take
ENV = {'LOWERSET_PROBE': 'off', 'CK_DEFAULT_TIMEOUT': '60', 'CK_TIMEOUT_MULTIPLIER': '2'}
SKIPPED = 77


def read_list(path):
    """Blocks of lines `word text`, with empty lines between them."""
    mutants = []
    with open(path) as file:
        for block in file.read().split('\n\n'):
            lines = [line for line in block.splitlines() if line and line[0] != '#']
            row = {word: text.strip() for word, _, text in
                   (line.partition(' ') for line in lines)}
            if row:
                mutants.append(dict(row, test=row['test'].split()))
    return mutants


def copy_tree(tree):
    names = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT, text=True,
                           capture_output=True, check=True).stdout.splitlines()
    for name in names:
        here, there = os.path.join(ROOT, name), os.path.join(tree, name)
        if os.path.islink(here) or not os.path.isfile(here):
            continue
        with open(here, 'rb') as file:
            data = file.read()
        if os.path.exists(there):
            with open(there, 'rb') as file:
                if file.read() == data:
                    continue
        os.makedirs(os.path.dirname(there), exist_ok=True)
        with open(there, 'wb') as file:
            file.write(data)
        os.chmod(there, os.stat(here).st_mode)


def end_session(session):
    """Ends whatever a test that hangs has started: suites of Check have groups of their own."""
    for name in os.listdir('/proc'):
        try:
            with open('/proc/%s/stat' % name) as file:
                if name.isdigit() and int(file.read().rpartition(')')[2].split()[3]) == session:
                    os.kill(int(name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass


class Tree:
    def __init__(self, build):
        self.top = os.path.join(os.path.abspath(build), 'mutants')
        self.build = os.path.join(self.top, 'build')
        copy_tree(self.top)
        if not os.path.exists(os.path.join(self.build, 'build.ninja')):
            subprocess.run(['meson', 'setup', self.build, '-Dwerror=true'], cwd=self.top,
                           stdout=subprocess.DEVNULL, check=True)
        else:
            subprocess.run(['ninja', '-C', self.build, 'build.ninja'], check=True,
                           stdout=subprocess.DEVNULL)
        targets = {t['id']: t['filename'] for t in self.known('--targets')}
        self.tests = {t['name']: dict(t, files=[
            os.path.relpath(f, self.build) for i in t['depends'] for f in targets.get(i, [])])
            for t in self.known('--tests')}

    def known(self, what):
        return json.loads(subprocess.run(['meson', 'introspect', self.build, what], text=True,
                                         capture_output=True, check=True).stdout)

    def make(self, names):
        """What the compiler says if it refuses; None: all is built."""
        files = sorted({f for n in names for f in self.tests[n]['files']})
        done = subprocess.run(['ninja', '-C', self.build] + files, text=True,
                              capture_output=True, check=False)
        return None if done.returncode == 0 else done.stdout

    def passes(self, name):
        """True, False, or None: skipped."""
        test = self.tests[name]
        run = subprocess.Popen(test['cmd'], cwd=test['workdir'] or self.build,
                               env=dict(os.environ, **ENV, **test['env']),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            code = run.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = -1
        end_session(run.pid)
        run.wait()
        return None if code == SKIPPED else code == 0


def damaged(tree, m):
    path = os.path.join(tree.top, m['file'])
    with open(path) as file:
        text = file.read()
    if text.count(m['old']) != 1:
        sys.exit('%s has %d times: %s' % (m['file'], text.count(m['old']), m['old']))
    return path, text, text.replace(m['old'], m.get('new', ''))


def write(path, text):
    with open(path, 'w') as file:
        file.write(text)


def judge(tree, m):
    """The verdict on a mutant."""
    path, right, wrong = damaged(tree, m)
    write(path, wrong)
    try:
        said = tree.make(m['test'])
        if said is not None:
            return 'is none: ' + ' '.join(line for line in said.splitlines() if 'error' in line)
        for name in m['test']:
            if tree.passes(name) is False:
                return 'killed by ' + name
        return 'lives'
    finally:
        write(path, right)


def check_sound(tree, mutants):
    names = sorted({n for m in mutants for n in m['test']})
    said = tree.make(names)
    if said is not None:
        sys.exit(said)
    for name in names:
        began = time.time()
        passed = tree.passes(name)
        print('%s: %s, %.1f s' % (name, {True: 'ok', None: 'skipped', False: 'FAILED'}[passed],
                                  time.time() - began), file=sys.stderr)
        if passed is False:
            sys.exit('%s fails on the right code' % name)


def cell(text):
    return '`%s`' % text.replace('|', '\\|') if text else 'nothing'


def main():
    words = argparse.ArgumentParser(usage=__doc__)
    words.add_argument('build')
    words.add_argument('--sound', action='store_true')
    words.add_argument('--list', default=os.path.join(ROOT, 'bench', 'mutants.txt'))
    words.add_argument('number', nargs='*', type=int)
    asked = words.parse_intermixed_args()
    mutants = list(enumerate(read_list(asked.list), 1))
    if asked.number:
        mutants = [(k, m) for k, m in mutants if k in asked.number]
    tree = Tree(asked.build)
    for _, m in mutants:
        damaged(tree, m)
    if not asked.sound:
        check_sound(tree, [m for _, m in mutants])
    killed = 0
    print('| | file | code | mutant | verdict |\n|--:|---|---|---|---|')
    for k, m in mutants:
        verdict = judge(tree, m)
        killed += verdict.startswith('killed')
        print('| %d | %s | %s | %s | %s |' % (k, m['file'], cell(m['old']), cell(m.get('new')),
                                              verdict), flush=True)
    print('\n%d of %d killed' % (killed, len(mutants)))
    return killed < len(mutants)


if __name__ == '__main__':
    sys.exit(main())
