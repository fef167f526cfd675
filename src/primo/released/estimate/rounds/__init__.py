"""What follows from the rounds released so far: pooled moments, and what the next round looks at."""

from primo.released.estimate.rounds.gradual import gradual_coefficients
from primo.released.estimate.rounds.pooling import pool, pooled_covariance
from primo.released.estimate.rounds.step import next_step
from primo.released.estimate.rounds.trial import is_gradual, is_lost

__all__ = [
    "gradual_coefficients",
    "is_gradual",
    "is_lost",
    "next_step",
    "pool",
    "pooled_covariance",
]
