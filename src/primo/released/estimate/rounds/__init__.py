"""What follows from the rounds released so far: pooled moments, and what the next round looks at."""

from primo.released.estimate.rounds.gradual import gradual_coefficients, is_gradual
from primo.released.estimate.rounds.pooling import pool
from primo.released.estimate.rounds.step import next_step

__all__ = ["gradual_coefficients", "is_gradual", "next_step", "pool"]
