"""What the README shows has to work."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from primo.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
EVIDENCE = (ROOT / "docs" / "evidence" / "index.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text()


def test_it_is_short():
    assert len(README.splitlines()) <= 120
    assert re.search(r"!\[[^]]+\]\(docs/figures/readme.svg\)", README)


def test_python_blocks_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for code in re.findall(r"```python\n(.*?)```", README, re.S):
        exec(compile(code, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert namespace["model"].coef_.shape == (50, 10)
    assert "Privacy statement" in printed
    # The fit is close to the truth, so the bounds that the example recommends are sensible ones.
    rng = np.random.default_rng(0)
    rng.integers(0, 3, size=(20_000, 10))
    truth = rng.normal(size=(10, 50)) * 0.3
    error = np.linalg.norm(namespace["model"].coef_.T - truth) / np.linalg.norm(truth)
    assert error < 0.35


def console_lines():
    blocks = re.findall(r"```console\n(.*?)```", README, re.S)
    return [line for block in blocks for line in block.splitlines() if line]


def test_every_command_runs(tmp_path, monkeypatch):
    """`make` and `pip` lines are what CI itself runs; all others are executed here, in order."""
    monkeypatch.chdir(tmp_path)
    ran = []
    for line in console_lines():
        words = shlex.split(line, comments=True)
        if words[0] == "cd":
            monkeypatch.chdir(words[1])
        elif words[0] == "primo":
            result = CliRunner().invoke(main, words[1:])
            assert result.exit_code == 0, (line, result.output)
            ran.append(words[1])
        else:
            assert words[0] in ("make", "pip", "python3"), line
    assert {"demo", "fit", "report", "score-file", "predict", "inspect", "ledger"} <= {*ran}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.M))))
def test_make_targets_exist(target):
    assert re.search(rf"^{target}:", MAKEFILE, re.M)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(link):
    assert (ROOT / link).exists()


def test_quoted_results_are_those_of_the_accuracy_page():
    page = {}
    for line in (ROOT / "docs" / "accuracy.md").read_text().splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        page[cells[0]] = cells
    quoted = re.findall(r"^\| ([^|]* d=\d+ l=\d+[^|]*) \| (.*) \|$", EVIDENCE, re.M)
    assert len(quoted) >= 5
    for name, numbers in quoted:
        shown = [cell.strip(" *") for cell in numbers.split("|")]
        assert shown == [page[name][i] for i in (1, 2, 3, 7)], name


def test_quoted_audits_are_those_of_the_audit_page():
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| (both|features|outcomes) \| ([\d.]+) \| ([\d.]+) \|$", EVIDENCE, re.M)
    assert len(quoted) == 5
    for line in quoted:
        assert f"| {' | '.join(line)} |" in page, line
