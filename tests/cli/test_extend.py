"""`primo extend` obeys its user and its ledger, not the bundle that it is given."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import primo as library
from primo.ledger import open_ledger
from primo.released.bundle import read_bundle, write_bundle
from primo.workflow.fit import Account

LINE = "extend --bfile cohort --pheno later.tsv --covar ages.tsv --epsilon 1 --delta 1e-8"
BOUNDS = "--bounds bounds.toml"


@pytest.fixture
def books(folder, primo):
    primo("ledger init books.ledger --epsilon 20 --delta 1e-6")
    return "--ledger books.ledger"


def as_features(place):
    """Edit a bundle under `both` so that it says `features`, all parts and hashes included."""
    release = read_bundle(place).release
    plan = json.loads((place / "plan.json").read_text())
    moments = place / "moments.npz"
    with np.load(moments) as file:
        arrays = dict(file)
    stored = json.loads(str(arrays["manifest"]))
    stored["plan"]["protection"] = plan["protection"] = "features"
    stored["noisy"] = ["covariance", "association"]
    arrays["manifest"] = np.array(json.dumps(stored))
    np.savez(moments, **arrays)
    forged = library.load_release(moments)
    manifest = json.loads((place / "manifest.json").read_text())
    write_bundle(forged, "forged", release_id=manifest["release_id"])
    assert read_bundle("forged").release.plan.protection == "features"
    assert release.plan.protection == "both"
    return Path("forged")


def test_later_outcomes_are_made_in_one_round(release, primo):
    line = f"{LINE} {BOUNDS} --release {release} --protect both --dry-run"
    said = "--rounds 3 is not possible here: later outcomes are made in one round; leave it out"
    assert said in primo(f"{line} --rounds 3", code=2)[1]
    Path("run.toml").write_text("rounds = 3\n")
    assert said in primo(f"{line} --config run.toml", code=2)[1]
    Path("run.toml").write_text("rounds = 1.5\n")
    assert "run.toml: rounds = 1.5 must be" in primo(f"{line} --config run.toml", code=2)[1]
    plain = primo(line)[0]
    Path("run.toml").write_text('rounds = "auto"\n')
    assert primo(f"{line} --config run.toml")[0] == primo(f"{line} --rounds 1")[0] == plain
    assert "--rounds" not in primo("extend --help")[0]


def test_the_protection_has_to_be_stated(release, primo):
    _, err = primo(f"{LINE} {BOUNDS} --release {release} --out second", code=2)
    assert "--protect" in err
    assert not Path("second").exists()


def test_and_to_be_that_of_the_earlier_release(release, primo):
    for other in ("features", "outcomes"):
        line = f"{LINE} --release {release} --protect {other} --out second"
        _, err = primo(f"{line} {BOUNDS}", code=2)
        assert f"--protect {other} was asked for" in err
        primo(f"{line} --dry-run", code=2)


def test_an_edited_bundle_does_not_decide_what_is_public(release, primo):
    """The attack: bounds would be read off private outcomes, and exact private sums come out."""
    forged = as_features(release)
    _, err = primo(f"{LINE} --release {forged} --protect both --out second", code=2)
    assert "swapped or edited" in err
    assert not Path("second").exists()
    earlier = read_bundle(forged).release
    with pytest.raises(library.PrivacyError, match="swapped or edited"):
        library.extend(
            earlier,
            np.zeros((5000, len(earlier.feature_names))),
            np.zeros((5000, 1)),
            protection="both",
            epsilon=1,
            delta=1e-8,
        )


def test_a_bundle_that_the_ledger_does_not_know(release, primo, books):
    line = f"{LINE} {BOUNDS} --release {release} --protect both {books} --out second"
    _, err = primo(line, code=2)
    assert "not a release that books.ledger knows" in err
    assert "primo ledger note --release" in err
    primo(f"ledger note books.ledger --release {release} --purpose before")
    assert open_ledger("books.ledger").find(read_bundle(release).manifest["release_id"]).elsewhere
    primo(line)


def test_a_bundle_that_the_ledger_knows_otherwise(folder, primo, books, fit_line):
    primo(f"{fit_line} {books} --out release")
    line = f"{LINE} {BOUNDS} --protect both {books}"
    primo(f"{line} --release release --dry-run")
    place = Path("release")
    manifest = json.loads((place / "manifest.json").read_text())
    earlier = json.dumps(manifest | {"created": "2020-01-01"}, indent=2)
    (place / "manifest.json").write_text(earlier)
    assert read_bundle(place).digest == hashlib.sha256(earlier.encode()).hexdigest()
    _, err = primo(f"{line} --release release --out second", code=2)
    assert "its digest differs" in err


def test_a_charge_that_was_never_finished_vouches_for_nothing(release, primo, books):
    from primo.privacy.accounting import Cost

    name = read_bundle(release).manifest["release_id"]
    open_ledger("books.ledger").note(Cost(mu=0.1), purpose="p", release_id=name)
    line = f"{LINE} {BOUNDS} --release {release} --protect both {books} --out second"
    primo(line, code=2)


def test_bundles_and_ledgers_in_python(release, primo, books):
    bundle = read_bundle(release)
    account = Account(ledger=open_ledger("books.ledger"), purpose="p")
    rows = np.zeros((5000, len(bundle.release.feature_names)))
    keep = {"protection": "both", "epsilon": 1, "delta": 1e-8, "outcome_bounds": (-1, 1)}
    with pytest.raises(library.InputError, match="not a release that"):
        library.extend(bundle, rows, rows[:, :1], account=account, **keep)
    with pytest.raises(library.InputError, match="from its bundle"):
        library.extend(bundle.release, rows, rows[:, :1], account=account, **keep)
    with pytest.raises(library.InputError, match="not the ledger itself"):
        library.extend(bundle, rows, rows[:, :1], account=account.ledger, **keep)
    assert len(account.ledger.history()) == 1
    assert library.extend(bundle, rows, rows[:, :1], **keep).plan.earlier_mu > 0


def test_what_a_note_needs(folder, primo, books):
    for line in ("", "--epsilon 1", "--delta 1e-6", "--mu 1 --release x", "--mu 1 --epsilon 1"):
        primo(f"ledger note books.ledger --purpose p {line}", code=2)
