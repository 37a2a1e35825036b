"""tests/whole/references.py -- tests that compare programs with the references of INPUTS/wave2.

    TEST LOWERSET INPUTS[:INPUTS...] [NETWORK...]

A network is taken from the first of the folders that has it: tests/data/inputs has the small ones.
Without networks in the arguments: the quick ones, with LS_WHOLE in the environment all.
"""
import json
import os
import subprocess
import sys
import tempfile


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")


def check_all(kind, quick, check):
    """Calls check(lowerset, folder, entry) for the manifest's entries of that kind, in a folder
    that goes away. check prints what it finds and returns whether it is near enough; folder is
    INPUTS/wave2. At least one is checked."""
    lowerset, entries = os.path.abspath(sys.argv[1]), {}
    for inputs in sys.argv[2].split(":"):
        folder = os.path.abspath(os.path.join(inputs, "wave2"))
        if not os.path.isdir(folder):
            print("skipped: networks that only", folder, "would have")
            continue
        with open(os.path.join(folder, "MANIFEST.json")) as f:
            for e in json.load(f)["entries"]:
                if e["kind"] == kind:
                    entries.setdefault(e["name"], (folder, e))
    wanted = sys.argv[3:] or ([] if "LS_WHOLE" in os.environ else quick)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        taken = [name for name in entries if not wanted or name in wanted]
        bad = [name for name in taken if not check(lowerset, *entries[name])]
        os.chdir("/")
    if not taken:
        sys.exit("no network was checked")
    if bad:
        sys.exit(f"differ: {' '.join(bad)}")
