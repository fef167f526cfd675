"""The walls of the house, read off the import statements."""

import ast
from pathlib import Path

import pytest

import primo

ROOT = Path(primo.__file__).parent


def modules():
    """Map each module of primo, packages included, to its file."""
    names = {p: ("primo", *p.relative_to(ROOT).with_suffix("").parts) for p in ROOT.rglob("*.py")}
    return {".".join(name).removesuffix(".__init__"): path for path, name in names.items()}


def imports():
    """Map each module of primo to the modules of primo that it imports."""
    graph = {}
    for name, path in MODULES.items():
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("primo"):
                found.add(node.module)
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                found.update(a.name for a in node.names if a.name.startswith("primo"))
        graph[name] = found
    return {name: {other for other in found if other in graph} for name, found in graph.items()}


MODULES = modules()
GRAPH = imports()
PUBLIC_SIDE = [
    name
    for name in GRAPH
    if name.startswith(("primo.estimate.", "primo.uncertainty.", "primo.planning."))
    or name in ("primo.release", "primo.fitted", "primo.archive")
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


def in_noise(module):
    return module == "primo.noise" or module.startswith("primo.noise.")


def test_only_mechanisms_draw_noise():
    """The shell and the pipeline hand the bits over; nobody else draws from them."""
    texts = {name: path.read_text() for name, path in MODULES.items()}
    assert {"primo.noise", "primo.noise.bits", "primo.noise.sampler"} <= texts.keys()
    outside = {name: text for name, text in texts.items() if not in_noise(name)}
    drawing = [
        n for n, text in outside.items() if "add_noise" in text or "discrete_gaussian" in text
    ]
    assert drawing == ["primo.mechanisms.gauss"]
    assert not [n for n, text in outside.items() if ".stream(" in text or ".claim(" in text]


def test_noise_is_entered_by_the_front_door():
    for module, found in GRAPH.items():
        if not in_noise(module):
            assert not {m for m in found if in_noise(m)} - {"primo.noise"}, module


def test_sources_know_nothing_of_privacy():
    for module, found in GRAPH.items():
        if module.startswith("primo.sources"):
            allowed = {"primo.errors", "primo.variants"}
            allowed |= {m for m in GRAPH if m.startswith("primo.sources")}
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
