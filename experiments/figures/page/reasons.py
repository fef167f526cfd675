"""Why a claim of the paper may not hold here. Conditions on the scores choose among these."""

from __future__ import annotations

__all__ = [
    "AHEAD_ALREADY",
    "COVARIANCE_AGAIN",
    "EXACT_COVARIANCE",
    "NEVER_FURTHER",
    "NOTHING_TO_PROJECT",
    "NO_RIDGE",
    "ONLY_THE_ADDITION",
    "PRINTED_BALL",
    "RIDGE_DECIDES",
    "RIDGE_HOLDS",
    "RIDGE_SHRINKS",
    "TOO_CLOSE",
    "UNBOUNDED",
    "WIDE_BALL",
]

NEVER_FURTHER = (
    "Gauss adds no less noise to XᵀY than the projection starts from. Projecting onto a convex set "
    "that contains the exact XᵀY never moves a noisy one further from it (in Euclidean distance), and "
    "ReuseCovProj_X knows XᵀX exactly, because features are public to it. So no reason is left why "
    "it should lose. What made it worse in the paper's runs cannot be told from its text."
)
NOTHING_TO_PROJECT = (
    "No difference can be seen. A noisy XᵀY that lies inside the ball stays where it is, and then the "
    "two algorithms differ in the noise on XᵀX alone."
)
WIDE_BALL = (
    "The projection limits how long the fitted outcomes are (‖Z‖ ≤ √n·b_y), not how wrong. As noise "
    "grows, R² falls to a constant rather than to zero, and the wider the ball is compared with the "
    "outcomes themselves, the lower that constant."
)
PRINTED_BALL = (
    " As printed the radius is √(n·l)·max|y|, wider than any rows of outcomes need; with a bound on "
    "whole rows (calibrated) the error at the same l is clearly smaller."
)
NO_RIDGE = (
    "As printed there is no ridge (λ = 0). Once noise brings an eigenvalue of the covariance close to "
    "zero the solution has no limit, and R² falls far below zero. Noise is also proportional to the "
    "bound √l·max|y|, several times the length of a typical row of outcomes."
)
RIDGE_HOLDS = (
    "The calibrated version has a ridge and a tighter bound on outcomes, which keep R² up; the printed "
    "one is below zero at the same l."
)
RIDGE_SHRINKS = (
    "The calibrated ReuseCovGauss has a ridge, and at these l its shrinkage does more than the "
    "projection."
)
COVARIANCE_AGAIN = (
    "Rates hide what it costs to release the covariance l times: each of the l regressions gets a "
    "noisy covariance of its own, and pays for it. ReuseCov pays once."
)
ONLY_THE_ADDITION = (
    "What grows as a power of l is the error that privacy adds, not the whole error: log(1 + c·l^p) is "
    "flat while the addition is small, and straight only where it dominates."
)
EXACT_COVARIANCE = (
    "ReuseCovProj_X takes the images to be public and knows their covariance exactly, whereas DP-SGD "
    "protects them, too. ReuseCovGauss, which protects as much as DP-SGD, is clearly worse here."
)
UNBOUNDED = (
    "Without a ridge the error of ReuseCov has no upper limit and grows with l; R² is below −1 at the "
    "largest l."
)
AHEAD_ALREADY = "The projection is ahead from the start, and there is nothing to catch up with."
RIDGE_DECIDES = (
    "The ridge makes the difference: without it (as printed) DP-SGD is better at these l."
)
TOO_CLOSE = "Where it fails, the two are within two standard errors of each other."
