"""The contracts between packages, read off the import statements."""

import ast
import os
import shutil
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


def test_the_contracts_are_kept():
    """Layers, the wall and no cycles: .importlinter, which `make lint` runs too."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo"]
    done = subprocess.run(command, cwd=ROOT.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_broken_wall_is_noticed(tmp_path):
    """The contracts can fail: a public module that imports rows breaks three of them."""
    shutil.copytree(ROOT, tmp_path / "primo", ignore=shutil.ignore_patterns("__pycache__"))
    module = tmp_path / "primo" / "released" / "statement.py"
    module.write_text(module.read_text() + "\nfrom primo.rows import moments\n")
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    contracts = ["--config", str(ROOT.parents[1] / ".importlinter")]
    done = subprocess.run(
        command + contracts,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "The public side imports neither rows nor wall BROKEN" in done.stdout


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
    assert sorted(drawing) == ["primo.wall.blocks", "primo.wall.mechanism", "primo.wall.stages"]
    assert not [n for n, text in outside.items() if ".stream(" in text or ".claim(" in text]


def test_noise_is_entered_by_the_front_door():
    for module, found in GRAPH.items():
        if not in_noise(module):
            assert not {m for m in found if in_noise(m)} - {"primo.wall.noise"}, module


def test_sources_know_nothing_of_privacy():
    for module, found in GRAPH.items():
        if module.startswith("primo.rows.sources"):
            allowed = ("primo.errors", "primo._util.", "primo.variants", "primo.levels")
            allowed += ("primo.rows.sources",)
            assert all(other.startswith(allowed) for other in found), module


def test_what_is_visible_is_what_is_promised():
    promised = {*primo._HOMES, *primo._MODULES, "__version__"}
    assert promised == set(primo.__all__) == set(dir(primo))
    for name in primo._MODULES:
        assert getattr(primo, name) is sys.modules[f"primo.{name}"]
    for name, home in primo._HOMES.items():
        value = getattr(primo, name)
        assert getattr(value, "__module__", home).startswith("primo"), name
        assert name in sys.modules[home].__all__, name
    with pytest.raises(AttributeError, match="nothing"):
        _ = primo.nothing


def test_other_systems_than_posix_are_refused_at_once():
    script = "import importlib.metadata, os; os.name = 'nt'; import primo"
    ran = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert "ImportError: primo needs a POSIX system" in ran.stderr


def test_looking_at_the_program_loads_no_heavy_library():
    """Shells call the program at every press of the tab key."""
    heavy = {"jinja2", "jsonschema", "pyarrow", "scipy", "sklearn"}
    script = f"import sys, primo.cli; sys.exit({heavy} & {{*sys.modules}} != set())"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
