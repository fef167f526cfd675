"""All people of a ledger are named by the same columns: the steward's, or those of the first charge."""

import json

import numpy as np
import pytest

import primo.rows.person_tokens
from primo.errors import InputError
from primo.ledger import create_ledger, open_ledger
from primo.ledger.chain import to_line
from primo.ledger.naming import Naming
from primo.privacy.accounting import Cost
from primo.privacy.budget import Budget
from primo.rows.sources.arrays.memory import ArraySource

LIMIT = Budget(epsilon=5, delta=1e-6)


def rows(names=("IID",), count=4):
    """A source whose people are named by these columns, or by nothing."""
    labels = None if names is None else np.array([f"p{i}" for i in range(count)])
    return ArraySource(
        features=np.arange(2.0 * count).reshape(count, 2),
        outcomes=np.zeros((count, 1)),
        feature_names=("x0", "x1"),
        outcome_names=("y",),
        labels=labels,
        id_names=names,
    )


def charge(ledger, source, release_id, **how):
    people = primo.rows.person_tokens.sketch(source, ledger.key, **how)
    return ledger.charge(people, Cost(mu=0.1), release_id=release_id, purpose="p")


@pytest.mark.parametrize("other", [("hiv",), ("FID", "IID"), ("",), None])
def test_a_pinned_column_and_no_other(place, other):
    ledger = create_ledger(place, limit=LIMIT, person="IID")
    charge(ledger, rows(), "r1")
    head = ledger.head
    with pytest.raises(InputError, match="IID") as caught:
        charge(ledger, rows(other), "r2")
    assert "Nothing was charged" in str(caught.value)
    assert "set_index('IID')" in str(caught.value)
    people = primo.rows.person_tokens.sketch(rows(other), ledger.key)
    with pytest.raises(InputError, match="IID"):
        ledger.note(Cost(mu=0.1), purpose="p", dataset=people)
    assert open_ledger(place, expected_head=head).head == head
    assert open_ledger(place).naming == Naming(person=("IID",), pinned=True)


def test_without_a_pin_the_first_charge_decides(place):
    ledger = create_ledger(place, limit=LIMIT)
    assert ledger.naming == Naming()
    charge(ledger, rows(("eid",)), "r1")
    with pytest.raises(InputError, match=r"by 'eid' \(its first charge fixed that"):
        charge(ledger, rows(("IID",)), "r2")
    charge(open_ledger(place), rows(("eid",)), "r2")
    assert open_ledger(place).naming == Naming(person=("eid",))


def test_values_only_where_the_steward_said_so(place, tmp_path):
    ledger = create_ledger(place, limit=LIMIT, by_values=True)
    charge(ledger, rows(None), "r1")
    with pytest.raises(InputError, match="by the values of their rows"):
        charge(ledger, rows(), "r2")
    charge(ledger, rows(), "r2", by_values=True)
    assert len(ledger.spent()) == 1, "the same people, whether they have ids or not"
    with pytest.raises(InputError, match="not both"):
        create_ledger(tmp_path / "other", limit=LIMIT, person="IID", by_values=True)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("person", ["", " ", [], ["IID", ""], [3]])
def test_a_pin_is_a_name(tmp_path, person):
    with pytest.raises(InputError, match="must be the name of a column"):
        create_ledger(tmp_path / "l", limit=LIMIT, person=person)


def test_the_pin_is_part_of_the_chain(place):
    ledger = create_ledger(place, limit=LIMIT, person=["FID", "IID"])
    (first,) = ledger._store.rows()
    stored = json.loads(first.body)
    assert (stored["person"], stored["by_values"]) == (["FID", "IID"], False)
    assert first.body == to_line(stored)
    assert str(ledger.naming) == "A person is named by 'FID' and 'IID' (pinned by the steward)."
