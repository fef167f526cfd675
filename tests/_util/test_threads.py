"""Work shared among threads: results in order, and no waiting when it is abandoned."""

from threading import Event, Thread

import pytest

from primo._util.threads import in_order, prefetch


def test_results_come_in_the_order_of_the_items():
    slow = Event()

    def work(i):
        if i == 0:
            assert slow.wait(60)
        if i == 1:
            slow.set()
        return 10 * i

    assert list(in_order(work, iter(range(20)), 2)) == [10 * i for i in range(20)]
    assert list(prefetch(iter(range(20)))) == list(range(20))
    assert list(in_order(work, iter([]), 2)) == list(prefetch(iter([]))) == []


def test_errors_end_the_walk_and_close_the_items():
    closed = Event()

    def items():
        try:
            yield from range(100)
        finally:
            closed.set()

    def work(i):
        if i == 3:
            raise KeyError
        return i

    walk, seen = in_order(work, items(), 2), []
    with pytest.raises(KeyError) as kept:  # keeps the frames of the traceback alive
        seen.extend(walk)
    assert kept
    assert closed.is_set()

    def broken():
        yield 1
        raise KeyError

    with pytest.raises(KeyError):
        list(prefetch(broken()))


@pytest.mark.parametrize("kind", ["in_order", "prefetch"])
def test_giving_up_waits_for_no_thread(kind):
    """The garbage collector may do it while a thread is being started."""
    gate = Event()

    def work(i):
        if i:
            gate.wait(60)
        return i

    walk = (
        in_order(work, iter(range(9)), 1) if kind == "in_order" else prefetch(map(work, range(9)))
    )
    assert next(walk) == 0
    closing = Thread(target=walk.close)
    closing.start()
    closing.join(30)
    try:
        assert not closing.is_alive()
    finally:
        gate.set()
