"""What follows from the rounds released so far: pooled moments, and what the next round looks at."""

from primo.released.estimate.rounds.gradual import gradual_coefficients, is_anew
from primo.released.estimate.rounds.pooling import pool, pooled_covariance, sharing_covariance
from primo.released.estimate.rounds.schedule import may_be_gradual
from primo.released.estimate.rounds.step import next_step
from primo.released.estimate.rounds.trial import is_gradual

__all__ = [
    "gradual_coefficients",
    "is_anew",
    "is_gradual",
    "may_be_gradual",
    "next_step",
    "pool",
    "pooled_covariance",
    "sharing_covariance",
]
