"""The how-tos of docs/panels.md run, block after block, as they stand."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from primo.cli import main
from primo.released.bundle import read_bundle

PAGE = (Path(__file__).parents[2] / "docs" / "panels.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(console|python|toml)\n(.*?)```", PAGE, re.S)


@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_every_block_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (toml,) = [text for kind, text in BLOCKS if kind == "toml"]
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, "panels.md", "exec"), {})
        elif kind == "console":
            for line in text.splitlines():
                run(line, monkeypatch)
                if line.startswith("cd"):
                    Path("outcomes.toml").write_text(toml)
    pruned, whole = (read_bundle(Path(name)) for name in ("pruned-release", "with-components"))
    assert 0 < len(pruned.variants) < len(whole.variants)
    names = whole.release.feature_names
    assert names[-2:] == ("PC1_AVG", "PC2_AVG")
    # The bounds that the panel gives fit the cohort.
    assert not [said for said in whole.release.doubts() if "PC" in said]


def run(line, monkeypatch):
    words = shlex.split(line)
    if words[0] == "cd":
        monkeypatch.chdir(words[1])
    elif words[0] == "primo":
        result = CliRunner().invoke(main, words[1:])
        assert result.exit_code == 0, (line, result.output)
    else:
        assert words[0] == "plink2", line
        subprocess.run(words, check=True, capture_output=True)
