"""`primo.extend`: later outcomes of the same rows, given as arrays, frames or a source."""

from __future__ import annotations

from typing import Any

from primo._util.threads import thread_count
from primo.errors import InputError
from primo.released.bundle import Bundle
from primo.released.moments import expect_release
from primo.released.release import Release
from primo.rows.coerce import array_source, column_names, numeric
from primo.rows.sources.base import Source, is_source
from primo.wall.noise import check_backend, random_bits
from primo.workflow.fit import Account, Engine, prepare_extension, release_rows

__all__ = ["extend"]


def extend(
    release: Release | Bundle,
    X: Any,
    Y: Any = None,
    *,
    protection: str,
    epsilon: float,
    delta: float,
    outcome_bounds: Any = None,
    rows_per_person: int = 1,
    backend: str = "primo",
    n_jobs: int | None = None,
    verbose: bool = False,
    random_state: Any = None,
    account: Account | None = None,
    workers: Any = None,
) -> Release:
    """Release outcomes that arrived later for the same rows, using the stored covariance again.

    Parameters
    ----------
    release
        The earlier release, as fitted or loaded, or its bundle. A ledger accepts only the bundle
        (`primo.read_bundle`), and a bundle that the ledger does not know is refused.
    X
        The features of the same rows in the same order, columns as before; or a source with these
        features and the new outcomes. With a ledger give a source if the first release was made from
        one: people are recognised by their ids.
    Y
        The new outcomes, (n, l) or (n,), unless X is a source.
    protection
        What is secret, as for `PrimoRegressor`; it has to be that of `release`. It must be
        stated, because a file that was swapped or edited must not decide it.
    epsilon, delta
        What the new outcomes may spend; only their association is paid for.
    outcome_bounds
        Public bounds of the new outcomes, as for `PrimoRegressor`.
    rows_per_person
        How many rows one person may own; at least as many as in the earlier release.
    backend
        As for `PrimoRegressor`.
    n_jobs
        As for `PrimoRegressor`.
    verbose
        As for `PrimoRegressor`.
    random_state
        As for `PrimoRegressor`.
    account
        As for `PrimoRegressor.fit`.
    workers
        As for `PrimoRegressor.fit`.

    Returns
    -------
    Release
        Of the new outcomes; its statement also gives the total with everything it extends. Turn it
        into coefficients with `primo.coefficients`.

    Notes
    -----
    Guarantee: (`epsilon`, `delta`) for the new numbers alone; together with the earlier releases mu²
    adds up, and the statement gives the (epsilon, delta) of the whole.

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> first = model.fit(X, Y).release_
    >>> later = primo.extend(
    ...     first, X, Y[:, :1], protection="both", epsilon=1, delta=1e-6, outcome_bounds=(-2, 2)
    ... )
    >>> later.outcome_names
    ('y3',)
    >>> later.plan.total_mu > first.plan.mu
    True
    """
    check_backend(backend, seeded=random_state is not None)
    earlier = expect_release(release.release if isinstance(release, Bundle) else release)
    source = _source(earlier, X, Y)
    prepared = prepare_extension(
        release,
        source,
        protection=protection,
        epsilon=epsilon,
        delta=delta,
        outcome_bounds=outcome_bounds,
        rows_per_person=rows_per_person,
    )
    return release_rows(
        source,
        prepared,
        bits=random_bits(random_state),
        engine=Engine(
            backend=backend, threads=thread_count(n_jobs), workers=workers, show_progress=verbose
        ),
        account=account,
    )


def _source(release: Release, X: Any, Y: Any) -> Source:
    """Return what was given as a source; arrays without names get those of the release."""
    if is_source(X):
        if Y is not None:
            raise InputError("a source holds the new outcomes too: extend(release, source, ...)")
        return X
    features, outcomes = numeric(X, "features"), numeric(Y, "outcomes")
    names = column_names(X)
    if names is None and features.shape[1] == len(release.feature_names):
        names = list(release.feature_names)
    return array_source(
        features,
        outcomes,
        tables=(X, Y),
        feature_names=names,
        outcome_names=column_names(Y),
        # Numbers continue those of the earlier outcomes, so that no name means two things.
        first_outcome=len(release.earlier_outcomes) + len(release.outcome_names),
    )
