"""How strong the signal is, and in which directions: empirical Bayes on the released association.

Model: in the eigenbasis of XᵀX (eigenvalues a) the coefficients of an outcome direction in group g
are N(0, τ_g²·(a/a_max)^γ_g). γ = 0 is a flat prior on coefficients; γ < 0 puts more signal into
faint directions of the features (at γ = −1 every direction explains as much as any other), γ > 0
less. The likelihood of the noisy association decides: first one γ and one overall strength, whose
prior is nearly log-uniform in the share of variation it explains; then, for several groups of
outcomes, a pair for each group, held near the common one.

Nothing is decided that need not be. Expected error is linear in the prior variance, so the filter that
is best on average over all γ and τ is the one that is best at their posterior mean: a mixture of
shapes. Few outcomes say little about γ, and then the mixture stays wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.outcomes import OutcomeGroups
from primo.released.estimate.risk import Replicas

__all__ = ["GAMMAS", "Signal", "SignalModel"]

Floats = NDArray[np.float64]

GAMMAS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
GAMMA_SPREAD = 0.5  # prior standard deviation of the common γ: a weak preference for the flat prior
GROUP_GAMMA_SPREAD = 1.0  # of a group's γ around the common one
GROUP_LOG_SPREAD = 0.5  # of the logarithm of a group's strength around its expectation
PRIOR_FLOOR = 1e-3  # a/a_max is not followed below this, so that γ = −1 stays bounded
EXPLAINED = np.append(0.0, np.geomspace(1e-5, 1, 46))  # candidate shares of the total variation
#: Log-prior of a share s, up to a constant: s^0.15 on a logarithmic scale, close to log-uniform. With 0
#: few rows with much signal were shrunk too far, with 0.4 outcomes without any signal not far enough.
SHARE_PRIOR = 0.15 * np.log(np.maximum(EXPLAINED, EXPLAINED[1]))
FACTORS = np.geomspace(0.04, 25, 29)  # candidate strengths of a group over its expectation


@dataclass(frozen=True, kw_only=True)
class Signal:
    """Prior variances Σ_γ strength[γ, g]·(a/a_max)^γ of coefficients in outcome group g."""

    strength: Floats  # (gammas, groups)
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

    Notes
    -----
    Cost: O(copies·d²) for each γ, O(d·groups) for each candidate strength; nothing depends on l.
    """

    def __init__(self, replicas: Replicas, *, variation: float) -> None:
        truths = replicas.truths
        top = np.maximum(truths.max(axis=1, keepdims=True), 1e-300)
        self.shapes = np.maximum(truths / top, PRIOR_FLOOR) ** GAMMAS[:, None, None]
        """Relative prior variances along the true eigenvectors, (gammas, copies, d)."""
        self.variation = variation
        # Variation explained, and E[(VᵀXᵀy)²], at unit strength.
        self.explained = np.einsum("ki,ski->s", truths, self.shapes) / len(truths)  # (gammas,)
        self.expected = replicas.along(np.moveaxis(truths**2 * self.shapes, 0, -1))  # (d, gammas)

    def fit(self, energy: Floats, groups: OutcomeGroups) -> Signal:
        """Average over γ and over strengths proportional to the groups' weights.

        Parameters
        ----------
        energy
            Sums of squares of the rotated association within each group, (d, groups).
        groups
            The groups behind its columns.
        """
        scores, strengths = np.empty(len(GAMMAS)), np.empty(len(GAMMAS))
        for k, gamma in enumerate(GAMMAS):
            ceiling = self.variation / self.explained[k]
            candidates = np.outer(ceiling * EXPLAINED, groups.weights)
            likelihood = self._log_likelihood(energy, groups, k, candidates).sum(axis=1)
            evidence, share = _posterior_mean(likelihood + SHARE_PRIOR, EXPLAINED)
            scores[k] = float(evidence) - (gamma / GAMMA_SPREAD) ** 2 / 2
            strengths[k] = ceiling * share
        score, probability = _normalised(scores)
        return Signal(
            strength=np.outer(probability * strengths, groups.weights), score=float(score)
        )

    def refine(self, energy: Floats, groups: OutcomeGroups, around: Signal) -> Signal:
        """Let every group move away from the common fit as far as its own energy warrants."""
        explained = around.strength * self.explained[:, None]
        if not explained.any():
            return around
        common = explained.sum(axis=1) / explained.sum()  # how much each γ counts
        scores = np.empty_like(around.strength)
        strengths = np.empty_like(around.strength)
        for k, gamma in enumerate(GAMMAS):
            centre = explained.sum(axis=0) / self.explained[k]
            score = self._log_likelihood(energy, groups, k, np.outer(FACTORS, centre))
            score -= (np.log(FACTORS)[:, None] / GROUP_LOG_SPREAD) ** 2 / 2
            evidence, factor = _posterior_mean(score, FACTORS)
            nearness = np.exp(-(((gamma - GAMMAS) / GROUP_GAMMA_SPREAD) ** 2) / 2)
            scores[k] = evidence + np.log(common @ nearness)
            strengths[k] = centre * factor
        score, probability = _normalised(scores)
        return Signal(strength=probability * strengths, score=float(score.sum()))

    def variances(self, signal: Signal) -> Floats:
        """Prior variances of coefficients along the true eigenvectors, (copies, d, groups)."""
        return np.asarray(np.moveaxis(self.shapes, 0, -1) @ signal.strength)

    def _log_likelihood(
        self, energy: Floats, groups: OutcomeGroups, k: int, strengths: Floats
    ) -> Floats:
        """Gaussian log-likelihood of each group's energy for (candidates, groups) strengths."""
        variance = strengths[:, None, :] * self.expected[:, k][:, None] + groups.noise_variance
        misfit = energy / variance
        misfit += groups.counts * np.log(variance, out=variance)
        return np.asarray(-0.5 * misfit.sum(axis=1))


def _posterior_mean(log_weights: Floats, candidates: Floats) -> tuple[Floats, Floats]:
    """Return log Σ exp(log_weights) and the weighted mean of the candidates, along axis 0."""
    total, weights = _normalised(log_weights)
    return total, np.asarray(np.tensordot(candidates, weights, 1))


def _normalised(log_weights: Floats) -> tuple[Floats, Floats]:
    """Return log Σ exp(log_weights) and the weights over their sum, along axis 0."""
    top = log_weights.max(axis=0)
    weights = np.exp(log_weights - top)
    total = weights.sum(axis=0)
    return np.asarray(top + np.log(total)), weights / total
