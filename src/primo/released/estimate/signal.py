"""How strong the signal is, and in which directions: empirical Bayes on the released association.

Model: in the eigenbasis of XᵀX (eigenvalues a) the coefficients of an outcome direction in group g
are N(0, τ_g²·(a/a_max)^γ_g). γ = 0 is a flat prior on coefficients; γ < 0 puts more signal into
faint directions of the features (at γ = −1 every direction explains as much as any other, at γ = −2
the faintest explain nearly all), γ > 0 less. Replicas differ in their eigenvalues; at the same strength
all explain as much. What the association holds beside signal is its noise and the sampling error of
rows, whose size follows from what is left unexplained. The likelihood of the noisy association decides:
first one γ and one overall strength, whose prior is nearly log-uniform in the share of variation it
explains; then, for several groups of outcomes, a pair for each group, held near the common one.

Nothing is decided that need not be. Expected error is linear in the prior variance, so the filter that
is best on average over all γ and τ is the one that is best at their posterior mean: a mixture of
shapes. Few outcomes say little about γ, and then the mixture stays wide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.large import LargeReplicas
from primo.released.estimate.outcomes import OutcomeGroups
from primo.released.estimate.risk import Carried, Replicas, seen_squares

__all__ = ["GAMMAS", "Signal", "SignalModel"]

Floats = NDArray[np.float64]

GAMMAS = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
GAMMA_SPREAD = 0.5  # prior standard deviation of the common γ: a weak preference for the flat prior
MOST_UNLIKELY = 4.0  # nats: no shape is given less than e^−4 of the flat prior's weight
GROUP_GAMMA_SPREAD = 1.0  # of a group's γ around the common one
FAINTEST_OF_GROUP = -1.0  # γ below which a group has no more than the common fit
GROUP_LOG_SPREAD = 0.5  # of the logarithm of a group's strength around its expectation
PRIOR_FLOOR = 1e-3  # a/a_max is not followed below this, so that γ = −1 stays bounded
EXPLAINED = np.append(0.0, np.geomspace(1e-5, 1, 46))  # candidate shares of the total variation
NO_SIGNAL = 0.15  # prior probability that the features explain nothing at all
#: Log-prior of a share s, up to a constant: √s on a logarithmic scale, so 1/√s on a linear one.
SHARE_PRIOR = np.append(-np.inf, 0.5 * np.log(EXPLAINED[1:]))
SHARE_PRIOR[0] = np.log(NO_SIGNAL / (1 - NO_SIGNAL) * np.exp(SHARE_PRIOR).sum())
#: Odds of nothing times this: beyond, what is more likely nothing than something is taken as nothing.
IN_DOUBT, UNLIKELY = 1.0, 0.5
FEWER = slice(None, None, 4)  # of the shares: enough to compare replicas
LEAST_COUNTED = 0.5  # of the replicas: their effective number is not let fall below this
MOST_TEMPERED = 100  # steps of 0.8, until differences of a thousand million nats are none
FACTORS = np.geomspace(0.04, 25, 29)  # candidate strengths of a group over its expectation


@dataclass(frozen=True, kw_only=True)
class Signal:
    """Prior variances Σ_γ strength[γ, g]·(a/a_max)^γ of coefficients in outcome group g."""

    strength: Floats  # (gammas, groups) under which the best filter keeps the right share
    mean: Floats  # (gammas, groups) posterior mean
    score: float  # log-evidence, with the prior of γ


class SignalModel:
    """Likelihood of the association's energy, given what is known of the covariance.

    Parameters
    ----------
    replicas
        Simulated releases of the covariance.
    variation
        Σ_j ‖y_j‖²/l. No strength that would explain more than this is considered: it is what keeps
        the coefficients of hopelessly noisy releases near zero.
    rows
        n, which says how large sampling error is; infinite if it does not count.
    row_variance
        Of noise on the outcomes themselves: it acts as sampling error, of rows as well.
    doubt
        What the odds of no signal are multiplied by, less 1 (`nothing`).
    carried
        What earlier rounds had found; None for one release.

    Notes
    -----
    Cost: O(copies·d²) for each γ, O(d·groups) for each candidate strength; nothing depends on l.
    """

    def __init__(
        self,
        replicas: Replicas | LargeReplicas,
        *,
        variation: float,
        rows: float = np.inf,
        row_variance: float = 0.0,
        doubt: float = 0.0,
        carried: Carried | None = None,
    ) -> None:
        self.doubt = doubt
        truths, shares = replicas.truths, replicas.shares
        top = np.maximum(truths.max(axis=1, keepdims=True), 1e-300)
        self.shapes = np.maximum(truths / top, PRIOR_FLOOR) ** GAMMAS[:, None, None]
        """Relative prior variances along the true eigenvectors, (gammas, copies, d)."""
        # Variation explained at unit strength.
        self.sizes = replicas.sizes  # (d,) directions that an entry stands for
        each = np.einsum("ki,ski->sk", truths * self.sizes, self.shapes)
        self.explained = each @ shares  # (gammas,)
        # Where all eigenvalues are lost in noise, how much is explained is known better than τ.
        self.shapes *= (self.explained[:, None] / np.maximum(each, 1e-300))[:, :, None]
        self.replicas, self.variation, self.rows = replicas, variation, rows
        self.row_variance = row_variance
        self.values = replicas.mean_values()  # (d,)
        self.expected = seen_squares(replicas, np.moveaxis(self.shapes, 0, -1), carried)
        """E[(VᵀXᵀy)²] at unit strength, (d, gammas)."""

    @property
    def share_prior(self) -> Floats:
        """Log-prior of the shares `EXPLAINED`, up to a constant."""
        prior = SHARE_PRIOR.copy()
        prior[0] += np.log1p(self.doubt)
        return prior

    def fit(self, energy: Floats, groups: OutcomeGroups, *, of_rows: bool = False) -> Signal:
        """Average over γ and over strengths proportional to the groups' weights.

        Parameters
        ----------
        energy
            Sums of squares of the rotated association within each group, (d, groups).
        groups
            The groups behind its columns.
        of_rows
            Whether the coefficients are those of least squares on these rows, sampling error included.
        """
        scores, strengths, means, nothing = np.empty((4, len(GAMMAS)))
        for k, gamma in enumerate(GAMMAS):
            ceiling = self.variation / self.explained[k]
            candidates = np.outer(ceiling * EXPLAINED, groups.signal_weights)
            each = self._log_likelihood(energy, groups, k, candidates, of_rows=of_rows)
            likelihood = each.sum(axis=1)
            evidence, share = _posterior_mean(likelihood + self.share_prior, EXPLAINED)
            scores[k] = float(evidence) - _unlikely(gamma)
            nothing[k] = likelihood[0] + self.share_prior[0] - float(evidence)
            means[k] = strengths[k] = ceiling * share
            if not of_rows:
                kept = self._kept(groups, k, candidates) @ groups.counts / groups.counts.sum()
                strengths[k] = ceiling * _equivalent(likelihood + self.share_prior, EXPLAINED, kept)
        score, probability = _normalised(scores)
        if self.doubt > IN_DOUBT and float(probability @ np.exp(nothing)) > UNLIKELY:
            strengths[:] = means[:] = 0.0  # a little of nothing may be far too much
        return Signal(
            strength=np.outer(probability * strengths, groups.signal_weights),
            mean=np.outer(probability * means, groups.signal_weights),
            score=float(score),
        )

    def weigh(self, energy: Floats, groups: OutcomeGroups) -> Replicas | LargeReplicas:
        """Return the replicas, each counting for as much as the association is likely under it.

        Large eigenvalues would have shown in the association, and small ones cannot explain a large
        one. Noisy eigenvectors are taken as in all replicas together, so that only eigenvalues are
        compared. Weights are flattened until enough replicas count for an average.
        """
        replicas = self.replicas
        if isinstance(replicas, LargeReplicas):
            return replicas
        if replicas.bases is None or len(replicas.bases) == 1:
            return replicas
        mixing = np.mean(replicas.bases**2, axis=0)
        values = replicas.truths @ mixing  # (copies, d)
        shares, prior = EXPLAINED[FEWER, None, None], self.share_prior[FEWER, None]
        scores = []
        for k, gamma in enumerate(GAMMAS):
            expected = (replicas.truths**2 * self.shapes[k]) @ mixing
            signal = shares * self.variation / self.explained[k] * expected
            chance = (1 - shares) * self.variation / self.rows * values
            score = prior - _unlikely(gamma)
            for g, count in enumerate(groups.counts):
                variance = groups.signal_weights[g] * signal + groups.weights[g] * chance
                variance += groups.noise_variance[g]
                misfit = energy[:, g] / variance + count * np.log(variance)
                score = score - 0.5 * misfit.sum(axis=2)  # (shares, copies)
            scores.append(score)
        evidence, _ = _normalised(np.concatenate(scores))
        return replace(replicas, weights=_flattened(evidence))

    def refine(self, energy: Floats, groups: OutcomeGroups, around: Signal) -> Signal:
        """Let every group move away from the common fit as far as its own energy warrants."""
        explained = around.mean * self.explained[:, None]
        if not explained.any():
            return around
        common = explained.sum(axis=1) / explained.sum()  # how much each γ counts
        scores = np.empty_like(around.strength)
        strengths, means = np.empty_like(scores), np.empty_like(scores)
        for k, gamma in enumerate(GAMMAS):
            centre = explained.sum(axis=0) / self.explained[k]
            score = self._log_likelihood(energy, groups, k, np.outer(FACTORS, centre))
            score -= (np.log(FACTORS)[:, None] / GROUP_LOG_SPREAD) ** 2 / 2
            evidence, mean = _posterior_mean(score, FACTORS)
            factor = _equivalent(score, FACTORS, self._kept(groups, k, np.outer(FACTORS, centre)))
            nearness = np.exp(-(((gamma - GAMMAS) / GROUP_GAMMA_SPREAD) ** 2) / 2)
            # Signal in the faintest directions only is not for a group to claim on its own.
            held = common[k] if gamma < FAINTEST_OF_GROUP else common @ nearness
            scores[k] = evidence + np.log(max(float(held), 1e-300))
            strengths[k], means[k] = centre * factor, centre * mean
        score, probability = _normalised(scores)
        return Signal(
            strength=probability * strengths, mean=probability * means, score=float(score.sum())
        )

    def residual(self, signal: Signal, groups: OutcomeGroups) -> Floats:
        """Return ς², what a row's outcome varies beside the signal, (groups,)."""
        left = self.variation * groups.weights - self.explained @ signal.mean
        return np.asarray(np.maximum(left, 0.0) / self.rows)

    def variances(self, signal: Signal) -> Floats:
        """Prior variances of coefficients along the true eigenvectors, (copies, d, groups)."""
        return np.asarray(np.moveaxis(self.shapes, 0, -1) @ signal.strength)

    def _log_likelihood(
        self,
        energy: Floats,
        groups: OutcomeGroups,
        k: int,
        strengths: Floats,
        *,
        of_rows: bool = False,
    ) -> Floats:
        """Gaussian log-likelihood of each group's energy for (candidates, groups) strengths."""
        variance = strengths[:, None, :] * self.expected[:, k][:, None]
        variance += self._beside(groups, k, None if of_rows else strengths)
        misfit = energy / variance
        misfit += self.sizes[:, None] * groups.counts * np.log(variance, out=variance)
        return np.asarray(-0.5 * misfit.sum(axis=1))

    def _beside(self, groups: OutcomeGroups, k: int, strengths: Floats | None) -> Floats:
        """Variance of the association beside the signal: noise, and sampling error unless None."""
        noise = groups.noise_variance
        if self.row_variance > 0:
            noise = noise + self.row_variance * self.values[:, None]
        if strengths is None or not np.isfinite(self.rows):
            return noise
        left = self.variation * groups.weights - self.explained[k] * strengths
        chance = np.maximum(left, 0.0) / self.rows
        return np.asarray(chance[:, None, :] * self.values[:, None] + noise)

    def _kept(self, groups: OutcomeGroups, k: int, strengths: Floats) -> Floats:
        """Share of what is explained that the best filter keeps, for (candidates, groups) strengths."""
        expected = self.expected[:, k]
        explained = np.divide(
            expected, self.values, out=np.zeros_like(expected), where=self.values > 0
        )
        signal = strengths[:, None, :] * expected[:, None]
        kept = signal / (signal + self._beside(groups, k, strengths))
        return np.asarray(
            np.einsum("i,cig->cg", explained / max(float(explained.sum()), 1e-300), kept)
        )


def _unlikely(gamma: float) -> float:
    """Nats by which the prior disfavours a common γ."""
    return min((gamma / GAMMA_SPREAD) ** 2 / 2, MOST_UNLIKELY)


def _flattened(scores: Floats) -> Floats:
    """Weights of log-likelihoods (copies,), tempered until `LEAST_COUNTED` of them count.

    Equal weights where that does not end: damaged numbers give scores that are not finite.
    """
    for step in range(MOST_TEMPERED):
        _, weights = _normalised(0.8**step * scores)
        if 1 / float(weights @ weights) >= LEAST_COUNTED * len(weights):
            return weights
    return np.full(len(scores), 1 / len(scores))


def _posterior_mean(log_weights: Floats, candidates: Floats) -> tuple[Floats, Floats]:
    """Return log Σ exp(log_weights) and the weighted mean of the candidates, along axis 0."""
    total, weights = _normalised(log_weights)
    return total, np.asarray(np.tensordot(candidates, weights, 1))


def _equivalent(log_weights: Floats, candidates: Floats, kept: Floats) -> Floats:
    """Return the candidate that keeps as much as all of them do on average, along axis 0.

    The association that tells the strength is the one that is filtered. Where it is large by chance
    the strength seems large, so the posterior mean of the strength keeps too much of that very
    association; the posterior mean of what is kept is right (`kept`, one for each candidate).
    """
    _, weights = _normalised(log_weights)
    mean = (weights * kept).sum(axis=0)
    if kept.ndim == 1:
        return np.asarray(np.interp(mean, kept, candidates))
    columns = zip(mean, kept.T, strict=True)
    return np.array([np.interp(at, each, candidates) for at, each in columns])


def _normalised(log_weights: Floats) -> tuple[Floats, Floats]:
    """Return log Σ exp(log_weights) and the weights over their sum, along axis 0."""
    top = log_weights.max(axis=0)
    weights = np.exp(log_weights - top)
    total = weights.sum(axis=0)
    return np.asarray(top + np.log(total)), weights / total
