"""Released moments to coefficients. Public side of the wall: nothing here can see a row of data."""

from primo.released.estimate.problem import Estimate, NoisyMoments
from primo.released.estimate.selection import ESTIMATORS, estimate

__all__ = ["ESTIMATORS", "Estimate", "NoisyMoments", "estimate"]
