"""Lowerset: train a module inside a memory budget.

    import lowerset

    t = lowerset.trainer(model, example_inputs, loss="ce", optimizer="adamw", budget="4GiB")
    t.fit(loader, epochs=3)
    t.load_into(model)

Names are looked up when they are first used, so that importing the package takes no time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:       # what tools that read types see; a test compares it with _HOMES
    from ._dataset import Dataset, Field, open_dataset, pack
    from ._export import Exported, export
    from ._library import Net, Tensor
    from ._trainer import Trainer, trainer
    from .commands import Check, Plan, Sweep, check, compile, inspect, plan, sweep
    from .errors import (BudgetError, CheckError, DataError, DivergedError, LowersetError,
                         LowersetWarning, ModelError, RankError, ToolError, UnsupportedError,
                         UsageError)

# Public names and the modules that define them.
_HOMES = {
    **dict.fromkeys(("LowersetError", "BudgetError", "CheckError", "DataError", "DivergedError",
                     "LowersetWarning", "ModelError", "RankError", "ToolError",
                     "UnsupportedError", "UsageError"), "errors"),
    **dict.fromkeys(("Check", "Plan", "Sweep", "check", "compile", "inspect", "plan", "sweep"),
                    "commands"),
    **dict.fromkeys(("Dataset", "Field", "open_dataset", "pack"), "_dataset"),
    "Exported": "_export",
    "Net": "_library",
    "Tensor": "_library",
    "Trainer": "_trainer",
    "export": "_export",
    "trainer": "_trainer",
}

__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'lowerset' has no attribute {name!r}")
    value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
