"""A file that states another guarantee than its noise gives is refused, for every kind of release."""

import dataclasses
import functools
import io
import json
import math

import numpy as np
import pytest

import primo
from factories import planned
from primo.errors import PrivacyError
from primo.planning.guarantee import check_plan
from primo.planning.plan import CovarianceOrigin
from primo.privacy.bounds import Bounds
from primo.released.release_file import read_release, write_release
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall.noise import RandomBits
from primo.workflow.fit import prepare_extension, release_rows
from primo.workflow.pipeline import make_release

N, D, L = 300, 3, 2
RANGE = Bounds(lower=-1.0, upper=1.0)

FIRST = {
    "both": {},
    "features": {"protection": "features"},
    "outcomes": {"protection": "outcomes"},
    "split": {"split": 0.25},
    "split 2": {"split": 2.0},
    "diagonal": {"outcome_moments": "diagonal", "fit_intercept": False, "missing": "centre"},
    "large": {"epsilon": 100.0, "delta": 0.3},
    "projected features": {"protection": "features", "association": "projection"},
    "projected outcomes": {"protection": "outcomes", "association": "projection"},
    "sampled": {"covariance_rows": 100},
    "sampled all": {"covariance_rows": N},
    "panel": {"public_covariance": True},
    "panel features": {"public_covariance": True, "protection": "features"},
    "wide": {"d": 400, "protection": "outcomes"},
    "haplotypes": {"rows_per_person": 2},
    "paper": {"calibration": "paper"},
    "paper features": {"calibration": "paper", "protection": "features"},
    "paper outcomes": {"calibration": "paper", "protection": "outcomes"},
    "paper 3": {"calibration": "paper-alg3", "protection": "features"},
    "paper sampled": {"calibration": "paper", "covariance_rows": 100},
    "paper sampled all": {"calibration": "paper", "covariance_rows": N},
}
EXTENDED = [name for name in FIRST if not name.startswith("paper")]


def rows(plan, names):
    rng = np.random.default_rng(0)
    return ArraySource(
        features=rng.uniform(-1, 1, size=(plan.n, plan.d)),
        outcomes=rng.uniform(-1, 1, size=(plan.n, len(names))),
        feature_names=tuple(f"x{i}" for i in range(plan.d)),
        outcome_names=names,
    )


@functools.cache
def first(name):
    given = {"d": D, "epsilon": 10.0, "delta": 1e-6} | FIRST[name]
    plan = planned(n=N, l=L, feature_bounds=RANGE, outcome_bounds=RANGE, **given)
    panel = np.eye(plan.width) * N if plan.covariance_origin == "reference" else None
    return make_release(
        rows(plan, ("y0", "y1")), plan, bits=RandomBits.fresh(), covariance=panel, threads=1
    )


@functools.cache
def extended(name):
    """A release of later outcomes, and one of still later ones."""
    found = [first(name)]
    for step in range(2):
        earlier = found[-1]
        source = rows(earlier.plan, (f"later{step}",))
        prepared = prepare_extension(
            earlier,
            source,
            epsilon=2.0,
            delta=1e-7,
            outcome_bounds=RANGE,
            protection=earlier.plan.protection,
        )
        found.append(release_rows(source, prepared, bits=RandomBits.fresh()))
    return found[1:]


def everything():
    yield from ((name, first(name)) for name in FIRST)
    for name in EXTENDED:
        yield from ((f"{name} extended", release) for release in extended(name))


def stored(release):
    file = io.BytesIO()
    write_release(release, file)
    with np.load(io.BytesIO(file.getvalue())) as arrays:
        return dict(arrays)


def load(arrays, manifest=None):
    if manifest is not None:
        arrays = arrays | {"manifest": np.array(json.dumps(manifest))}
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    return read_release(file, "r.npz")


@pytest.mark.filterwarnings("ignore::primo.WeakGuaranteeWarning")
def test_every_kind_of_release_loads():
    for name, release in everything():
        loaded = load(stored(release))
        assert loaded.statement() == release.statement(), name
        assert loaded.plan.cost == release.plan.cost, name


def other_protections(plan):
    return [p for p in ("both", "features", "outcomes") if p != plan["protection"]]


def edits(plan):
    """Yield what a forger changes; every one makes the stated guarantee untrue."""
    epsilon, delta, mu, grid = plan["epsilon"], plan["budget"]["delta"], plan["mu"], plan["grid"]
    budget = plan["budget"]
    yield "epsilon", {"epsilon": 0.01}
    yield "epsilon, asked for too", {"epsilon": 0.01, "budget": budget | {"epsilon": 0.01}}
    yield "larger epsilon", {"epsilon": 2 * epsilon, "budget": budget | {"epsilon": 2 * epsilon}}
    yield "delta", {"budget": budget | {"delta": delta / 1000}}
    yield "mu", {"mu": mu / 2}
    yield "larger mu", {"mu": mu * 2}
    yield "margin", {"margin": 0.0}
    yield "missing", {"missing": "mean"}
    yield "rows per person", {"rows_per_person": 0}
    yield "rows", {"n": 10**12}
    yield "sampled", {"sampled": 10 * plan["n"]}
    for block in ("association", "outcome"):
        name = f"{block}_variance_bits"
        yield f"less noise: {block}", {"grid": grid | {name: grid[name] - 2}}
    name = "association_variance_bits"
    yield "more noise", {"grid": grid | {name: grid[name] + 2}}
    yield "radius", {"grid": grid | {"outcome_radius_squared": 2**44}}
    private = plan["protection"] in ("both", "features")
    if private and plan["covariance_origin"] in ("rows", "earlier"):
        name = "covariance_variance_bits"
        yield "no noise: covariance", {"grid": grid | {name: 0}}
        yield "less noise: covariance", {"grid": grid | {name: 60}}
    if plan["covariance_origin"] == "earlier":
        yield "cost of the earlier one", {"earlier_mu": 0.0}
    else:
        yield (
            "row space",
            {
                "covariance_origin": "rows"
                if plan["covariance_origin"] == "row space"
                else "row space"
            },
        )
    if not plan["earlier_mu"]:
        yield "an earlier one", {"earlier_mu": 0.5}
    for protection in other_protections(plan):
        yield f"protection {protection}", {"protection": protection}
    calibration = "exact" if plan["calibration"] != "exact" else "paper"
    if not (calibration == "exact" and epsilon == budget["epsilon"]):
        yield "calibration", {"calibration": calibration}


KINDS = [*FIRST, *(f"{name} extended" for name in EXTENDED)]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore::primo.WeakGuaranteeWarning")
def test_every_kind_of_edit_is_refused(name):
    release = extended(name.removesuffix(" extended"))[1] if "ext" in name else first(name)
    arrays = stored(release)
    manifest = json.loads(str(arrays["manifest"]))
    count = 0
    for edit, changes in edits(manifest["plan"]):
        forged = manifest | {"plan": manifest["plan"] | changes}
        with pytest.raises(primo.InputError, match="damaged"):
            print(edit, load(arrays, forged))
        count += 1
    assert count > 15


def test_the_edit_of_the_finding(tmp_path):
    """ε edited from 10 to 0.01 was printed as such."""
    path = primo.save_release(first("both"), tmp_path / "r.npz")
    arrays = stored(first("both"))
    manifest = json.loads(str(arrays["manifest"]))
    manifest["plan"]["epsilon"] = manifest["plan"]["budget"]["epsilon"] = 0.01
    np.savez(path, **arrays | {"manifest": np.array(json.dumps(manifest))})
    with pytest.raises(primo.InputError, match="epsilon and delta do not fit the noise"):
        primo.load_release(path)


def test_a_protection_that_only_the_plan_claims():
    """Also where every number of the plan would be the same: the file says which blocks have noise."""
    for name, other in (("features", "both"), ("split 2", "outcomes"), ("outcomes", "both")):
        arrays = stored(first(name))
        manifest = json.loads(str(arrays["manifest"]))
        manifest["plan"]["protection"] = other
        with pytest.raises(primo.InputError, match="not fit"):
            load(arrays, manifest)


def test_what_is_computed_is_a_lower_bound_on_what_may_be_stated():
    plan = first("both").plan
    check_plan(plan)
    for epsilon in (10 * (1 - 1e-5), 10 * (1 + 1e-3)):
        budget = dataclasses.replace(plan.budget, epsilon=epsilon)
        changed = dataclasses.replace(plan, epsilon=epsilon, budget=budget)
        with pytest.raises(PrivacyError, match="epsilon and delta"):
            check_plan(changed)


def test_a_factor_of_two_in_the_noise_is_seen():
    plan = first("both").plan
    for bits in (-1, 1):
        grid = dataclasses.replace(
            plan.grid, association_variance_bits=plan.grid.association_variance_bits + bits
        )
        with pytest.raises(PrivacyError, match="does not fit"):
            check_plan(dataclasses.replace(plan, grid=grid))


def test_a_private_covariance_without_noise_is_never_released():
    """Whatever a plan says, and wherever it comes from."""
    plan = dataclasses.replace(first("both").plan, covariance_origin=CovarianceOrigin.ROW_SPACE)
    with pytest.raises(PrivacyError, match="does not fit its protection"):
        check_plan(plan)
    with pytest.raises(PrivacyError, match="no noise for their covariance"):
        make_release(rows(plan, ("y0", "y1")), plan, bits=RandomBits.fresh(), threads=1)


def test_the_earlier_covariance_was_paid_for():
    (_, later) = extended("both")
    assert math.isclose(later.plan.earlier_mu, extended("both")[0].plan.total_mu)
    with pytest.raises(PrivacyError, match="earlier covariance"):
        check_plan(dataclasses.replace(later.plan, earlier_mu=later.plan.earlier_mu / 100))
