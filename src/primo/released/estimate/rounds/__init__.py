"""What follows from the rounds released so far: pooled moments, and what the next round looks at."""

from primo.released.estimate.rounds.pooling import pool
from primo.released.estimate.rounds.step import next_step

__all__ = ["next_step", "pool"]
