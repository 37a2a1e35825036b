"""tests/whole/references.py -- tests that compare programs with the references of INPUTS/wave2.

    TEST LOWERSET INPUTS [NETWORK...]

Without networks in the arguments: the quick ones, with LS_WHOLE in the environment all. Without INPUTS the test is skipped.
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
    """Calls check(lowerset, folder, entry) for the manifest's entries of that kind, in a folder that goes away. check
    prints what it finds and returns whether it is near enough; folder is INPUTS/wave2."""
    lowerset, inputs = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    folder = os.path.join(inputs, "wave2")
    if not os.path.isdir(folder):
        print("skipped: there is no", folder)
        sys.exit(77)
    with open(os.path.join(folder, "MANIFEST.json")) as f:
        entries = [e for e in json.load(f)["entries"] if e["kind"] == kind]
    wanted = sys.argv[3:] or ([] if "LS_WHOLE" in os.environ else quick)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        bad = [e["name"] for e in entries if (not wanted or e["name"] in wanted) and not check(lowerset, folder, e)]
        os.chdir("/")
    if bad:
        sys.exit(f"differ: {' '.join(bad)}")
