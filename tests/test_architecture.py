"""The walls of the house, read off the import statements."""

import ast
from pathlib import Path

import pytest

import primo

ROOT = Path(primo.__file__).parent


def imports():
    """Map each module of primo to the modules of primo that it imports."""
    graph = {}
    for path in ROOT.rglob("*.py"):
        name = ".".join(("primo", *path.relative_to(ROOT).with_suffix("").parts))
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("primo"):
                found.add(node.module)
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                found.update(a.name for a in node.names if a.name.startswith("primo"))
        graph[name.removesuffix(".__init__")] = found
    return {name: {other for other in found if other in graph} for name, found in graph.items()}


GRAPH = imports()
PUBLIC_SIDE = [
    name
    for name in GRAPH
    if name.startswith("primo.estimate.") or name in ("primo.release", "primo.coefficients")
]


def test_the_graph_is_not_empty():
    assert len(GRAPH) > 15
    assert "primo.estimate.problem" in PUBLIC_SIDE


@pytest.mark.parametrize("module", PUBLIC_SIDE)
def test_the_public_side_cannot_reach_rows(module):
    reach, todo = set(), [module]
    while todo:
        for other in GRAPH[todo.pop()] - reach:
            reach.add(other)
            todo.append(other)
    private = {m for m in reach if m.startswith(("primo.sources", "primo.moments", "primo.noise"))}
    assert not private


def test_only_mechanisms_draw_noise():
    """The shell and the pipeline hand the bits over; nobody else draws from them."""
    drawing = [
        name
        for name, path in ((n, ROOT.joinpath(*n.split(".")[1:]).with_suffix(".py")) for n in GRAPH)
        if path.exists() and ("add_noise(" in path.read_text() or "discrete_gaussian(" in path.read_text())
    ]
    assert sorted(drawing) == ["primo.mechanisms.gauss", "primo.noise"]


def test_sources_know_nothing_of_privacy():
    for module, found in GRAPH.items():
        if module.startswith("primo.sources"):
            allowed = {"primo.errors"} | {m for m in GRAPH if m.startswith("primo.sources")}
            assert found <= allowed, module


def test_privacy_knows_nothing_of_rows():
    for module, found in GRAPH.items():
        if module.startswith("primo.privacy"):
            allowed = {"primo.errors"} | {m for m in GRAPH if m.startswith("primo.privacy")}
            assert found <= allowed, module


def test_what_is_visible_is_what_is_promised():
    visible = {
        name
        for name, value in vars(primo).items()
        if not name.startswith("_") and not isinstance(value, type(primo)) and name != "version"
    }
    assert visible | {"__version__"} == set(primo.__all__)
