"""What a ledger does, the same in a file and in PostgreSQL."""

import csv
import json
import math

import pytest

from primo.errors import BudgetError, InputError, LedgerError
from primo.ledger import appender, create_ledger, open_ledger, verify_export
from primo.privacy.accounting import Cost, Left, epsilon_spent, fits
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of

LIMIT = Budget(epsilon=5, delta=1e-6)
WHOLE = mu_of(LIMIT)

FIRST = [f"a{i}" for i in range(50)]
SECOND = [f"b{i}" for i in range(50)]


def tenth(n=10):
    """Return a cost that fits n times and not once more."""
    return Cost(mu=WHOLE / math.sqrt(n) * (1 - 1e-9), margin=1e-12)


def test_a_charge_is_in_the_books(ledger, people, place):
    charge = ledger.charge(
        people(FIRST), tenth(), release_id="r1", purpose="height", user="ada", dataset="cohort"
    )
    assert (charge.release_id, charge.dataset, charge.user) == ("r1", "cohort", "ada")
    assert charge.cost == tenth()
    assert charge.digest is None
    assert open_ledger(place).find("r1") == charge
    assert ledger.find("r2") is None
    assert [entry.kind for entry in ledger.history()] == ["created", "dataset", "charge"]
    assert ledger.history()[-1].hash == ledger.head == charge.hash
    (spent,) = ledger.spent()
    assert (spent.dataset, spent.rows, spent.releases, spent.limit) == ("cohort", 50, 1, LIMIT)
    assert spent.mu == tenth().mu
    assert spent.epsilon == epsilon_spent([tenth()], LIMIT.delta)
    assert spent.left.mu == pytest.approx(math.sqrt(0.9) * WHOLE, rel=1e-6)


def test_what_does_not_fit_is_refused_with_numbers_and_leaves_no_trace(ledger, people, place):
    for i in range(10):
        ledger.charge(people(FIRST), tenth(), release_id=f"r{i}", purpose="p", dataset="cohort")
    head = ledger.head
    with pytest.raises(BudgetError) as caught:
        ledger.charge(people(FIRST), tenth(), release_id="r10", purpose="p")
    message = str(caught.value)
    for part in (
        "needs mu=0.3227",
        "epsilon=1.",
        "epsilon=5",
        "'cohort'",
        "10 releases",
        "smaller",
    ):
        assert part in message
    assert "raise the limit" in message
    assert "secret" not in message
    assert ledger.head == head
    assert ledger.find("r10") is None
    ledger.charge(people(SECOND), tenth(), release_id="r10", purpose="p")
    assert len(ledger.spent()) == 2


def test_the_first_charge_can_be_too_large(ledger, people):
    with pytest.raises(BudgetError, match="new to it"):
        ledger.charge(people(FIRST), Cost(mu=2 * WHOLE), release_id="r", purpose="p")
    assert not ledger.spent()
    assert len(ledger.history()) == 1


def test_a_release_is_paid_for_once(ledger, people):
    first = ledger.charge(people(FIRST), tenth(), release_id="r", purpose="p")
    again = ledger.charge(people(FIRST[::-1]), tenth(), release_id="r", purpose="p")
    assert again == first
    assert len(ledger.history()) == 3
    with pytest.raises(LedgerError, match=r"not mu=0\.5"):
        ledger.charge(people(FIRST), Cost(mu=0.5), release_id="r", purpose="p")
    for others in (SECOND, FIRST[:-1]):
        with pytest.raises(LedgerError, match="other people"):
            ledger.charge(people(others), tenth(), release_id="r", purpose="p")
    assert len(ledger.history()) == 3


def test_a_release_is_published_once(ledger, people):
    ledger.charge(people(FIRST), tenth(), release_id="r", purpose="p")
    done = ledger.finish("r", "ab12")
    assert done.digest == "ab12"
    assert ledger.finish("r", "ab12") == done == ledger.find("r")
    assert ledger.charge(people(FIRST), tenth(), release_id="r", purpose="p") == done
    with pytest.raises(LedgerError, match="other numbers"):
        ledger.finish("r", "cd34")
    with pytest.raises(LedgerError, match="never charged"):
        ledger.finish("unknown", "cd34")
    assert len(ledger.history()) == 4


def test_whoever_is_in_two_data_sets_has_paid_for_both(ledger, people):
    """A, then A and B together, then B alone: B's people have been in two releases."""
    half = tenth(2)
    ledger.charge(people(FIRST), half, release_id="a", purpose="p", dataset="A")
    ledger.charge(people(FIRST + SECOND), half, release_id="ab", purpose="p", dataset="AB")
    with pytest.raises(BudgetError):
        ledger.charge(people(FIRST[:1]), half, release_id="x", purpose="p")
    ledger.charge(people(SECOND), half, release_id="b", purpose="p", dataset="B")
    with pytest.raises(BudgetError):
        ledger.charge(people(SECOND), half, release_id="b2", purpose="p")
    spent = {s.dataset: s for s in ledger.spent()}
    assert {name: s.releases for name, s in spent.items()} == {"A": 2, "AB": 3, "B": 2}
    assert spent["AB"].overlaps == ("A", "B")
    assert spent["A"].overlaps == ("AB",)
    # Nobody in AB was in all three releases, but the ledger cannot know that: it errs upwards.
    assert spent["AB"].epsilon > LIMIT.epsilon
    assert spent["AB"].left == Left(mu=0.0, epsilon=0.0)


def test_labels_are_unique_and_stay(ledger, people):
    small = Cost(mu=0.01)
    names = [
        ledger.charge(people(ids), small, release_id=str(i), purpose="p", dataset=label).dataset
        for i, (ids, label) in enumerate(
            [(FIRST, "c"), (SECOND, "c"), (FIRST, "other"), (["z"], None)]
        )
    ]
    assert names == ["c", "c (2)", "c", "data set 3"]


def test_notes_count_and_are_never_refused(ledger, people):
    ledger.charge(people(FIRST), tenth(), release_id="r", purpose="p", dataset="A")
    ledger.charge(people(SECOND), tenth(), release_id="s", purpose="p", dataset="B")
    noted = ledger.note(Cost(epsilon=2, delta=1e-7), purpose="a paper", dataset="A", user="bo")
    assert noted.elsewhere
    a, b = ledger.spent()
    assert a.mu is None
    assert a.epsilon > b.epsilon
    assert fits([tenth(), noted.cost, Cost(mu=a.left.mu)], LIMIT)
    everyone = ledger.note(Cost(mu=3), purpose="before the ledger", release_id="old")
    assert everyone.dataset is None
    assert ledger.note(Cost(mu=3), purpose="before the ledger", release_id="old") == everyone
    with pytest.raises(BudgetError):
        ledger.charge(people(["new"]), tenth(), release_id="t", purpose="p")
    ledger.note(Cost(mu=0.1), purpose="by sketch", dataset=people(["new"]), release_id="n")
    assert [s.releases for s in ledger.spent()] == [3, 2, 2]
    with pytest.raises(LedgerError, match="already"):
        ledger.note(Cost(mu=2), purpose="p", release_id="old")
    with pytest.raises(InputError, match="\"C\" is not in the ledger; known: 'A', 'B'"):
        ledger.note(Cost(mu=2), purpose="p", dataset="C")


def test_limits_of_the_ledger_and_of_a_data_set(ledger, people):
    ledger.charge(people(FIRST), tenth(1), release_id="r", purpose="p", dataset="A")
    ledger.charge(people(SECOND), tenth(1), release_id="s", purpose="p", dataset="B")
    higher = Budget(epsilon=8, delta=1e-6)
    with pytest.raises(BudgetError):
        ledger.charge(people(FIRST), tenth(), release_id="r2", purpose="p")
    ledger.set_limit(higher, dataset="A", purpose="board of May")
    ledger.set_limit(higher, dataset="A", purpose="twice is once")
    ledger.charge(people(FIRST), tenth(), release_id="r2", purpose="p")
    with pytest.raises(BudgetError):
        ledger.charge(people(SECOND), tenth(), release_id="s2", purpose="p")
    # People of A and B together obey the limit of B.
    with pytest.raises(BudgetError, match="'B'"):
        ledger.charge(people(FIRST[:5] + SECOND[:5]), tenth(), release_id="u", purpose="p")
    ledger.set_limit(higher, purpose="board of June")
    assert ledger.limit == higher
    ledger.charge(people(SECOND), tenth(), release_id="s2", purpose="p")
    changes = [entry for entry in ledger.history() if entry.kind == "limit"]
    assert [(c.dataset, c.purpose) for c in changes] == [
        ("A", "board of May"),
        (None, "board of June"),
    ]
    assert changes[0].limit == higher


def test_clocks_may_jump_backwards(ledger, people, monkeypatch, place):
    times = iter(f"{year}-01-01T00:00:00Z" for year in range(2030, 1990, -1))
    monkeypatch.setattr(appender, "now", lambda: next(times))
    for i in range(3):
        ledger.charge(people(FIRST), tenth(), release_id=f"r{i}", purpose="p")
    history = open_ledger(place).history()
    assert [entry.number for entry in history] == list(range(1, 6))
    assert history[-1].time < history[-2].time
    assert [e.release_id for e in history[2:]] == ["r0", "r1", "r2"]


def test_reading_needs_no_key_and_charging_does(ledger, people, place, monkeypatch, tmp_path):
    sketch = people(FIRST)
    ledger.charge(sketch, tenth(), release_id="r", purpose="p")
    monkeypatch.setenv("PRIMO_LEDGER_KEY_FILE", str(tmp_path / "elsewhere"))
    blind = open_ledger(place)
    assert blind.spent() == ledger.spent()
    assert blind.history() == ledger.history()
    with pytest.raises(LedgerError, match=r"key .* was not found.*PRIMO_LEDGER_KEY_FILE"):
        blind.charge(sketch, tenth(), release_id="s", purpose="p")
    with pytest.raises(LedgerError, match="no key at"):
        open_ledger(place, key_file=tmp_path / "nowhere")
    (tmp_path / "nonsense").touch(mode=0o600)
    (tmp_path / "nonsense").write_text("hello")
    with pytest.raises(LedgerError, match="not a key that primo wrote"):
        open_ledger(place, key_file=tmp_path / "nonsense")
    other = create_ledger(tmp_path / "other", limit=LIMIT, key_file=tmp_path / "other.key")
    with pytest.raises(LedgerError, match="not the key of"):
        open_ledger(place, key_file=tmp_path / "other.key")
    with pytest.raises(InputError, match="another key"):
        other.charge(sketch, tenth(), release_id="s", purpose="p")


def test_read_only(ledger, people, place):
    reader = open_ledger(place, readonly=True)
    with pytest.raises(LedgerError, match="read-only"):
        reader.charge(people(FIRST), tenth(), release_id="r", purpose="p")
    assert reader.verify() == ledger.head


def test_a_noted_head_shows_that_the_end_is_there(ledger, people, place):
    noted = ledger.head
    ledger.charge(people(FIRST), tenth(), release_id="r", purpose="p")
    assert open_ledger(place, expected_head=noted).head != noted
    with pytest.raises(LedgerError, match="cut off"):
        open_ledger(place, expected_head="f" * 64)


def test_a_ledger_is_never_overwritten(ledger, place):
    with pytest.raises(InputError, match="already"):
        create_ledger(place, limit=LIMIT)
    assert ledger.verify()


def test_export_for_auditors(ledger, people, tmp_path):
    ledger.charge(people(FIRST), tenth(), release_id="r", purpose='"hei\nght", Grüße', dataset="A")
    ledger.note(Cost(epsilon=1, delta=1e-7), purpose="elsewhere")
    ledger.set_limit(Budget(epsilon=6, delta=1e-6), purpose="more")
    lines = ledger.export(tmp_path / "history.jsonl")
    assert verify_export(lines) == ledger.head
    stored = [json.loads(line)["entry"] for line in lines.read_text().splitlines()]
    assert [entry["kind"] for entry in stored] == ["created", "dataset", "charge", "note", "limit"]
    with open(ledger.export(tmp_path / "history.csv"), newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert float(table[2]["mu"]) == tenth().mu
    assert table[2]["purpose"] == '"hei\nght", Grüße'
    assert (table[3]["epsilon"], table[3]["mu"], table[4]["limit_epsilon"]) == ("1.0", "", "6.0")
    lines.write_text(lines.read_text().replace("elsewhere", "elsewhen"))
    with pytest.raises(LedgerError, match="entry 4"):
        verify_export(lines)
    lines.write_text("{}\n")
    with pytest.raises(InputError, match="no exported history"):
        verify_export(lines)
    with pytest.raises(InputError, match=r"\.jsonl"):
        ledger.export(tmp_path / "history.xlsx")
    with pytest.raises(InputError, match="does not exist"):
        ledger.export(tmp_path / "missing" / "history.csv")


@pytest.mark.parametrize("field", ["release_id", "purpose"])
@pytest.mark.parametrize("value", ["", " ", None, 3, "x" * 10_001])
def test_texts_are_asked_for(tmp_path, field, value):
    ledger = create_ledger(tmp_path / "l", limit=LIMIT)
    given = {"release_id": "r", "purpose": "p"} | {field: value}
    with pytest.raises(InputError, match=field):
        ledger.charge(None, Cost(mu=0.1), **given)


def test_what_is_printed_holds_no_secret(ledger, people):
    assert repr(ledger.key) == "<Key (secret)>"
    assert repr(people(FIRST)) == "<Sketch n=50 by ids (private)>"
    assert "secret" not in repr(ledger)
    assert "secret" not in ledger.where
