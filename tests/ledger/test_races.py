"""Many processes at once, and processes that die at any moment."""

import math
import multiprocessing
import os
import random
import signal
import time

import pytest

from primo.errors import BudgetError
from primo.ledger import open_ledger
from primo.privacy.accounting import Cost
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of

WHOLE = mu_of(Budget(epsilon=5, delta=1e-6))
FORK = multiprocessing.get_context("fork")  # what is imported already need not be again


def one_racer(place, sketch, cost, number, barrier, results):
    ledger = open_ledger(place)
    barrier.wait()
    try:
        ledger.charge(sketch, cost, release_id=f"r{number}", purpose="race")
        results.put("charged")
    except BudgetError:
        results.put("refused")
    except BaseException as error:
        results.put(repr(error))


def test_32_processes_race_for_a_budget_that_fits_10(ledger, people, place):
    cost = Cost(mu=WHOLE / math.sqrt(10.5))
    barrier, results = FORK.Barrier(32), FORK.Queue()
    processes = [
        FORK.Process(target=one_racer, args=(place, people("abc"), cost, i, barrier, results))
        for i in range(32)
    ]
    for process in processes:
        process.start()
    outcomes = sorted(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    assert outcomes == ["charged"] * 10 + ["refused"] * 22
    (spent,) = ledger.spent()
    assert spent.releases == 10
    assert spent.epsilon <= 5


def test_racers_with_one_release_pay_once(ledger, people, place):
    def racer(barrier, results):
        own = open_ledger(place)
        barrier.wait()
        charge = own.charge(people("abc"), Cost(mu=WHOLE), release_id="same", purpose="race")
        results.put((charge.number, charge.hash))

    barrier, results = FORK.Barrier(8), FORK.Queue()
    processes = [FORK.Process(target=racer, args=(barrier, results)) for _ in range(8)]
    for process in processes:
        process.start()
    found = {results.get(timeout=60) for _ in processes}
    for process in processes:
        process.join()
    assert len(found) == 1
    assert ledger.spent()[0].releases == 1


def charge_and_tell(place, sketches, folder, start):
    """Charge for ever; after each charge, leave a file: the rows would be read now."""
    ledger = open_ledger(place)
    for i in range(start, start + 1000):
        ledger.charge(sketches[i % 2], Cost(mu=1e-6), release_id=f"r{i}", purpose="p")
        (folder / f"r{i}").touch()


@pytest.mark.parametrize("rounds", [6, pytest.param(60, marks=pytest.mark.statistical)])
def test_kill_at_random_moments_never_under_counts(ledger, people, place, tmp_path, rounds):
    folder = tmp_path / "read"
    folder.mkdir()
    sketches = [people("abc"), people("xyz")]
    seeds = random.Random(5)
    for round_ in range(rounds):
        process = FORK.Process(
            target=charge_and_tell, args=(place, sketches, folder, 1000 * round_)
        )
        process.start()
        time.sleep(seeds.uniform(0.05, 0.3))
        while round_ == rounds - 1 and process.is_alive() and not any(folder.iterdir()):
            time.sleep(0.01)  # on a busy machine no earlier one came as far as a charge
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        # At once: what the dead process held must not stand in the way.
        books = open_ledger(place)
        charged = {entry.release_id for entry in books.history() if entry.kind == "charge"}
        told = {path.name for path in folder.iterdir()}
        assert told <= charged
        assert len(charged) - len(told) <= round_ + 1
    assert told, "the test must have killed something at work"
    ledger.charge(people("abc"), Cost(mu=0.1), release_id="after", purpose="p")
