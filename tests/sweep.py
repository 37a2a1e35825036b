#!/usr/bin/env python3
"""Checks what lowerset sweep writes, by programs that share nothing with it.

    tests/sweep.py BUILD

Each function named check_... is one behaviour; exit status 1 when one fails.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

LOWERSET = os.path.join(os.path.abspath(sys.argv[1]), "lowerset")
ALL = ["none", "chen", "approx-tc", "approx-mc", "exact-tc", "exact-mc", "auto"]


def run(*args, code=0):
    done = subprocess.run([LOWERSET, *args], capture_output=True, text=True, timeout=200)
    assert done.returncode == code, f"{args}: exit {done.returncode}, not {code}: {done.stderr}"
    return done


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check_curves_are_monotone_and_agree_in_csv_and_json():
    run("model", "unet", "--width=6", "--depth=3", "--size=32", "-o", "u,n.onnx")
    out = run("sweep", "u,n.onnx", "--batch", "2", "--points", "9", "-o", "dir")
    assert "budget 9 of 9" in out.stderr
    rows = list(csv.DictReader(open("dir/sweep.csv", newline="")))
    root = json.loads(read("dir/sweep.json"))
    assert root["schema"] == 1 and len(root["points"]) == 9 and len(rows) == 9 * len(ALL)
    before = {}
    for k, point in enumerate(root["points"]):
        assert [s["strategy"] for s in point["strategies"]] == ALL
        for j, cell in enumerate(point["strategies"]):
            row = rows[k * len(ALL) + j]
            assert row["model"] == "u,n.onnx" and row["strategy"] == cell["strategy"]
            assert int(row["feasible"]) == cell["feasible"]
            if not cell["feasible"]:
                assert cell["strategy"] not in before, "a larger budget has no plan"
                continue
            assert int(row["arena_bytes"]) == cell["arena_bytes"] <= point["arena_budget_bytes"]
            assert abs(float(row["overhead"]) - cell["overhead"]) < 1e-7
            assert cell["overhead"] <= before.get(cell["strategy"], 1e9), "not monotone"
            assert cell["overhead"] >= point["overhead_lower_bound"] - 1e-9
            before[cell["strategy"]] = cell["overhead"]
        auto = point["strategies"][-1]
        for cell in point["strategies"]:
            assert not cell["feasible"] or (auto["feasible"]
                                            and auto["overhead"] <= cell["overhead"])
    assert before["none"] == 0 and before["auto"] == 0


def check_a_point_is_what_plan_says_at_that_budget():
    root = json.loads(read("dir/sweep.json"))
    point = root["points"][4]
    plan = json.loads(run("plan", "u,n.onnx", "--batch", "2", "--json", "--budget",
                          str(int(point["budget_bytes"]))).stdout)
    assert plan["plan"] == point["strategies"][-1]["plan"]


def check_the_curves_are_well_formed_svg():
    root = xml.etree.ElementTree.parse("dir/overhead.svg").getroot()
    assert root.tag.endswith("svg")
    assert len(root.findall(".//{*}circle")) >= len(ALL)


def check_a_training_graph_is_swept_over_sizes():
    run("plan", "u,n.onnx", "--batch", "2", "-q", "--graph-json", "g.json")
    run("sweep", "g.json", "-q", "--from", "600KiB", "--to", "1MiB", "--points", "2",
        "--strategies", "exact,auto", "-o", "g")
    points = json.loads(read("g/sweep.json"))["points"]
    assert [p["arena_budget_bytes"] for p in points] == [600 * 1024, 1024 * 1024]
    assert [c["strategy"] for c in points[0]["strategies"]] == ["exact", "auto"]


def check_wrong_options_are_refused():
    for args, word in [(["--from", "x"], "--from"), (["--to", "min"], "--to"),
                       (["--from", "80%", "--to", "40%"], "--from"), (["--points", "-1"], "--points"),
                       (["--points", "5000"], "--points"), (["--strategies", "auto,best"], "best"),
                       (["--strategies", ""], "--strategies"), (["--budget", "50%"], "--budget")]:
        err = run("sweep", "u,n.onnx", "--batch", "2", "-q", *args, code=2).stderr
        assert word in err, err
    run("sweep", "missing.onnx", "-q", code=1)
    err = run("sweep", "u,n.onnx", "--batch", "2", "-q", "--points", "1", "-o", "u,n.onnx/x", code=1)
    assert "cannot" in err.stderr


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as dir_:
        os.chdir(dir_)
        for name, check in [(n, f) for n, f in globals().items() if n.startswith("check_")]:
            try:
                check()
                print(f"ok   {name[6:]}")
            except Exception as why:      # the rest still runs
                failed += 1
                print(f"FAIL {name[6:]}: {type(why).__name__} {why}")
        os.chdir("/")
    print(f"{failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
