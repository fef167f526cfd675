"""What a ledger is charged is what was recorded: release by release, and all of them together."""

from fractions import Fraction

import numpy as np
import pytest

from primo.errors import BudgetError, LedgerError
from primo.ledger import create_ledger
from primo.planning.settings import Settings
from primo.privacy.accounting import epsilon_spent, fits
from primo.privacy.bounds import Bounds
from primo.privacy.budget import Budget
from primo.rows.sources.base import Block
from primo.wall.noise import RandomBits
from primo.workflow.fit import Account, prepare, prepare_extension, release_rows

LIMIT = Budget(epsilon=20, delta=1e-5)


@pytest.fixture(autouse=True)
def _vouched(monkeypatch):
    """What is extended here is no bundle; that a ledger insists on one is tested elsewhere."""
    monkeypatch.setattr("primo.workflow.fit.check_known", lambda *_: None)


def account_in(folder, limit=LIMIT, *, by_values=True):
    ledger = create_ledger(folder / "ledger", limit=limit, by_values=by_values)
    return Account(ledger=ledger, purpose="audit")


def only(account):
    (spent,) = account.ledger.spent()
    return spent


def test_the_charge_is_for_the_calls_that_are_recorded_and_of_the_mu_that_is_planned(
    replay, ways, way, tmp_path
):
    """That the worst neighbours are this mu apart, a search finds in test_neighbours.py."""
    account = account_in(tmp_path)
    calls = replay.record(way.fit(*way.rows(), account=account))
    spent = only(account)
    assert spent.releases == 1
    assert replay.schedule(calls) == replay.schedule(replay.record(way.fit(*way.rows()), dry=True))
    if way.mechanism == "sampled":
        # With the sample known it is mu; the charge may count on its being secret.
        assert spent.mu is None
        assert spent.epsilon == pytest.approx(
            epsilon_spent([way.plan.cost], LIMIT.delta), rel=1e-12
        )
        assert way.plan.cost.epsilon == way.plan.epsilon == ways.EPSILON
        return
    assert spent.mu == way.plan.mu


def test_releases_add_up(replay, ways, tmp_path):
    """Two fits of the same rows and an extension: mu² is the sum of three squared distances."""
    account = account_in(tmp_path)
    way = ways.Way("both", intercept=False)
    for count in (1, 2):
        way.fit(*way.rows(), bits=RandomBits.fresh(), account=account)()
        assert only(account).releases == count
    neighbours = ways.Neighbours(way)
    one = neighbours.distance(replay, ways.worst(replay, way))
    assert 0.99 * only(account).mu ** 2 < 2 * one <= Fraction(only(account).mu) ** 2

    way = ways.Way("both", "extension", intercept=False)
    way.fit(*way.rows(), account=account)()
    neighbours = ways.Neighbours(way)
    extension = neighbours.distance(replay, ways.worst(replay, way))
    spent = only(account)
    assert spent.releases == 3
    assert 0.99 * spent.mu**2 < 2 * one + extension <= Fraction(spent.mu) ** 2


def test_an_id_that_was_charged_draws_no_second_release(ways, tmp_path):
    account, way = account_in(tmp_path), ways.Way("both")
    way.fit(*way.rows(), account=account, release_id="r")()
    for bits in (RandomBits.fresh(), RandomBits.seeded(5)):
        with pytest.raises(LedgerError, match="already"):
            way.fit(*way.rows(), account=account, release_id="r", bits=bits)()
    assert only(account).releases == 1


def test_an_extension_states_the_sum_too(ways):
    """The release says itself what it costs together with the one it extends."""
    way = ways.Way("both", "extension")
    earlier = way.prepared().earlier.plan
    together = Fraction(way.plan.mu) ** 2 + Fraction(earlier.mu) ** 2
    assert float(together) == pytest.approx(way.plan.total_mu**2, rel=1e-12)


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_somebody_with_two_rows_pays_for_both(replay, people, protection, tmp_path):
    """A person's haplotypes are replaced together, and the people are charged twice mu."""
    pair, reached = people.worst_pair(replay, protection, True)
    account = account_in(tmp_path, by_values=False)
    source = people.vcf_haplotypes(tmp_path, people.cohort().replaced(pair[0]))
    ready = people.prepared(source, protection, True)
    people.fit(source, ready, account=account)()
    spent = only(account)
    assert spent.mu == 2 * ready.plan.mu
    assert 0.9 * Fraction(spent.mu) ** 2 < reached <= Fraction(spent.mu) ** 2
    assert spent.rows == 2 * people.PEOPLE


def test_the_same_people_in_another_file_pay_on(people, tmp_path):
    account = account_in(tmp_path, by_values=False)
    for form in (people.csv, people.npy, people.zarr):
        source = form(tmp_path, people.cohort())
        ready = people.prepared(source, "both")
        people.fit(source, ready, account=account)()
    assert only(account).releases == 3
    assert only(account).mu == pytest.approx(3**0.5 * ready.plan.mu, rel=1e-12)


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_a_plan_for_the_whole_limit_is_paid_to_the_last_bit(ways, protection, tmp_path):
    """Also says that the lattice margin was taken off before the noise was chosen."""
    way = ways.Way(protection)
    account = account_in(tmp_path, Budget(epsilon=ways.EPSILON, delta=ways.DELTA))
    way.fit(*way.rows(), account=account)()
    assert fits([way.plan.cost], account.ledger.limit)
    with pytest.raises(BudgetError):
        way.fit(*way.rows(), account=account)()
    assert only(account).releases == 1


class Guarded:
    """People by name whose rows nobody may read."""

    n, feature_names, outcome_names = 3, ("x0", "x1"), ("z0",)
    id_names = ("IID",)

    def ids(self):
        return np.array(["ada", "bo", "cy"])

    def blocks(self, rows):
        raise AssertionError("a row was read before it was paid for")
        yield Block(features=np.zeros((0, 2)), outcomes=np.zeros((0, 1)))


def test_nothing_is_read_before_it_is_paid_for(tmp_path):
    account = account_in(tmp_path, Budget(epsilon=0.1, delta=1e-9), by_values=False)
    settings = Settings(epsilon=2.0, delta=1e-6, feature_bounds=1.0, outcome_bounds=1.0)
    with pytest.raises(BudgetError):
        release_rows(
            Guarded(), prepare(Guarded(), settings), bits=RandomBits.fresh(), account=account
        )
    assert not account.ledger.spent()


def test_a_fit_that_fails_after_the_charge_has_paid(ways, tmp_path):
    account = account_in(tmp_path)
    way = ways.Way("both")
    x, y = way.rows()
    with pytest.raises(ValueError, match="NaN"):
        way.fit(np.where(x == x[0], np.nan, x), y, account=account)()
    assert only(account).releases == 1


def test_an_extension_of_other_people_is_refused_before_it_is_paid(ways, tmp_path):
    way = ways.Way("both", "extension")
    x, y = way.rows()
    with pytest.raises(ValueError, match="rows"):
        prepare_extension(
            way.prepared().earlier,
            ways.table(x[1:], y[1:]),
            protection="both",
            epsilon=1.0,
            delta=1e-6,
            outcome_bounds=Bounds(norm=1.0),
        )
