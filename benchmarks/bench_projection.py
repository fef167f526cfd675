"""What GaussProj_X costs beside the product that any use of the association needs: one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from primo.released.projection import project_onto_features

N, D, L = 5008, 25, 100_000
ROUNDS = 15
TARGET = 3.0


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def projection_ratio(*, active: bool) -> float:
    """Measure the projection over one d×d by d×l product and one pass over it.

    The median of interleaved rounds, so that both have the same load; the first is a warm-up. A ball
    of a tenth of the noise's size makes the constraint active, one of ten times leaves it idle.
    """
    rng = np.random.default_rng(0)
    features = rng.integers(0, 3, size=(N, D)).astype(np.float64)
    covariance, association = features.T @ features, rng.normal(size=(D, L))
    radius = (0.1 if active else 10.0) * float(np.sqrt(L * np.trace(np.linalg.inv(covariance))))

    def product_and_pass() -> float:
        product = covariance @ association
        return float(np.vdot(product, product))

    ratios = [
        _seconds(lambda: project_onto_features(association, covariance, radius=radius))
        / _seconds(product_and_pass)
        for _ in range(ROUNDS + 1)
    ]
    return statistics.median(ratios[1:])


def main() -> None:
    for active in (True, False):
        print(
            f"projection: {D} x {L} onto the features, constraint {'active' if active else 'idle'}:"
            f" {projection_ratio(active=active):.2f} x one product and one pass"
            f" (target {TARGET:g})"
        )


if __name__ == "__main__":
    main()
