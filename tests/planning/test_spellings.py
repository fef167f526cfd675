"""Other spellings of the protection and of the centre."""

import dataclasses

import click
import numpy as np
import pytest

from primo.cli.option_types import PROTECTIONS
from primo.errors import BoundsError, InputError
from primo.planning.bounds_file import block_bounds, read_bounds_file
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.privacy.protection import Protection


@pytest.mark.parametrize(
    ("spelled", "meant"), [("full", "both"), ("feature", "features"), ("label", "outcomes")]
)
def test_protections(spelled, meant):
    assert Protection.parse(spelled) is Protection(meant)
    assert PROTECTIONS.convert(spelled, None, None) == meant
    assert PROTECTIONS.convert(meant, None, None) == meant


@pytest.mark.parametrize("value", ["labels", "FULL", "", None, 3, ["both"]])
def test_other_words_are_refused(value):
    with pytest.raises(InputError, match="choose one of 'both', 'features', 'outcomes'"):
        Protection.parse(value)
    if isinstance(value, str):
        with pytest.raises(click.BadParameter):
            PROTECTIONS.convert(value, None, None)


def test_a_plan_has_one_spelling():
    settings = Settings(
        epsilon=1.0,
        delta=1e-6,
        protection="label",
        feature_bounds=1.0,
        outcome_bounds=(-1, 1),
        missing="center",
    )
    plan = make_plan(settings, n=100, d=2, l=1)
    assert (plan.protection, plan.missing) == (Protection.OUTCOMES, "centre")


def test_bounds_have_a_center():
    bounds = Bounds(center=[1.0, 2.0], scale=2.0, norm=3.0)
    assert bounds.centre == bounds.center == [1.0, 2.0]
    moved = dataclasses.replace(bounds, centre=5.0)
    assert (moved.centre, moved.scale, moved.norm) == (5.0, 2.0, 3.0)
    assert "center" not in repr(bounds)
    with pytest.raises(BoundsError, match="give one of them"):
        Bounds(centre=1.0, center=1.0, norm=1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        bounds.norm = 1.0


def test_a_bounds_file_has_a_center(tmp_path):
    path = tmp_path / "bounds.toml"
    path.write_text(
        "[outcomes]\ncenter = 1\nscale = 2\nnorm = 3\n[outcomes.columns.b]\ncenter = 4\nscale = 5\n"
    )
    found = block_bounds(read_bounds_file(path)["outcomes"], ("a", "b"), block="outcomes")
    assert np.array_equal(found.centre, [1.0, 4.0])
    path.write_text("[outcomes]\ncenter = 1\ncentre = 1\nscale = 2\nnorm = 3\n")
    with pytest.raises(InputError, match="give one of them"):
        read_bounds_file(path)
