"""For tests that run commands: what must hold, and the end that tells what did not."""
import subprocess
import sys

wrong = []


def run(*words, code=0):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout + done.stderr


def must(what, holds):
    print(f"{'ok' if holds else 'FAIL'}: {what}")
    if not holds:
        wrong.append(what)


def finish():
    for what in wrong:
        print(f"FAIL: {what}")
    sys.exit(bool(wrong))
