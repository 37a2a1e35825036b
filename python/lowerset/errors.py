"""Errors of the compiler and of the libraries that it makes."""

from __future__ import annotations

import re


class LowersetError(Exception):
    """What the compiler or a library of it refused.

    code: the exit code of the program, or the number of a library's error
    node: the ONNX node that the message is about, or None
    hint: what to do about it, or None
    report: the JSON report that the program printed nevertheless, as a dict, or None
    """

    def __init__(self, text: str, *, code: int = 1, node: str | None = None,
                 hint: str | None = None):
        super().__init__(text)
        self.code = code
        self.node = node
        self.hint = hint
        self.report: dict | None = None


class LowersetWarning(UserWarning):
    """What the compiler warned of."""


class ModelError(LowersetError):
    """The model or a file cannot be read, or is wrong (exit code 1)."""


class UsageError(LowersetError):
    """An option is wrong, or does not go with another (exit code 2)."""

    def __init__(self, text: str, *, code: int = 2, node: str | None = None,
                 hint: str | None = None):
        super().__init__(text, code=code, node=node, hint=hint)


class UnsupportedError(LowersetError):
    """An operator, or a form of it, is not implemented or has no gradient (exit code 3)."""


class BudgetError(LowersetError):
    """No plan fits the budget (exit code 4)."""


class ToolError(LowersetError):
    """A C compiler, a library or a device is missing or failed (exit code 5)."""


class CheckError(LowersetError):
    """A check of gradients, of a plan or of a regression failed (exit code 6)."""


class DivergedError(LowersetError):
    """Training diverged: the loss is not finite (exit code 7)."""


class DataError(LowersetError):
    """Data or a checkpoint cannot be read (exit code 8)."""


class RankError(LowersetError):
    """Another rank died, or is out of reach (exit code 9)."""


_BY_CODE = {1: ModelError, 2: UsageError, 3: UnsupportedError, 4: BudgetError, 5: ToolError,
            6: CheckError, 7: DivergedError, 8: DataError, 9: RankError}

# net.onnx: node 57 'layer2/conv1' (Conv): error LS-E0102: X has 3 channels, W takes 1
#   hint: ...
# A name may hold anything but a line's end: compiler/ir/diag.c writes control characters as \xNN.
_FIRST = re.compile(r"^(?P<file>.*?): (?:(?:node (?P<number>\d+))? ?(?:'(?P<name>.*?)')? ?"
                    r"(?:\((?P<op>[^)]*)\))?: )?error LS-E(?P<id>\d{4}): (?P<text>.*)$", re.M)
_HINT = re.compile(r"\n  hint: (.*)")
# Where a message is about several nodes, its text names the first or the worst.
_NAMED = re.compile(r"\bnode (?:\d+ )?'(.+?)'")
_WARNING = re.compile(r"^.*?: warning: .*(?:\n  hint: .*)?$", re.M)


def error_of(code: int, said: str) -> LowersetError:
    """The exception of an exit code of the program, and of what it printed on standard error.

    The first message counts: node is the node's name, or its number where it has none. The
    exception's text is all that was said.
    """
    kind = _BY_CODE.get(code, LowersetError)
    said = said.strip()
    first = _FIRST.search(said)
    if first is None:
        return kind(said or f"lowerset ended with {code}", code=code)
    hint = _HINT.match(said, first.end())
    node = first["name"] or first["number"]
    if node is None and (named := _NAMED.search(first["text"])):
        node = named[1]
    return kind(said, code=code, node=node, hint=hint[1] if hint is not None else None)


def warnings_of(said: str) -> list[str]:
    """The warnings in what the program printed on standard error, each with its hint."""
    return _WARNING.findall(said)
