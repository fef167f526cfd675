"""The record for registries says what the release says, and nothing less than the truth."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import primo
from primo.cli import main
from primo.released.registry import About, registry_entry, unanswered


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(800, 3))
    return X, X[:, :2] + rng.normal(size=(800, 2)) * 0.1


def model(**settings):
    return primo.PrimoRegressor(
        epsilon=2,
        delta=1e-6,
        feature_bounds=(-1, 1),
        outcome_bounds=(-2, 2),
        **{"rounds": 1, **settings},
    )


def bundle(release, folder):
    return primo.read_bundle(primo.write_bundle(release, folder))


def test_it_repeats_the_guarantee(fitted, tmp_path):
    found = bundle(model().fit(*fitted).release_, tmp_path / "r")
    entry = registry_entry(found, About(name="a study"))["deployment"]
    plan = found.release.plan
    assert entry["privacy_loss"]["privacy_parameters"] == {
        "epsilon": plan.epsilon,
        "delta": 1e-6,
        "mu": plan.mu,
    }
    assert entry["privacy_loss"]["privacy_unit"] == "One row"
    assert entry["deployment_model"]["model_name"] == "Central"
    assert entry["basic"]["name"] == "a study"
    assert len(entry["implementation"]["mechanisms"]) == 3
    assert found.digest in entry["additional_information"]["digest"]


def test_public_blocks_and_rows_of_a_person_are_stated(fitted, tmp_path):
    release = model(protection="outcomes", rows_per_person=2).fit(*fitted).release_
    entry = registry_entry(bundle(release, tmp_path / "r"))["deployment"]
    assert "all features" in entry["dp_variant"]["unprotected_quantities"]
    assert entry["privacy_loss"]["privacy_unit"] == "One person with up to 2 rows"
    stated = entry["privacy_loss"]["privacy_parameters"]["epsilon"]
    assert stated == release.plan.person_epsilon > release.plan.epsilon


def test_an_extension_states_the_total(fitted, tmp_path):
    X, Y = fitted
    first = model().fit(X, Y[:, :1]).release_
    second = primo.extend(
        first, X, Y[:, 1:], protection="both", epsilon=1, delta=1e-6, outcome_bounds=(-2, 2)
    )
    entry = registry_entry(bundle(second, tmp_path / "r"))["deployment"]
    stated = entry["privacy_loss"]["privacy_parameters"]["epsilon"]
    assert stated == second.plan.total_epsilon > 2
    assert repr(second.plan.total_epsilon) in entry["accounting"]["composition"]
    assert any("earlier release" in line for line in entry["implementation"]["mechanisms"])


def test_every_stage_and_round_is_among_the_mechanisms(fitted, tmp_path):
    X, Y = fitted
    found = primo.Bounds(lower=-2, upper=2, norm="auto")
    release = primo.PrimoRegressor(
        epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=found, rounds=3
    ).fit(np.tile(X, (5, 1)), np.tile(Y, (5, 1)))
    entry = registry_entry(bundle(release.release_, tmp_path / "r"))["deployment"]
    said = entry["implementation"]["mechanisms"]
    for number, part in enumerate(release.release_.rounds, 1):
        sigma = f"{part.association_sigma:.6g} in scaled units"
        assert any(f"association of round {number}" in line and sigma in line for line in said)
    searched = release.release_.plan.norm_search.sigma
    assert any(f"rows by length: standard deviation {searched:.6g} rows" in line for line in said)
    assert "3 rounds" in entry["accounting"]["composition"]
    assert "found from noisy counts" in str(entry["implementation"])


def test_the_command_writes_it_once(fitted, tmp_path):
    primo.write_bundle(model().fit(*fitted).release_, tmp_path / "r")
    line = ["registry-entry", str(tmp_path / "r"), "--curator", "us", "--out"]
    said = CliRunner().invoke(main, [*line, str(tmp_path / "entry.json")])
    assert said.exit_code == 0, said.output
    entry = json.loads((tmp_path / "entry.json").read_text())
    assert unanswered(entry) == ["name", "intended_use", "description"]
    assert "fill them in: name, intended_use, description" in said.output
    other = [*line, str(tmp_path / "entry.json"), "--name", "another"]
    again = CliRunner().invoke(main, other)
    assert isinstance(again.exception, primo.InputError | SystemExit)
    assert json.loads((tmp_path / "entry.json").read_text()) == entry
    forced = CliRunner().invoke(main, [*other, "--force", "--json"])
    assert json.loads(forced.stdout)["unanswered"] == ["intended_use", "description"]
    changed = json.loads((tmp_path / "entry.json").read_text())
    assert changed["deployment"]["basic"]["name"] == "another"


def test_a_seeded_release_is_marked(fitted, tmp_path):
    release = model(random_state=1).fit(*fitted).release_
    primo.write_bundle(release, tmp_path / "r")
    said = CliRunner().invoke(main, ["registry-entry", str(tmp_path / "r")])
    assert json.loads(said.stdout)["deployment"]["additional_information"]["publishable"] is False
    assert "not for publication" in said.stderr
