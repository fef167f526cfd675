"""The walls of the house, read off the import statements."""

import ast
import subprocess
import sys
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
    if name.startswith(
        (
            "primo.released.estimate.",
            "primo.released.uncertainty.",
            "primo.forecast.",
            "primo.released.bundle",
            "primo.report",
        )
    )
    or name
    in (
        "primo.released.release",
        "primo.released.coefficients",
        "primo.released.release_file",
        "primo.released.export.scoring",
        "primo._util.writers",
    )
]


def test_the_graph_is_not_empty():
    assert len(GRAPH) > 15
    assert "primo.released.estimate.problem" in PUBLIC_SIDE


@pytest.mark.parametrize("module", PUBLIC_SIDE)
def test_the_public_side_cannot_reach_rows(module):
    reach, todo = set(), [module]
    while todo:
        for other in GRAPH[todo.pop()] - reach:
            reach.add(other)
            todo.append(other)
    private = {
        m
        for m in reach
        if m.startswith(("primo.rows.sources", "primo.rows.moments", "primo.wall.noise"))
    }
    assert not private


def in_noise(module):
    return module == "primo.wall.noise" or module.startswith("primo.wall.noise.")


def test_only_mechanisms_draw_noise():
    """The shell and the pipeline hand the bits over; nobody else draws from them."""
    texts = {name: path.read_text() for name, path in MODULES.items()}
    assert {"primo.wall.noise", "primo.wall.noise.bits", "primo.wall.noise.sampler"} <= texts.keys()
    outside = {name: text for name, text in texts.items() if not in_noise(name)}
    drawing = [
        n for n, text in outside.items() if "add_noise" in text or "discrete_gaussian" in text
    ]
    assert drawing == ["primo.wall.mechanism"]
    assert not [n for n, text in outside.items() if ".stream(" in text or ".claim(" in text]


def test_noise_is_entered_by_the_front_door():
    for module, found in GRAPH.items():
        if not in_noise(module):
            assert not {m for m in found if in_noise(m)} - {"primo.wall.noise"}, module


def test_sources_know_nothing_of_privacy():
    for module, found in GRAPH.items():
        if module.startswith("primo.rows.sources"):
            allowed = {"primo.errors", "primo._util.jit", "primo._util.threads", "primo.variants"}
            allowed |= {m for m in GRAPH if m.startswith("primo.rows.sources")}
            assert found <= allowed, module


def test_privacy_knows_nothing_of_rows():
    for module, found in GRAPH.items():
        if module.startswith("primo.privacy"):
            allowed = {"primo.errors"} | {m for m in GRAPH if m.startswith("primo.privacy")}
            assert found <= allowed, module


def test_the_ledger_knows_privacy_and_nothing_else():
    for module, found in GRAPH.items():
        if module.startswith("primo.ledger"):
            allowed = {"primo.errors", "primo._util.atomic", "primo._util.ownership"}
            allowed |= {m for m in GRAPH if m.startswith(("primo.privacy", "primo.ledger"))}
            assert found <= allowed, module


def test_what_is_visible_is_what_is_promised():
    assert {*primo._HOMES, "__version__"} == set(primo.__all__) == set(dir(primo))
    for name, home in primo._HOMES.items():
        value = getattr(primo, name)
        assert getattr(value, "__module__", home).startswith("primo"), name
        assert name in sys.modules[home].__all__, name
    with pytest.raises(AttributeError, match="nothing"):
        _ = primo.nothing


def test_looking_at_the_program_loads_no_heavy_library():
    """Shells call the program at every press of the tab key."""
    script = (
        "import sys, primo.cli; sys.exit({'scipy', 'sklearn', 'pyarrow'} & {*sys.modules} != set())"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
