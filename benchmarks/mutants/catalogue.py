"""The mistakes: what is changed in the source, and which tests are to fail because of it.

A mistake is one or a few replacements of text. Each text must be in its file exactly once: a mutant
that no longer fits the source is an error, never a pass (`Mutant.apply`, tests/mutants).

Mistakes without a mutant, because no test can see them:

- The integer re-check of a shortened row, left out by itself. Truncation shrinks every coordinate by
  more than float64 rounds, so the check never finds anything; it is there so that nobody has to rely
  on that argument. Together with rounding to nearest it is a mutant below.
"""

from benchmarks.mutants.blocks import BLOCKS
from benchmarks.mutants.costs import CALIBRATED, CHARGED
from benchmarks.mutants.files import FILES, GUARANTEE
from benchmarks.mutants.noise import NOISE, REUSE
from benchmarks.mutants.norms import NORMS
from benchmarks.mutants.people import PEOPLE
from benchmarks.mutants.rounds import ROUNDS
from benchmarks.mutants.rows import CLIPPING, SENSITIVITY

__all__ = ["MUTANTS"]

MUTANTS = (
    *SENSITIVITY,
    *CLIPPING,
    *NOISE,
    *REUSE,
    *NORMS,
    *ROUNDS,
    *BLOCKS,
    *CALIBRATED,
    *CHARGED,
    *PEOPLE,
    *FILES,
    *GUARANTEE,
)
