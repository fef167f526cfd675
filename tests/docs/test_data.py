"""What docs/data.md says of categories is true, and its example runs."""

import re
from pathlib import Path

import numpy as np
import pytest

from primo.planning.bounds_file import block_bounds, read_bounds_file, stated_levels

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Categories and binary columns")[2].partition("\n## ")[0]


def test_the_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.S)
    namespace = {}
    exec(compile(code, "data.md", "exec"), namespace)
    assert namespace["model"].coef_.shape == (2,)


def test_the_bounds_file_is_read(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", SECTION, re.S)
    (tmp_path / "b.toml").write_text(text)
    spec = read_bounds_file(tmp_path / "b.toml")
    assert set(stated_levels(spec, "features")) == {"sex", "region"}
    assert set(stated_levels(spec, "outcomes")) == {"smokes"}
    names = ("sex=M", "region=south", "region=west", "age")
    assert block_bounds(spec["features"], names, block="features").norm == pytest.approx(3**0.5)


def test_the_r_squared_of_the_page():
    shares = np.array([0.2, 0.4])
    r2 = shares.var() / (shares.mean() * (1 - shares.mean()))
    assert f"about {r2:.2f}" in SECTION
