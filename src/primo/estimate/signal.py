"""How strong the signal is, and in which directions: empirical Bayes on the released association.

Model: in the eigenbasis of XᵀX (eigenvalues a) the coefficients of an outcome direction in group g
are N(0, τ_g²·(a/a_max)^γ_g). γ = 0 is a flat prior on coefficients; γ < 0 puts more signal into
faint directions of the features (at γ = −1 every direction explains as much as any other), γ > 0
less. The likelihood of the noisy association decides: first one γ and one overall strength, whose
prior is log-uniform in the share of variation it explains; then, for several groups of outcomes, a
pair for each group, held near the common one. γ is the one with most evidence, τ² a posterior mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.estimate.outcomes import OutcomeGroups
from primo.estimate.risk import Replicas

__all__ = ["Signal", "SignalModel", "prior_shape"]

Floats = NDArray[np.float64]

GAMMAS = np.array([0.0, -1.0, -0.5, 0.5, 1.0])
GROUP_GAMMAS = np.append(GAMMAS, 2.0)  # one outcome direction may live in a few feature directions
GAMMA_SPREAD = 0.5  # prior standard deviation of the common γ: a weak preference for the flat prior
GROUP_GAMMA_SPREAD = 1.0  # of a group's γ around the common one
GROUP_LOG_SPREAD = 0.5  # of the logarithm of a group's strength around its expectation
PRIOR_FLOOR = 1e-3  # a/a_max is not followed below this, so that γ = −1 stays bounded
EXPLAINED = np.append(0.0, np.geomspace(1e-5, 1, 46))  # candidate shares of the total variation
FACTORS = np.geomspace(0.04, 25, 29)  # candidate strengths of a group over its expectation


@dataclass(frozen=True, kw_only=True)
class Signal:
    """Prior variance strength[g]·(a/a_max)^gamma[g] of coefficients in outcome group g."""

    gamma: Floats  # (groups,)
    strength: Floats  # (groups,)
    score: float  # log-evidence, with the prior of γ


def prior_shape(truth: Floats, gamma: float) -> Floats:
    """Relative prior variance of coefficients in each eigen-direction, (d,)."""
    return np.asarray(np.maximum(truth / truth.max(), PRIOR_FLOOR) ** gamma)


class SignalModel:
    """Likelihood of the association's energy, given what is known of the covariance.

    Parameters
    ----------
    replicas
        Simulated eigenbases of the covariance, and its denoised eigenvalues.
    noise_variance
        σ₂², of one entry of the association.
    variation
        Σ_j ‖y_j‖²/l. No strength that would explain more than this is considered: it is what keeps
        the coefficients of hopelessly noisy releases near zero.

    Notes
    -----
    Cost: O(d²) for each γ, O(d·groups) for each candidate strength; nothing depends on l.
    """

    def __init__(self, replicas: Replicas, *, noise_variance: float, variation: float) -> None:
        truth, overlap = replicas.truth, replicas.overlap()
        self.noise_variance = noise_variance
        self.variation = variation
        self._explained: dict[float, float] = {}  # γ -> variation explained at unit strength
        self._expected: dict[float, Floats] = {}  # γ -> E[(VᵀXᵀy)²] at unit strength, (d,)
        for gamma in GROUP_GAMMAS:
            shape = prior_shape(truth, gamma)
            self._explained[gamma] = float(truth @ shape)
            moment = truth**2 * shape
            self._expected[gamma] = moment if overlap is None else overlap.T @ moment

    def fit(self, energy: Floats, groups: OutcomeGroups, *, gammas: Floats = GAMMAS) -> Signal:
        """Fit a common γ and strengths proportional to the groups' weights.

        Parameters
        ----------
        energy
            Sums of squares of the rotated association within each group, (d, groups).
        groups
            The groups behind its columns.
        gammas
            Candidates.
        """
        best: Signal | None = None
        for gamma in gammas:
            ceiling = self.variation / self._explained[gamma]
            strengths = np.outer(ceiling * EXPLAINED, groups.weights)
            likelihood = self._log_likelihood(energy, groups.counts, gamma, strengths).sum(axis=1)
            evidence, share = _posterior_mean(likelihood, EXPLAINED)
            score = float(evidence) - (gamma / GAMMA_SPREAD) ** 2 / 2
            if best is None or score > best.score:
                best = Signal(
                    gamma=np.full(len(groups.counts), gamma),
                    strength=ceiling * share * groups.weights,
                    score=score,
                )
        assert best is not None
        return best

    def refine(self, energy: Floats, groups: OutcomeGroups, around: Signal) -> Signal:
        """Let every group move away from the common fit as far as its own energy warrants."""
        gamma, strength = around.gamma.copy(), around.strength.copy()
        best = np.full(len(gamma), -np.inf)
        for candidate in GROUP_GAMMAS:
            common = self._explained[float(around.gamma[0])] / self._explained[candidate]
            centre = around.strength * common
            score = self._log_likelihood(
                energy, groups.counts, candidate, np.outer(FACTORS, centre)
            )
            score -= (np.log(FACTORS)[:, None] / GROUP_LOG_SPREAD) ** 2 / 2
            score -= ((candidate - around.gamma) / GROUP_GAMMA_SPREAD) ** 2 / 2
            evidence, factor = _posterior_mean(score, FACTORS)
            better = evidence > best
            best[better] = evidence[better]
            gamma[better] = candidate
            strength[better] = (centre * factor)[better]
        return Signal(gamma=gamma, strength=strength, score=float(best.sum()))

    def _log_likelihood(
        self, energy: Floats, counts: Floats, gamma: float, strengths: Floats
    ) -> Floats:
        """Gaussian log-likelihood of each group's energy for (candidates, groups) strengths."""
        variance = strengths[:, None, :] * self._expected[gamma][:, None] + self.noise_variance
        misfit = energy / variance
        misfit += counts * np.log(variance, out=variance)
        return np.asarray(-0.5 * misfit.sum(axis=1))


def _posterior_mean(log_weights: Floats, candidates: Floats) -> tuple[Floats, Floats]:
    """Return log Σ exp(log_weights) and the weighted mean of the candidates, along axis 0.

    The mean, not the mode: expected error is linear in the prior variance, so the filter that is
    best on average over what the variance may be is the one that is best at its mean.
    """
    top = log_weights.max(axis=0)
    weights = np.exp(log_weights - top)
    total = weights.sum(axis=0)
    return np.asarray(top + np.log(total)), np.asarray(np.tensordot(candidates, weights, 1) / total)
