"""The commands of `lowerset` as functions. Each option of the command line is a keyword."""

from __future__ import annotations

import base64
import html
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._program import option_words, run
from .errors import CheckError, UsageError

__all__ = ["Check", "Plan", "Sweep", "check", "compile", "inspect", "plan", "sweep"]

_MIB = 1 << 20


def _model_word(model: str | os.PathLike[str]) -> str:
    """A path as a word that is no option."""
    path = os.fspath(model)
    return f"./{path}" if path.startswith("-") else path


def _own(options: dict[str, object], command: str, *names: str) -> None:
    """Refuses options that a function gives itself."""
    for name in names:
        if name in options:
            raise UsageError(f"lowerset.{command} sets {name} itself",
                             hint="use the command line for other forms: python -m lowerset")


def _size(count: float) -> str:
    return f"{count / _MIB:,.2f} MiB"


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th style='text-align:left'>{html.escape(a)}</th>"
                    f"<td style='text-align:right'>{html.escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{cells}</table>"


class Plan(dict):
    """The report of a plan, as `lowerset plan --json` prints it: sizes in bytes, parts of 1.

    `arena_bytes` and `state_bytes` are what the program takes, `overhead` is the part of a step
    that recomputation adds, `plan` is the plan's hash. A notebook shows memory over time.

    timeline: memory over time as SVG text, or None
    """

    timeline: str | None = None

    def _repr_html_(self) -> str:
        rows = [("model", str(self.get("graph"))), ("plan", str(self.get("plan"))),
                ("strategy", str(self.get("strategy"))),
                ("state", _size(self.get("state_bytes", 0))),
                ("arena", _size(self.get("arena_bytes", 0))),
                ("arena without recomputation", _size(self.get("no_recompute_arena_bytes", 0))),
                ("recomputation", f"{100 * self.get('overhead', 0):.2f} % of a step")]
        if "gap" in self:
            rows.append(("at most above the least", f"{100 * self['gap']:.2f} %"))
        picture = ""
        if self.timeline is not None:
            # As a picture of its own: the styles in it stay there.
            data = base64.b64encode(self.timeline.encode()).decode()
            picture = (f"<img alt='memory over time' style='max-width:100%' "
                       f"src='data:image/svg+xml;base64,{data}'>")
        return _table(rows) + picture


def planned(model: str | os.PathLike[str], words: Sequence[str], *, timeline: bool = True) -> Plan:
    """The plan of a model with options that are words of the command line (option_words)."""
    with tempfile.TemporaryDirectory(prefix="lowerset-") as folder:
        drawn = Path(folder, "timeline.svg")
        drawing = [f"--timeline={drawn}"] if timeline else []
        made = Plan(json.loads(run(["plan", _model_word(model), "--json", *words, *drawing])))
        if drawn.exists():
            made.timeline = drawn.read_text(encoding="utf-8")
    return made


def plan(model: str | os.PathLike[str], *, budget: int | str | None = None,
         batch: int | None = None, **options: object) -> Plan:
    """What training a model takes, and what a budget costs. Builds nothing.

    model: path of an ONNX file, or of a training graph (JSON)
    budget: limit on all memory: bytes, "4GiB", "60%", "min"; None: no limit
    batch: size of a dynamic first dimension
    options: those of `lowerset plan`: precision="bf16", strategy="exact", report="net.html"

    Raises BudgetError if no plan fits: its report has least_arena_bytes, its hint a budget that
    fits. With stages or max_batch the report is another, and there is no timeline.
    """
    _own(options, "plan", "json")
    words = option_words(budget=budget, batch=batch, **options)
    drawn = not {"stages", "max_batch", "timeline", "against"} & options.keys()
    return planned(model, words, timeline=drawn)


def compile(model: str | os.PathLike[str], output: str | os.PathLike[str], *,
            budget: int | str | None = None, batch: int | None = None,
            **options: object) -> Path:
    """Turns a model into a program that trains it; or, with emit="lib", into a library.

    model: path of an ONNX file
    output: the program's path; a library's without ending: net.h, libnet.a and libnet.so
    budget, batch: as for plan
    options: those of `lowerset compile`: optimizer="adamw:wd=0.01", clip_norm=1, emit="lib"

    Returns the path of the program, the object file, the C file, or the shared library.
    """
    words = option_words(budget=budget, batch=batch, **options)
    run(["compile", _model_word(model), f"--output={os.fspath(output)}", *words])
    path = Path(output)
    return path.with_name(f"lib{path.name}.so") if options.get("emit") == "lib" else path


class Check(dict):
    """The report of a check: `passed`, and `checks`, a list of dicts (check, result, says)."""

    def _repr_html_(self) -> str:
        return _table([(f"{c['check']}: {c['result']}", c.get("says", ""))
                       for c in self.get("checks", ())])


def check(model: str | os.PathLike[str], *, batch: int | None = None, **options: object) -> Check:
    """Checks on this machine that training a model is right: plan, budget, gradients.

    model: path of an ONNX file
    options: those of `lowerset check`: elements=50, data="train.npz", precision="bf16"

    Raises CheckError if a check fails; its report says which.
    """
    _own(options, "check", "json", "graph")
    words = option_words(batch=batch, quiet=True, **options)
    try:
        return Check(json.loads(run(["check", _model_word(model), "--json", *words])))
    except CheckError as error:
        failed = [c for c in (error.report or {}).get("checks", ()) if c["result"] == "failed"]
        if failed:
            error.args = ("\n".join(f"{c['check']}: {c.get('says', 'failed')}" for c in failed),)
        raise


def inspect(model: str | os.PathLike[str], **options: object) -> dict[str, Any]:
    """Operators, dimensions, parameters and obstacles of a model, as a dict.

    model: path of an ONNX file
    options: those of `lowerset inspect`: batch=8, freeze=["conv*"]

    A model that cannot be trained is no error here: its report lists the obstacles.
    """
    _own(options, "inspect", "json")
    words = ["inspect", _model_word(model), "--json", *option_words(**options)]
    return json.loads(run(words, accept=(0, 3)))


class Sweep(list):
    """Rows of a sweep: a dict for each budget and strategy.

    A row has strategy, budget_bytes, budget_percent, overhead_lower_bound, feasible, and, if that
    is true, overhead (part of a step), gap, arena_bytes, live_peak_bytes, recomputations, plan.
    """

    def plot(self, axes: Any = None) -> Any:
        """Draws overhead over budget, a line for each strategy. Returns matplotlib's axes.

        axes: where to draw; None: a new figure
        """
        try:
            from matplotlib import pyplot
        except ImportError:
            raise UsageError("plot needs matplotlib, which is not installed",
                             hint="pip install matplotlib") from None
        axes = pyplot.subplots()[1] if axes is None else axes
        for strategy in dict.fromkeys(row["strategy"] for row in self):
            points = [(row["budget_bytes"] / _MIB, 100 * row["overhead"]) for row in self
                      if row["strategy"] == strategy and row["feasible"]]
            axes.plot([x for x, _ in points], [y for _, y in points], marker=".", label=strategy)
        bound = sorted({(row["budget_bytes"] / _MIB, 100 * row["overhead_lower_bound"])
                        for row in self if row["overhead_lower_bound"] is not None})
        axes.plot([x for x, _ in bound], [y for _, y in bound], "--", label="bound")
        axes.set_xlabel("budget, MiB")
        axes.set_ylabel("recomputation, % of a step")
        axes.legend()
        return axes


def sweep(model: str | os.PathLike[str], *, output: str | os.PathLike[str] | None = None,
          batch: int | None = None, **options: object) -> Sweep:
    """Compares strategies over a range of budgets.

    model: path of an ONNX file, or of a training graph (JSON)
    output: folder for tables, curves and pages; None: they are not kept
    options: those of `lowerset sweep`: points=8, from_="30%", strategies=["auto", "chen"]

    Budgets run upwards; for each there is a row of every strategy.
    """
    _own(options, "sweep", "table")
    words = option_words(batch=batch, **options)
    with tempfile.TemporaryDirectory(prefix="lowerset-") as folder:
        into = folder if output is None else os.fspath(output)
        run(["sweep", _model_word(model), f"--output={into}", "--quiet", *words])
        with open(os.path.join(into, "sweep.json"), encoding="utf-8") as file:
            points = json.load(file)["points"]
    shared = ("budget_percent", "budget_bytes", "arena_budget_bytes", "overhead_lower_bound")
    return Sweep({**{k: point[k] for k in shared if k in point}, **of}
                 for point in points for of in point["strategies"])
