"""Execute the tutorials: docs/tutorials/*.md become notebooks with their output in build/tutorials.

The sources are plain Markdown (jupytext): a Python block is a cell, a bash block a cell of the shell.
Each runs in an empty folder of its own and fails if a cell fails.
"""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "docs" / "tutorials"
TARGET = ROOT / "build" / "tutorials"
HIDE = "hide"  # tag of a cell that readers need not see

_SETUP = "%config InlineBackend.figure_formats = ['svg']\n%matplotlib inline"


def sources() -> list[Path]:
    """Return the tutorials, without the page that lists them."""
    return sorted(path for path in SOURCES.glob("*.md") if path.name != "index.md")


def execute(path: Path, *, seconds: int = 120) -> Path:
    """Run a tutorial and write the notebook with its output; a cell that fails is an error."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient

    notebook = jupytext.read(path)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(_SETUP, metadata={"tags": [HIDE]}))
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=seconds,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        client.execute(env=_environment())
    del notebook.cells[0]
    TARGET.mkdir(parents=True, exist_ok=True)
    target = TARGET / f"{path.stem}.ipynb"
    nbformat.write(notebook, target)
    return target


def _environment() -> dict[str, str]:
    """Return an environment in which `primo` is this one and BLAS does not fight with itself."""
    beside = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', '')}",
        "OMP_NUM_THREADS": "1",
    }


def as_markdown(notebook: Any) -> str:
    """Return an executed notebook as Markdown, its figures inside the text."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        if HIDE in cell.metadata.get("tags", []):
            continue
        source, language = cell.source, "python"
        if source.startswith("%%bash"):
            # "2>&1" keeps what is printed in order here; a reader at a terminal does not need it.
            source, language = source.removeprefix("%%bash").lstrip("\n"), "bash"
            source = source.replace(" 2>&1", "")
        parts.append(_fenced(source, language))
        said = [output.text for output in cell.outputs if output.output_type == "stream"]
        parts.append(_fenced("".join(said).rstrip(), "text", kind="output"))
        parts.extend(_shown(output) for output in cell.outputs if output.output_type != "stream")
    return "\n\n".join(filter(None, parts)) + "\n"


def as_given(notebook: Any) -> Any:
    """Return a notebook without output, and without the cells that readers need not see."""
    given = deepcopy(notebook)
    given.cells = [cell for cell in given.cells if HIDE not in cell.metadata.get("tags", [])]
    for cell in given.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return given


def _shown(output: Any) -> str:
    """Return what a cell shows besides the text that it prints."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        svg = data["image/svg+xml"]
        return f'<div class="figure">{svg[svg.index("<svg") :]}</div>'.replace("\n\n", "\n")
    if "text/html" in data:
        return f'<div class="output">{data["text/html"]}</div>'.replace("\n\n", "\n")
    if "text/plain" in data:
        return _fenced(data["text/plain"], "text", kind="output")
    return ""


def _fenced(text: str, language: str, *, kind: str = "") -> str:
    mark = f"{{ .{language} .{kind} }}" if kind else language
    return f"```{mark}\n{text}\n```" if text else ""


def run_all() -> None:
    """Execute all tutorials, two at a time."""
    found = sources()
    with ThreadPoolExecutor(2) as pool:
        for path, target in zip(found, pool.map(execute, found), strict=True):
            print(f"{path.relative_to(ROOT)} -> {target.relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    run_all()
