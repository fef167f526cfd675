"""The tuning of DP-SGD: its search, its data, and the files that it left."""

import tomllib

import numpy as np
import pytest
from pyarrow import parquet

from experiments.tuning import Hyperparameters, tuned
from experiments.tuning.hyperparameters import FOLDER, TUNED, VARIANTS
from primo.errors import InputError

pytest.importorskip("opacus", reason="DP-SGD needs Opacus (the experiments extra)")

from experiments.tuning.search import Effort, Score, best_of, evaluate, search
from experiments.tuning.simulated import genotypes, images

GRID = tomllib.loads((FOLDER / "grid.toml").read_text())


def test_the_nearest_tuned_cell_is_taken():
    cells = tomllib.loads(TUNED.read_text())["cells"]
    for cell in cells:
        found = tuned(cell["variant"], cell["d"], cell["l"])
        assert found == Hyperparameters.of(cell)
    assert tuned("joint", 30, 150) == tuned("joint", 25, 101)
    assert tuned("joint", 25, 100_000) == tuned("joint", 25, 1001)
    assert tuned("each", 800, 2) == tuned("each", 784, 1)
    with pytest.raises(InputError, match="'both'"):
        tuned("both", 25, 1)


def test_the_files_tell_one_story():
    """Every cell was tuned, over the published grid, and the best of the finals was taken."""
    scores = parquet.read_table(FOLDER / "scores.parquet").to_pylist()
    cells = tomllib.loads(TUNED.read_text())["cells"]
    wanted = {(v, c["d"], c["l"]) for c in GRID["cells"] for v in VARIANTS}
    assert {(c["variant"], c["d"], c["l"]) for c in cells} == wanted
    for cell in cells:
        rows = [s for s in scores if all(s[k] == cell[k] for k in ("variant", "d", "l"))]
        assert len(rows) == cell["tuning_runs"]
        for axis, values in GRID["values"].items():
            assert {row[axis] for row in rows} <= set(values)
        finals = {}
        for row in rows:
            if row["phase"] == "final":
                finals.setdefault(Hyperparameters.of(row), []).append(row["r_squared"])
        best = max(finals, key=lambda point: np.mean(finals[point]))
        assert best == Hyperparameters.of(cell)
        assert np.mean(finals[best]) == pytest.approx(cell["r_squared"], abs=1e-4)
        # Where some outcomes are fitted, least squares is that of all: near, not above.
        assert cell["r_squared"] < cell["least_squares_r_squared"] + 0.05


def test_the_search_finds_the_top_of_a_hill():
    values = GRID["values"]
    top = {axis: entries[len(entries) // 2] for axis, entries in values.items()}
    tried = []

    def run(point, phase, draw):
        steps = [
            values[axis].index(getattr(point, axis)) - values[axis].index(best)
            for axis, best in top.items()
        ]
        tried.append((point, draw))
        return Score(
            variant="joint",
            d=1,
            l=1,
            phase=phase,
            draw=draw,
            hyperparameters=point,
            r_squared=-float(np.sum(np.square(steps))),
            seconds=0.0,
        )

    effort = Effort(random=20, refine=80, draws=2, finalists=3, fresh=4)
    scores = list(search(values, effort, run, np.random.default_rng(0)))
    assert best_of(scores) == (Hyperparameters.of(top), 0.0)
    assert len(scores) == 100 * 2 + 3 * 4
    assert len(set(tried)) == len(tried)
    assert {s.draw for s in scores if s.phase == "final"} == {2, 3, 4, 5}


def test_images_are_like_images():
    draw = images(600, 784, 3)
    problem = draw(4, np.random.default_rng(0))
    features, outcomes = problem.rows
    spectrum = np.linalg.eigvalsh(features.T @ features)[::-1]
    assert 0.05 < spectrum[0] / spectrum.sum() < 0.3
    assert spectrum[:50].sum() / spectrum.sum() > 0.6
    assert np.linalg.norm(outcomes, axis=1).max() < problem.outcome_norm
    assert np.abs(outcomes).max() < problem.outcome_limit
    assert np.linalg.norm(features, axis=1).max() <= problem.feature_norm * (1 + 1e-12)


def test_genotypes_score_both_variants():
    pytest.importorskip("msprime")
    problem = genotypes(400, 8, 3)(3, np.random.default_rng(0))
    assert problem.rows[0].shape == (400, 8)
    point = Hyperparameters(
        learning_rate=2.0, clip_norm=0.1, steps=3, sampling_rate=1.0, momentum=0.0, averaging=0.0
    )
    for variant in VARIANTS:
        score, seconds = evaluate(problem, variant, point, epsilon=50.0, fitted=2, seed=0)
        assert -1 < score < 1
        assert seconds > 0
