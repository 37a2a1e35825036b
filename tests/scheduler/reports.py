#!/usr/bin/env python3
"""Checks the tables, curves and pages that lowerset writes, by programs that share nothing with it.

    tests/scheduler/reports.py BUILD

Each function named check_... is one behaviour; exit status 1 when one fails.
"""
import csv
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

LOWERSET = os.path.join(os.path.abspath(sys.argv[1]), "lowerset")
WHOLE = os.environ.get("LS_WHOLE") and not os.environ.get("LS_SANITIZED")
QUICKLY = "-O1" if WHOLE else "-O0"
EFFORT = "10" if WHOLE else "2"                 # the search's length is not what is tested here
POINTS = 9 if WHOLE else 5
WORDS = subprocess.run([LOWERSET, "sweep", "--help"], capture_output=True, text=True,
                       check=True).stdout
NAMES = " ".join(WORDS.split()).split("strategies to compare, "
                                      "some of ")[1].split(" (default")[0].split()
ALL = [n for n in NAMES if n + "-tc" not in NAMES]
assert ALL[0] == "none" and ALL[-1] == "auto" and "chen" in ALL and len(ALL) < len(NAMES), NAMES


def run(*args, code=0):
    if args[0] in ("plan", "sweep"):
        args += ("--plan-effort", EFFORT)
    done = subprocess.run([LOWERSET, *args], capture_output=True, text=True, timeout=200)
    assert done.returncode == code, f"{args}: exit {done.returncode}, not {code}: {done.stderr}"
    return done


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check_curves_are_monotone_and_agree_in_csv_and_json():
    run("model", "unet", "--width=6", "--depth=2", "--size=32", "-o", "u,n.onnx")
    out = run("sweep", "u,n.onnx", "--batch", "2", "--points", str(POINTS), "-o", "dir")
    assert f"budget {POINTS} of {POINTS}" in out.stderr
    rows = list(csv.DictReader(open("dir/sweep.csv", newline="")))
    root = json.loads(read("dir/sweep.json"))
    assert root["schema"] == 1 and len(root["points"]) == POINTS and len(rows) == POINTS * len(ALL)
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
    assert before["none"] == 0 and before["auto"] <= 0      # below 0 by cheaper alternatives


def check_a_point_is_what_plan_says_at_that_budget():
    root = json.loads(read("dir/sweep.json"))
    point = root["points"][POINTS // 2]
    plan = json.loads(run("plan", "u,n.onnx", "--batch", "2", "--json", "--budget",
                          str(int(point["budget_bytes"]))).stdout)
    assert plan["plan"] == point["strategies"][-1]["plan"]


def check_the_curves_are_well_formed_svg():
    root = xml.etree.ElementTree.parse("dir/overhead.svg").getroot()
    assert root.tag.endswith("svg")
    assert len(root.findall(".//{*}circle")) >= len(ALL)
    xml.etree.ElementTree.parse("dir/memory.svg")


def check_a_timeline_is_drawn_and_told():
    run("plan", "u,n.onnx", "--batch", "2", "-q", "--budget", "60%", "--timeline", "t.svg")
    root = xml.etree.ElementTree.parse("t.svg").getroot()
    text = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert any(re.fullmatch(r"predicted time, ms \(cpu, 2 threads\)", t or "") for t in text), text
    assert {"u,n.onnx", "without a budget", "this plan", "run again",
            "budget of the arena"} <= set(text), text
    run("plan", "u,n.onnx", "--batch", "2", "-q", "--budget", "60%", "--timeline", "t.csv")
    rows = [l.split("\t") for l in read("t.csv").splitlines() if not l.startswith("#")]
    starts = [float(r[1]) for r in rows]
    assert starts == sorted(starts) and any(r[3] == "1" for r in rows), rows


def check_a_budget_far_above_the_plan_leaves_room_for_the_plan():
    def picture(budget):
        run("plan", "u,n.onnx", "--batch", "2", "-q", "--budget", budget, "--timeline", "far.svg")
        root = xml.etree.ElementTree.parse("far.svg").getroot()
        words = [e.text for e in root.iter() if e.tag.endswith("text")]
        heights = [float(y) for e in root.iter()
                   for y in re.findall(r"[\s,]([0-9.]+)(?=[\sLMHV,]|$)", e.get("d", ""))]
        numbers = [float(w) for w in words if w and re.fullmatch(r"[0-9.]+", w)]
        return words, heights, numbers
    near, far = picture("90%"), picture("3GiB")
    assert "budget of the arena: 3.00 GiB, above this picture" in far[0], far[0]
    assert max(far[2]) < 2 * max(near[2]), "the axis is that of the budget, not of the plan"


def check_a_training_graph_is_swept_over_sizes():
    run("plan", "u,n.onnx", "--batch", "2", "-q", "--graph-json", "g.json")
    run("sweep", "g.json", "-q", "--from", "400KiB", "--to", "1MiB", "--points", "2",
        "--strategies", "exact,auto", "-o", "g")
    points = json.loads(read("g/sweep.json"))["points"]
    assert [p["arena_budget_bytes"] for p in points] == [400 * 1024, 1024 * 1024]
    assert [c["strategy"] for c in points[0]["strategies"]] == ["exact", "auto"]


class Page(html.parser.HTMLParser):
    """Well-formed or an error; keeps the scripts, the text, and what could load something."""

    VOID = {"meta", "input", "br"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.scripts, self.words, self.loads = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        names = [n for n, _ in attrs]
        assert len(names) == len(set(names)) and not any(n.startswith("on") for n in names)
        self.loads += [v for n, v in attrs if n in ("src", "href", "xlink:href", "action")]
        if tag == "script":
            self.scripts.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> out of place"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.words.append(data)


def check_the_page_of_a_plan_is_whole_and_loads_nothing():
    out = run("plan", "u,n.onnx", "--batch", "2", "-q", "--json", "--budget", "60%", "--report",
              "p.html", "--plan-json", "p.json")
    summary, plan = json.loads(out.stdout), json.loads(read("p.json"))
    text = read("p.html")
    page = Page(text)
    assert page.loads == [] and len(page.scripts) == 2 and "url(" not in text
    data = json.loads(page.scripts[0])
    runs = [s["compute"] for s in plan["steps"] if "compute" in s]
    assert [r[0] for r in data["runs"]] == runs
    assert max(sum(r[2:7]) for r in data["runs"]) == summary["live_peak_bytes"]
    assert sum(data["runs"][data["peak"]][2:7]) == summary["live_peak_bytes"]
    again = sum(r[1] for r in data["runs"])
    assert again == len(runs) - len(set(runs)) > 0
    assert f"{100 * summary['overhead']:.2f} %" in page.words
    # The table of what is made again ends with the overhead, and names what lies between.
    bare = re.sub("<[^>]*>", " ", text)
    parts = [float(x) for x in re.findall(r"(-?[0-9.]+) %", " ".join(
        line for line in bare.splitlines()
        if re.match(r" *(all |further runs of b|kernels that|overhead of)", line)))]
    assert len(parts) >= 2 and abs(sum(parts[:-1]) - parts[-1]) < 0.004, parts
    assert abs(parts[-1] - 100 * summary["overhead"]) < 0.001, parts
    assert f"Run {summary['peak']['run'] + 1}, node" in bare


def check_backward_nodes_that_run_again_are_told_as_forward_ones():
    run("model", "gpt", "--depth=1", "--heads=2", "--width=32", "--context=32", "--vocab=65",
        "-o", "clip.onnx")
    args = ["plan", "clip.onnx", "--batch", "4", "--clip-norm", "1", "--budget=min",
            "--machine", "cpu"]
    told = json.loads(run(*args, "-q", "--json", "--plan-json", "c.json", "--graph-json", "cg.json",
                          "--report", "c.html", "--timeline", "c.csv", "--graph", "c.dot").stdout)
    said = run(*args, "-v").stdout
    tensors, nodes = (json.loads(read("cg.json"))[k] for k in ("tensors", "nodes"))
    runs = [s["compute"] for s in json.loads(read("c.json"))["steps"] if "compute" in s]
    size = lambda v: sum(tensors[t]["bytes"] for t in nodes[v].get("outputs", []))
    again = [v for k, v in enumerate(runs) if v in runs[:k]]
    base = sum(n["cost"] for n in nodes if not n.get("alternative"))
    data = json.loads(Page(read("c.html")).scripts[0])
    bare = re.sub(" +", " ", re.sub("<[^>]*>", " ", read("c.html")))
    for part in ("forward", "backward"):
        mine = [v for v in again if nodes[v]["kind"] == part]
        cost, once = sum(nodes[v]["cost"] for v in mine), set(mine)
        row = next(r for r in told["recomputed"] if r["part"] == part)
        assert len(mine) == row["runs"] > 0 and sum(map(size, mine)) == row["bytes"], row
        assert abs(row["cost"] / cost - 1) < 1e-9
        assert re.search(rf"^ +{part} nodes: .* in {len(mine)} runs, {100 * cost / base:.2f} % of "
                         rf"a step$", said, re.M), said
        assert re.search(rf"^all +{part} +{len(once)} .* {len(mine)} +{100 * cost / base:.2f} %$",
                         said, re.M), said
        ops = {nodes[v]["op"] for v in mine}
        assert set(re.findall(rf"^(\S+) +{part} ", said, re.M)) == ops | {"all"}, said
        assert re.search(rf"all {part} {part} [0-9 ]+ .* {len(once)} [0-9.]+ \w+ {len(mine)} "
                         rf"{100 * cost / base:.3f} %", bare)
    assert told["recomputed_runs"] == len(again) == sum(r[1] for r in data["runs"])
    # What runs again makes recomputed bytes, whatever its part: replayed from the plan.
    live, seen, k = {}, set(), 0                # tensor: whether it was made again
    for step in json.loads(read("c.json"))["steps"]:
        if "free" in step:
            del live[step["free"]]
            continue
        v, taken = step["compute"], dict(step.get("reuse", []))
        live.update((t, v in seen) for t in nodes[v].get("outputs", []) if t not in taken)
        assert data["runs"][k][4] == sum(tensors[t]["bytes"] for t, made in live.items()
                                         if made), (k, data["runs"][k])
        for t, place in taken.items():
            del live[place]
            live[t] = v in seen
        seen.add(v)
        k += 1
    marks = [l.split("\t")[3] for l in read("c.csv").splitlines() if not l.startswith("#")]
    assert [m == "1" for m in marks] == [v in runs[:k] for k, v in enumerate(runs)]
    orange = set(map(int, re.findall(r"n(\d+) \[fillcolor=\"#f4b183\"", read("c.dot"))))
    assert orange == set(again)


def check_the_page_of_a_sweep_links_pages_that_are_there():
    page = Page(read("dir/index.html"))
    assert page.scripts == [] and 2 <= len(page.loads) <= 5
    for name in page.loads:
        data = json.loads(Page(read("dir/" + name)).scripts[0])
        assert data["runs"], name


def check_measured_points_are_in_every_table():
    out = run("sweep", "u,n.onnx", "--batch", "2", "--measure", QUICKLY, "--from", "60%",
              "--points", "2", "-o", "m", "--machine", "cpu")
    assert "building program 1 of" in out.stderr and "ms a step" in out.stdout
    assert "Measured" in read("m/index.html") and "auto, measured" in read("m/overhead.svg")
    rows = [r for r in csv.DictReader(open("m/sweep.csv", newline="")) if r["measured_ms"]]
    root = json.loads(read("m/sweep.json"))
    cells = [c for p in root["points"] for c in p["strategies"] if "measured_ms" in c]
    assert root["without_recomputation"]["measured_ms"] > 0 < root["measured_threads"]
    assert len(rows) == len(cells) >= 2 and {r["strategy"] for r in rows} == {"auto"}
    for row, cell in zip(rows, cells):
        assert float(row["measured_ms"]) > 0 < float(row["predicted_ms"])
        assert abs(float(row["measured_ms"]) / cell["measured_ms"] - 1) < 1e-4
        # Packed weights have room for the widest vectors: those of this machine may fill less
        # of it.
        assert int(row["touched_bytes"]) == cell["touched_bytes"]
        assert 0.99 * cell["arena_bytes"] < cell["touched_bytes"] <= cell["arena_bytes"]
    plain = list(csv.DictReader(open("dir/sweep.csv", newline="")))
    assert all(r["measured_ms"] == r["touched_bytes"] == "" for r in plain)


def check_a_sweep_of_micro_batches_plans_a_part():
    model = ["u,n.onnx", "--batch", "4", "--microbatches", "2"]
    run("sweep", *model, "-q", "--points", "1", "--from", "70%", "--to", "70%",
        "--strategies", "auto", "-o", "parts", "--measure", QUICKLY, "--machine", "cpu")
    point = json.loads(read("parts/sweep.json"))["points"][0]
    cell = point["strategies"][0]
    plan = json.loads(run("plan", *model, "--json", "--budget", str(point["budget_bytes"]),
                          "--machine", "cpu").stdout)
    assert plan["plan"] == cell["plan"] and plan["arena_bytes"] == cell["arena_bytes"]
    # a step has both parts
    assert abs(plan["step_ns"] * 1e-6 / cell["predicted_ms"] - 1) < 1e-4
    assert "--microbatches" in run("sweep", "--table", "--microbatches", "2", code=2).stderr


def check_only_models_are_measured():
    err = run("sweep", "g.json", "-q", "--measure", code=2).stderr
    assert "--measure is for models, but this is a training graph" in err
    assert "--measure" in run("sweep", "u,n.onnx", "--table", "--measure", code=2).stderr
    err = run("sweep", "u,n.onnx", "--batch", "2", "--measure", "-q", "--points", "1", "--cc",
              "/bin/false", "-o", "none", code=5).stderr
    assert "/bin/false" in err and not os.path.exists("none")


def check_hints_hold_for_every_point():
    args = ["u,n.onnx", "--batch", "2", "-q", "--machine", "cpu"]
    for hint in ["--recompute=conv-saved", "--recompute=all"]:
        run("sweep", *args, hint, "--from", "60%", "--points", "3", "--strategies", "none,auto",
            "-o", "h")
        points = json.loads(read("h/sweep.json"))["points"]
        autos = [p["strategies"][-1] for p in points]
        for point, cell in zip(points, autos):
            at = str(int(point["budget_bytes"]))
            plan = json.loads(run("plan", *args, hint, "--json", "--budget", at).stdout)
            assert cell["overhead"] <= plan["overhead"] + 1e-9, "dearer than plan's"
            assert hint == "--recompute=all" or cell["plan"] == plan["plan"]
            assert cell["overhead"] >= point["overhead_lower_bound"] - 1e-9
        assert autos[0]["overhead"] >= autos[1]["overhead"] >= autos[2]["overhead"]
        assert (autos[2]["overhead"] > 0.1) == (hint == "--recompute=all")


def check_no_name_becomes_markup():
    run("plan", "u,n.onnx", "--batch", "2", "-q", "--graph-json", "h.json")
    graph = json.loads(read("h.json"))
    evil = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "a&lt;b\"'`",
            "<!--", "]]>", "\u2028\u2029", "\x01\x7f", "${alert(3)}", "'+alert(4)+'", "\\", "%n%s"]
    for k, node in enumerate(graph["nodes"]):
        node["name"] = evil[k % len(evil)]
        node["op"] = evil[(k + 3) % len(evil)]
    for k, tensor in enumerate(graph["tensors"]):
        tensor["name"] = evil[(k + 1) % len(evil)] + str(k)
    graph["name"] = evil[0]
    name = "<svg onload=alert(5)>'&.json"
    with open(name, "w", encoding="utf-8") as f:
        json.dump(graph, f)
    run("plan", name, "-q", "--budget", "60%", "--report", "h.html")
    page = Page(read("h.html"))
    assert page.loads == [] and len(page.scripts) == 2
    data = json.loads(page.scripts[0])
    assert [n[0] for n in data["nodes"]] == [n["name"] for n in graph["nodes"]]
    assert [t[0] for t in data["tensors"]] == [t["name"] for t in graph["tensors"]]
    assert name in page.words


def check_names_that_are_no_text_become_text():
    graph = read("g.json").replace('"name": "inc', '"name": "\\u0000i\x80nc')
    with open("b.json", "w", encoding="latin-1") as f:
        f.write(graph.replace("inc", "i\x80\xc0\xafnc"))
    run("plan", "b.json", "-q", "--budget", "70%", "--report", "b.html")
    Page(read("b.html"))        # read as UTF-8, strictly


def check_the_largest_batch_fits_and_one_more_does_not():
    run("model", "cnn", "--width=4", "-o", "r.onnx")
    out = run("plan", "r.onnx", "--max-batch", "--budget", "16MiB", "--json")
    rows = json.loads(out.stdout)["strategies"]
    assert [r["strategy"] for r in rows] == ["none", "chen", "approx", "exact", "auto"]
    assert "fits" in out.stderr and rows[0]["overhead"] == 0
    for row in rows:
        assert row["batch"] >= rows[0]["batch"] > 1 and row["total_bytes"] <= 16 << 20
        assert rows[-1]["batch"] >= row["batch"]
        args = ["plan", "r.onnx", "-q", "--budget", "16MiB", "--strategy", row["strategy"]]
        fits = json.loads(run(*args, "--json", "--batch", str(row["batch"])).stdout)
        assert fits["plan"] == row["plan"] and abs(fits["overhead"] - row["overhead"]) < 1e-9
        run(*args, "--batch", str(row["batch"] + 1), code=4)
    text = run("plan", "r.onnx", "-q", "--max-batch", "--budget", "16MiB", "--strategy", "none")
    assert str(rows[0]["batch"]) in text.stdout and text.stderr == ""
    assert "none" in run("plan", "r.onnx", "-q", "--max-batch", "--budget", "9KiB", "--strategy",
                         "chen").stdout


def check_a_batch_that_cannot_be_searched_is_explained():
    run("model", "mlp", "--batch=4", "-o", "four.onnx")
    err = run("plan", "four.onnx", "--max-batch", "--budget", "1GiB", code=2).stderr
    assert "dynamic first dimension" in err
    run("model", "mlp", "--batch=1", "-o", "one.onnx")
    err = run("plan", "one.onnx", "--max-batch", "--budget", "1GiB", code=2).stderr
    assert "batch of 1, but not of 2" in err
    run("model", "mlp", "-o", "mlp.onnx")
    for args, word in [([], "--budget"), (["--budget", "50%"], "bytes"),
                       (["--budget", "1GiB", "--batch", "3"], "--batch"),
                       (["--budget", "1GiB", "--strategy", "best"], "best"),
                       (["--budget", "1GiB", "--report", "x.html"], "reports")]:
        err = run("plan", "mlp.onnx", "--max-batch", *args, code=2).stderr
        assert word in err, err
    assert "model" in run("plan", "g.json", "--max-batch", "--budget", "1GiB", code=1).stderr


def check_the_table_of_the_paper_has_a_row_with_every_column():
    run("sweep", "u,n.onnx", "--batch", "2", "--table", "-q", "-o", "t.md")
    rows = [[c.strip() for c in line.strip("|\n").split("|")] for line in read("t.md").splitlines()
            if line.startswith("| u,n.onnx")]
    networks, peaks, overheads, formula, against = rows
    assert int(networks[2]) > 5 and int(networks[3]) > int(networks[2])
    assert len(peaks) == 9 and len(overheads) == 7 and len(formula) == 7 and len(against) == 13
    for with_, without in zip(peaks[1:5], formula[1:5]):
        assert float(with_.split()[0]) <= float(without.split()[0]), "liveness adds memory"
    assert against[11] in ("yes", "**no**") and against[1] in ("approx MC", "approx TC", "exact MC",
                                                               "exact TC")
    assert float(against[5]) <= float(against[4]) <= float(against[3]), "auto is dearer than a DP"


def check_wrong_options_are_refused():
    for args, word in [(["--from", "x"], "--from"), (["--to", "min"], "--to"),
                       (["--from", "80%", "--to", "40%"], "--from"),
                       (["--points", "-1"], "--points"),
                       (["--points", "5000"], "--points"), (["--strategies", "auto,best"], "best"),
                       (["--strategies", ""], "--strategies"), (["--budget", "50%"], "--budget"),
                       (["--keep", "no*such"], "--keep"), (["--recompute", "x"], "--recompute"),
                       (["--table", "--keep", "x"], "--keep")]:
        err = run("sweep", "u,n.onnx", "--batch", "2", "-q", *args, code=2).stderr
        assert word in err, err
    run("sweep", "missing.onnx", "-q", code=1)
    err = run("sweep", "u,n.onnx", "--batch", "2", "-q", "--points", "1", "-o", "u,n.onnx/x",
              code=1)
    assert "cannot" in err.stderr


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as dir_:
        os.chdir(dir_)
        for name, check in [(n, f) for n, f in globals().items() if n.startswith("check_")]:
            try:
                check()
                print(f"ok   {name[6:]}")
            except Exception as why:      # the other checks still run
                failed += 1
                print(f"FAIL {name[6:]}: {type(why).__name__} {why}")
        os.chdir("/")
    print(f"{failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
