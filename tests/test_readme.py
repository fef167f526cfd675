"""What the README shows has to work."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.S))
def test_python_blocks_run(code, capsys):
    namespace = {}
    exec(compile(code, "README.md", "exec"), namespace)
    assert namespace["model"].coef_.shape == (50, 10)
    assert "Privacy statement" in capsys.readouterr().out


def test_the_example_of_the_readme_is_worth_showing():
    """Its fit is close to the truth, so the bounds it recommends are sensible ones."""
    code = re.findall(r"```python\n(.*?)```", README, re.S)[0]
    namespace = {}
    exec(compile(code, "README.md", "exec"), namespace)
    import numpy as np

    rng = np.random.default_rng(0)
    rng.integers(0, 3, size=(20_000, 10))
    truth = rng.normal(size=(10, 50)) * 0.3
    error = np.linalg.norm(namespace["model"].coef_.T - truth) / np.linalg.norm(truth)
    assert error < 0.35


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.M))))
def test_make_targets_exist(target):
    assert re.search(rf"^{target}:", MAKEFILE, re.M)
