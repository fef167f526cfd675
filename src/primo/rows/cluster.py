"""The fold on a cluster: partitions are folded where they lie, and only their moments travel.

Moments are integers, so the tree in which they are added does not show in the result: it is the same
bits as on one machine. `grid` is chosen such that n rows add up to at most 2**61, so that no sum over
any of them leaves int64.

The cluster is inside the trust boundary (docs/cluster.md). Beyond it nothing may leak, so a task never
fails in the eyes of Dask, which would write its arguments and the message of its error into logs: what
goes wrong is *returned*, without values, and raised here.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count, pairwise
from multiprocessing import current_process
from typing import Any, Literal, TypeGuard
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from primo._util.optional import optional
from primo.errors import Argument, InputError, PrimoError
from primo.planning.plan import Plan
from primo.rows.public_block import PublicRows
from primo.rows.sources.arrays.dask import DaskColumns
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.base import Rows, Source
from primo.rows.sources.paired import PairedSource
from primo.rows.walk import Folding, Progress, S, Sums, check_row_count

__all__ = ["fold_on_cluster", "open_client"]

#: So many partitions for each thread of the cluster: a lost worker or a slow one costs little.
_PER_THREAD = 4

#: Fewer rows than this are not worth a partition of their own.
_FEWEST_ROWS = 1024

#: How often a worker tries to read its rows, unless primo raised the error: file systems fail at times.
_TRIES = 2


@contextmanager
def open_client(workers: Any) -> Iterator[Any]:
    """Give a client of `dask.distributed`, and close whatever was opened for it.

    Parameters
    ----------
    workers
        A `distributed.Client`, which stays open; the address of a scheduler ("tcp://host:8786",
        "tls://..."); or a number of worker processes to start on this machine. Those talk to each
        other under temporary TLS keys: other users of the machine cannot join.
    """
    distributed = _distributed()
    if isinstance(workers, distributed.Client):
        yield workers
    elif isinstance(workers, str):
        with _connect(distributed, workers) as opened:
            yield opened
    elif isinstance(workers, int) and workers >= 1 and not isinstance(workers, bool):
        with (
            _start(distributed, workers) as cluster,
            distributed.Client(cluster, set_as_default=False) as opened,
        ):
            yield opened
    else:
        raise InputError(
            Argument("workers", workers),
            " must be a distributed.Client, the address of a scheduler, or a "
            "number of local workers",
        )


def fold_on_cluster(
    folding: Folding[S],
    source: Source,
    plan: Plan,
    *,
    client: Any,
    sample: NDArray[np.bool_] | None = None,
    partitions: int | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
) -> S:
    """Fold every row once on the workers of `client` and return the sums of all.

    Parameters
    ----------
    folding
        What is summed: `rows.moments.fold` or `rows.lengths.fold_lengths`.
    source
        Has to make sense to the workers: a file that they see under the same path. Rows in memory
        are sent to them. Chunks of Dask arrays are folded by the workers that hold them.
    plan, sample, progress, collect
        As for `primo.rows.moments.fold`.
    client
        A `distributed.Client`.
    partitions
        Number of parts that the rows are cut into; from n and the number of threads if None. Dask
        arrays are cut into their own chunks.

    Notes
    -----
    Guarantee: the same bits as `fold`, whichever workers come, go or die. A partition whose worker is
    lost is folded again elsewhere; one that cannot be read raises a `PrimoError` without values.
    Cost: that of `fold`, shared by the workers; each receives plan and partition and passes on one set
    of moments per partition. This process receives one.
    """
    if (sample is not None) != plan.draws_sample:
        raise InputError("a sub-sampled plan needs its sample, and only that one")
    distributed = _distributed()
    block = None if collect is None else collect.block
    if _in_dask(source):
        shares = _chunk_shares(source, plan, sample, block, folding)
    else:
        threads = sum(client.nthreads().values())
        partitions = partitions or _partitions(source.n, threads)
        shares = _part_shares(source, plan, sample, partitions, block, folding)
    total, *states = futures = client.compute(_graph(shares))
    public: dict[str, NDArray[Any]] = {}
    try:
        for state in distributed.as_completed(states, loop=client.loop):
            rows, kept = _result(state)
            if kept is not None:
                public[state.key] = kept
            if progress is not None:
                progress(rows)
        sums: S = _result(total)
    except BaseException:
        with suppress(Exception):  # a lost scheduler has nothing left to cancel
            client.cancel(futures, force=True)
        raise
    check_row_count(source, sums.rows)
    if collect is not None:
        for state in states:
            collect.extend(public[state.key])
    return sums


class _Share:
    """What a worker needs to know to fold its rows.

    Not a dataclass: Dask looks into those for collections to compute.
    """

    def __init__(
        self, source: Source | None, plan: Plan, sample: Any, public: Public, folding: Any
    ) -> None:
        self.source, self.plan, self.sample, self.public = source, plan, sample, public
        self.folding = folding
        self.version = version("primo-dp")

    def __repr__(self) -> str:
        return "<Share (private)>"


class _Folded:
    """What a worker made of its rows: their sums, and the public block of them if it is needed.

    Not a dataclass either.
    """

    def __init__(self, sums: Sums, public: NDArray[Any] | None) -> None:
        self.sums, self.public = sums, public

    def __repr__(self) -> str:
        return "<Folded (private)>"


@dataclass(frozen=True)
class _Failure:
    """An error on its way from a worker to the client, as a value."""

    error: PrimoError


Public = Literal["features", "outcomes"] | None  # the block to collect

Shares = list[tuple[_Share, Sequence[Any]]]  # each with the Dask chunks it refers to, if any


def _part_shares(
    source: Source,
    plan: Plan,
    sample: NDArray[np.bool_] | None,
    partitions: int,
    public: Public,
    folding: Any,
) -> Shares:
    """Cut a source into parts of about the same number of rows."""
    edges = np.linspace(0, source.n, min(max(1, partitions), source.n) + 1).astype(int).tolist()
    return [
        (_Share(source.part(start, stop), plan, _slice(sample, start, stop), public, folding), ())
        for start, stop in pairwise(edges)
    ]


def _chunk_shares(
    source: PairedSource,
    plan: Plan,
    sample: NDArray[np.bool_] | None,
    public: Public,
    folding: Any,
) -> Shares:
    """Cut a source of Dask arrays into the chunks that they are made of."""
    features: Any = source.features
    outcomes: Any = source.outcomes
    x = features.array[_index(source.feature_rows)].rechunk({1: -1})
    y = outcomes.array[_index(source.outcome_rows)].rechunk({0: x.chunks[0], 1: -1})
    edges = np.cumsum((0, *x.chunks[0])).tolist()
    places = zip(pairwise(edges), x.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
    return [
        (_Share(None, plan, _slice(sample, start, stop), public, folding), chunks)
        for (start, stop), *chunks in places
        if stop > start
    ]


def _graph(shares: Shares) -> list[Any]:
    """Return the sum over all shares, and how many rows each has, to be computed together.

    It is one graph, so that Dask adds moments up as soon as there are two. The client watches the
    numbers of rows; if it held on to the moments, workers would have to keep them all.
    """
    from dask.delayed import delayed

    run = (
        f"primo-{uuid4().hex}"  # names by chance: Dask's own are hashes of the (private) arguments
    )
    parts = [
        delayed(_fold_share)(share, *chunks, dask_key_name=f"{run}-fold-{i}")
        for i, (share, chunks) in enumerate(shares)
    ]
    states = [
        delayed(_state)(part, dask_key_name=f"{run}-state-{i}") for i, part in enumerate(parts)
    ]
    parts = [delayed(_sums)(part, dask_key_name=f"{run}-sums-{i}") for i, part in enumerate(parts)]
    for level in count():
        if len(parts) == 1:
            break
        odd = parts[len(parts) // 2 * 2 :]
        parts = [
            delayed(_add)(*pair, dask_key_name=f"{run}-sum-{level}-{i}")
            for i, pair in enumerate(zip(parts[::2], parts[1::2], strict=False))
        ] + odd
    return [*parts, *states]


def _fold_share(share: _Share, *chunks: NDArray[Any]) -> _Folded | _Failure:
    """Fold the rows of one partition; runs on a worker and never raises."""
    own = version("primo-dp")
    if own != share.version:
        return _Failure(
            InputError(
                f"a worker has primo {own}, but this is primo {share.version}; "
                "install the same on all machines"
            )
        )
    for _ in range(_TRIES):
        try:
            source = _as_source(*chunks) if share.source is None else share.source
            collected = None if share.public is None else PublicRows(share.public)
            sums = share.folding(
                source, share.plan, sample=share.sample, threads=1, collect=collected
            )
            return _Folded(sums, None if collected is None else collected.rows())
        except PrimoError as error:
            return _Failure(copy(error))  # without its traceback, in which rows are
        except Exception as error:  # its message may quote cells: only its name goes on
            failure = type(error).__name__
    return _Failure(
        PrimoError(
            f"a part of the rows could not be read on its worker ({failure}). Fold it on one machine to "
            "see where; the original message stays private"
        )
    )


def _as_source(features: NDArray[Any], outcomes: NDArray[Any]) -> ArraySource:
    return ArraySource(
        features=features,
        outcomes=outcomes,
        feature_names=tuple(map(str, range(features.shape[1]))),
        outcome_names=tuple(map(str, range(outcomes.shape[1]))),
    )


def _state(part: _Folded | _Failure) -> tuple[int, NDArray[Any] | None] | _Failure:
    """Return how many rows were folded, and their public block; runs on a worker."""
    return (part.sums.rows, part.public) if isinstance(part, _Folded) else part


def _sums(part: _Folded | _Failure) -> Sums | _Failure:
    """Return the sums alone; runs on a worker."""
    return part.sums if isinstance(part, _Folded) else part


def _add(left: Sums | _Failure, right: Sums | _Failure) -> Sums | _Failure:
    """Merge; runs on a worker."""
    if isinstance(left, _Failure):
        return left
    return right if isinstance(right, _Failure) else left + right


def _result(future: Any) -> Any:
    """Wait for a future and return its value, or raise an error of ours without values."""
    try:
        value = future.result()
    except (Exception, CancelledError) as error:
        failure = type(error).__name__
    else:
        if isinstance(value, _Failure):
            raise copy(value.error)
        return value
    remedy = (
        "its workers died, most often for want of memory: give them more, or ask for more partitions"
        if failure == "KilledWorker"
        else "see that scheduler and workers are up, have the same Python packages as this machine, "
        "and find the same files"
    )
    raise PrimoError(f"a part of the rows could not be folded on the cluster ({failure}): {remedy}")


def _partitions(n: int, threads: int) -> int:
    return max(1, min(_PER_THREAD * max(1, threads), n // _FEWEST_ROWS))


def _in_dask(source: Source) -> TypeGuard[PairedSource]:
    return isinstance(source, PairedSource) and all(
        isinstance(columns, DaskColumns) for columns in (source.features, source.outcomes)
    )


def _index(rows: Rows) -> Any:
    if isinstance(rows, range) and rows.step == 1:
        return slice(rows.start, rows.stop)
    return np.asarray(rows, dtype=np.intp)


def _slice(sample: NDArray[np.bool_] | None, start: int, stop: int) -> NDArray[np.bool_] | None:
    return None if sample is None else sample[start:stop]


def _start(distributed: Any, workers: int) -> Any:
    """Start worker processes on this machine; a script without a main guard would start itself again."""
    again = getattr(current_process(), "_inheriting", False)  # a worker that runs the script
    try:
        if not again:
            return distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                security=True,
            )
    except RuntimeError:
        pass  # its message is that of an unnamed process ("Nanny failed to start.")
    raise InputError(
        "the local worker processes did not start",
        argument="workers",
        value=workers,
        remedy="they run your script from its beginning: put what it does under "
        '`if __name__ == "__main__":` (docs/cluster.md)',
    )


def _connect(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        failure = type(error).__name__
    raise InputError(
        f"there is no Dask scheduler at {address} ({failure}); start one with `dask scheduler`, and "
        "give its address as it prints it, for example tcp://host:8786"
    )


def _distributed() -> Any:
    return optional("distributed", extra="cluster", purpose="running on a cluster")
