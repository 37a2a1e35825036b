"""Runs the code of a notebook from its first cell to its last, without Jupyter.

    python run_notebook.py budget.ipynb
"""
import ast
import json
import os
import sys


def run(path):
    names = {"__name__": "__main__"}
    with open(path, encoding="utf-8") as f:
        cells = json.load(f)["cells"]
    for cell in (c for c in cells if c["cell_type"] == "code"):
        tree = ast.parse("".join(cell["source"]), path)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path, "exec"), names)
        if last is not None:            # what Jupyter would show
            value = eval(compile(ast.Expression(last.value), path, "eval"), names)
            show = getattr(value, "_repr_html_", None)
            print(f"HTML, {len(show())} characters" if show else value)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
    run(sys.argv[1])
