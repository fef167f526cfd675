"""Released moments to coefficients. Public side of the wall: nothing here can see a row of data."""

from primo.estimate.problem import Estimate, NoisyMoments
from primo.estimate.selection import ESTIMATORS, estimate

__all__ = ["ESTIMATORS", "Estimate", "NoisyMoments", "estimate"]
