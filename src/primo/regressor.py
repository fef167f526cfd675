"""The scikit-learn estimator: collects and checks parameters and arrays, and calls `workflow.fit`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from primo._util.threads import thread_count
from primo.errors import Argument, InputError, PrivacyError
from primo.planning.settings import Settings, spelled_missing
from primo.released.coefficients import estimate_coefficients
from primo.released.estimation import Estimation
from primo.released.public_means import public_means
from primo.released.reach import reach_of, within_reach
from primo.rows.coerce import array_source, column_names, numeric
from primo.rows.sources.base import Source, is_source
from primo.wall.noise import check_backend, random_bits
from primo.workflow.fit import Account, Engine, prepare, release_rows

__all__ = ["PrimoRegressor"]


class PrimoRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Differentially private linear regression of many outcomes on shared features.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one `fit`, for all outcomes together. Every further `fit` on the same
        people spends it again.
    protection : {"both", "features", "outcomes"}, default "both"
        What is secret about a row; the rest is taken to be public. "full", "feature" and "label" are
        other spellings.
    feature_bounds, outcome_bounds : float, (lower, upper) or Bounds, optional
        Public limits: a row norm, a range for (each) column, or `primo.Bounds`. Required for a
        private block; read off the data for a public one if not given.
    estimator : {"auto", "ridge", "filter", "one-sided", "two-sided"}, default "auto"
        How coefficients are made from the released moments; costs no privacy. "auto" chooses by
        simulation from the released numbers.
    association : {"gauss", "projection", "perturbed", "auto"}, default "gauss"
        The mechanism for XᵀY: Gaussian noise, the paper's projection (where one block is public), noise
        on the outcomes themselves (where they alone are private: statistics of any number of public
        features then cost nothing more), or whichever `primo.compare_plans` predicts to do better
        from public numbers.
    calibration : {"exact", "paper", "paper-alg3"}, default "exact"
        "paper" uses the noise scales as the paper prints them, to reproduce its figures; the release
        then states the epsilon that they truly give.
    covariance_rows : int, optional
        Make the covariance from this many rows, drawn in secret (SubSampReuseCov): saves time, not
        noise. Only for ``protection="both"``.
    public_covariance, public_mean : array (d, d) and (d,), optional
        Covariance (as `numpy.cov` gives it, in the data's units) and means of the features in a public
        reference panel. Only the association is then paid for.
    fit_intercept : bool, default True
        Whether a constant feature is part of the release. Without it predictions pass through the
        public centres of the bounds.
    missing : {"error", "centre"}, default "error"
        What to do with NaN and infinity: refuse, or count them as the public centre of their column.
        "center" is another spelling.
    split : float in [0.001, 2], optional
        Ratio q/p of association to covariance; chosen from the public l by default.
    outcome_moments : {"auto", "full", "diagonal"}, default "auto"
        How much of YᵀY is released as well (at no cost); "auto" is full up to 512 outcomes.
    rows_per_person : int, default 1
        How many rows one person may own: repeated visits, haplotypes. The budget is that of one row; the
        statement gives, and a ledger charges, the cost for a person, whose mu is this many times as
        large. A fit is refused where the index or the ids of a source show that a person owns more.
    norm_share : float in [0.001, 0.5], default 0.05
        Share of the budget (of mu²) that finds norms privately where bounds have ``norm="auto"``. More
        is spent where that is not enough: twice as much where rows are too few for one share, 1.8 times
        where centres are found, too, 1.6 times for centres and scales of raw columns, up to half of the
        budget for those of few raw columns with few rows. The statement says what was spent.
    rounds : int or "auto", default "auto"
        How often the rows are read under the one budget. Every round after the first looks at what the
        rounds before have left unexplained, with noise for the length of that. "auto" chooses from
        public numbers.
    covariance : {"full", "blocks", "panel", "none", "auto"}, default "full"
        What is released of XᵀX: all of it, what lies inside public blocks of features, or its diagonal
        alone ("none", and "panel", where a public panel supplies the rest). For thousands of features
        and more: cost and memory are linear in d. "auto" chooses from public numbers.
    blocks : sequence of int, optional
        Borders of the blocks by feature position, for ``covariance="blocks"``: [0, 30, 75, d].
        With ``association="perturbed"`` public features are summed inside them, exactly.
    block_norms : float or array (m,), optional
        Public norms of the blocks' rows in scaled units; from the bounds if not given.
    ridge_lambda : float, "theorem" or "adassp", optional
        Penalty for ``estimator="ridge"``, on sums of squares in scaled units, or a rule for it.
    coefficient_norm : float, optional
        Public guess of ‖w‖ in scaled units, for ``ridge_lambda="theorem"``.
    solver : {"fast", "qr", "cg"}, default "fast"
        For the ridge: the eigenbasis, or the paper's QR and conjugate gradients.
    backend : {"primo", "opendp"}, default "primo"
        The sampler of the exact discrete Gaussian.
    n_jobs : int, optional
        Threads. The result does not depend on it.
    verbose : bool, default False
        Show a progress bar on a terminal.
    score_public_rows : bool, default False
        Declare that the rows given to `score` are public or not to be protected.
    random_state : int or numpy.random.RandomState, optional
        For tests only. Known noise protects nobody: the release is marked "reproducible: not for
        publication" and a warning is given.

    Attributes
    ----------
    coef_ : ndarray (l, d), or (d,) if `fit` was given one-dimensional outcomes
    intercept_ : ndarray (l,), or float if `fit` was given one-dimensional outcomes
    release_ : Release
        All that was learned from the data; prints its privacy statement.
    estimator_ : str
        The estimator that was used; what "auto" chose.
    outcome_names_ : ndarray of str (l,)

    Notes
    -----
    Guarantee: everything the fitted object holds is (epsilon, delta)-differentially private for
    `protection` under replace-one, if the bounds were chosen without looking at private rows. Scaling
    or selecting columns by looking at the data *before* `fit`, as pipelines do, is outside the
    guarantee.

    Examples
    --------
    >>> import numpy as np, primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 3, size=(20_000, 5))
    >>> Y = X @ rng.normal(size=(5, 3)) + rng.normal(size=(20_000, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=2, delta=1e-6, feature_bounds=(0, 2), outcome_bounds=(-10, 10)
    ... )
    >>> model.fit(X, Y).coef_.shape
    (3, 5)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        protection: str = "both",
        feature_bounds: Any = None,
        outcome_bounds: Any = None,
        estimator: str = "auto",
        association: str = "gauss",
        calibration: str = "exact",
        covariance_rows: int | None = None,
        public_covariance: Any = None,
        public_mean: Any = None,
        fit_intercept: bool = True,
        missing: str = "error",
        split: float | None = None,
        outcome_moments: str = "auto",
        rows_per_person: int = 1,
        norm_share: float = 0.05,
        rounds: int | str = "auto",
        covariance: str = "full",
        blocks: Any = None,
        block_norms: Any = None,
        ridge_lambda: float | str | None = None,
        coefficient_norm: float | None = None,
        solver: str = "fast",
        backend: str = "primo",
        n_jobs: int | None = None,
        verbose: bool = False,
        score_public_rows: bool = False,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.protection = protection
        self.feature_bounds = feature_bounds
        self.outcome_bounds = outcome_bounds
        self.estimator = estimator
        self.association = association
        self.calibration = calibration
        self.covariance_rows = covariance_rows
        self.public_covariance = public_covariance
        self.public_mean = public_mean
        self.fit_intercept = fit_intercept
        self.missing = missing
        self.split = split
        self.outcome_moments = outcome_moments
        self.rows_per_person = rows_per_person
        self.norm_share = norm_share
        self.rounds = rounds
        self.covariance = covariance
        self.blocks = blocks
        self.block_norms = block_norms
        self.ridge_lambda = ridge_lambda
        self.coefficient_norm = coefficient_norm
        self.solver = solver
        self.backend = backend
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.score_public_rows = score_public_rows
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, account: Account | None = None, workers: Any = None
    ) -> Self:
        """Spend the budget once and fit all outcomes.

        Parameters
        ----------
        X : array-like or data frame (n, d), or a source
            Features, NumPy, pandas or polars; or a source (`primo.table_source`), which holds the
            outcomes too and is read block by block. The index of a pandas frame, of X or else of y,
            names people, unless it just counts rows; a ledger recognises them by it.
        y : array-like, series or data frame (n, l) or (n,)
            Outcomes, unless X is a source. (The name is scikit-learn's; in formulas they are Y.)
        account : primo.Account, optional
            A ledger that is charged before a row is read, or the fit is refused:
            ``primo.Account(ledger=primo.open_ledger("cohort.ledger"), purpose="...")``.
        workers : optional
            What reads the rows: a number of local worker processes, the address of a Dask scheduler, or
            a `dask.distributed` client. The result does not depend on it.
        """
        # Everything that can be refused is refused before a row is read and budget spent.
        estimation = Estimation(**{f.name: getattr(self, f.name) for f in fields(Estimation)})
        for name in ("fit_intercept", "verbose", "score_public_rows"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(Argument(name, getattr(self, name)), " must be True or False")
        engine = Engine(
            backend=self.backend,
            threads=thread_count(self.n_jobs),
            workers=workers,
            show_progress=self.verbose,
        )
        check_backend(self.backend, seeded=self.random_state is not None)
        source, single = self._source(X, y)
        settings = Settings(**{f.name: getattr(self, f.name) for f in fields(Settings)})
        self.release_ = release_rows(
            source,
            prepare(source, settings),
            bits=random_bits(self.random_state),
            engine=engine,
            account=account,
        )
        fitted = estimate_coefficients(self.release_, estimation)
        self.estimator_ = fitted.estimator
        self.outcome_names_ = np.asarray(fitted.outcome_names, dtype=object)
        self.coef_ = fitted.slopes[:, 0] if single else fitted.slopes.T
        self.intercept_ = float(fitted.intercept[0]) if single else fitted.intercept
        return self

    def _source(self, X: Any, y: Any) -> tuple[Source, bool]:
        """Return what was given as a source, and whether the outcomes are one-dimensional."""
        if is_source(X):
            if y is not None:
                raise InputError("a source holds the outcomes too: fit(source), without y")
            self.feature_names_in_ = np.asarray(X.feature_names, dtype=object)
            self.n_features_in_ = len(X.feature_names)
            return X, False
        outcome_names = column_names(y)
        if y is None:
            raise InputError(
                "PrimoRegressor requires y to be passed, but the target y is None; "
                "pass the outcomes as the second argument"
            )
        column_names(X)  # refuses a name that means two columns
        features = check_array(numeric(X, "features"), ensure_all_finite=False, input_name="X")
        validate_data(self, X, skip_check_array=True)  # names and number of columns
        outcomes = check_array(
            numeric(y, "outcomes"), ensure_2d=False, ensure_all_finite=False, input_name="y"
        )
        source = array_source(
            features,
            outcomes,
            tables=(X, y),
            feature_names=getattr(self, "feature_names_in_", None),
            outcome_names=outcome_names,
        )
        return source, outcomes.ndim == 1

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return predicted outcomes, (n, l) or (n,) as `fit` was given them.

        They are ``X @ coef_.T + intercept_``. Only where the norm of the features was found, and
        neither ranges nor scales are stated, rows of more than three times that norm are first
        shortened to it.
        """
        check_is_fitted(self)
        column_names(X)  # refuses a name that means two columns
        array = numeric(X, "features")
        validate_data(self, X, reset=False, skip_check_array=True)  # names and number of columns
        if spelled_missing(self.missing) == "centre":
            array = np.where(np.isfinite(array), array, public_means(self.release_))
        features = check_array(array, dtype=np.float64, input_name="X")
        features = within_reach(features, reach_of(self.release_.plan))
        return np.asarray(features @ self.coef_.T + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean R² over outcomes, if the rows are declared to be public.

        The number is computed from the rows given, without noise. On private rows, fitted or held out
        (as in cross-validation), publishing it would leak them; so it is refused unless the model was
        made with ``score_public_rows=True``.
        """
        predicted = self.predict(X)
        if not self.score_public_rows:
            raise PrivacyError(
                "score computes a number from the rows it is given, without noise; on private rows, "
                "fitted or held out, it would leak them. If these rows are public or not to be "
                "protected, say so: model.set_params(",
                Argument("score_public_rows", True),
                ")",
                argument="score_public_rows",
            )
        outcomes = numeric(y, "outcomes")
        return float(r2_score(outcomes, predicted, sample_weight=sample_weight))
