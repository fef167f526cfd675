"""Mistakes about a covariance inside blocks of features."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["BLOCKS"]

_ROWS = "tests/rows/test_block_moments.py"
_WITHIN = f"{_ROWS}::test_every_block_and_every_row_is_within_its_norm"
_COUNTED = "tests/rows/test_block_copies.py::test_counting_changes_no_bit"
_GRID = "tests/privacy/test_blocks.py::test_the_grid_meets_the_conditions_and_spends_mu"
_SCALES = "tests/wall/test_blocks.py::test_noise_scales_are_those_of_the_plan"
_REPLAY = "tests/audit_replay/test_neighbours.py"
_SEARCH = f"{_REPLAY}::test_a_search_finds_neighbours_mu_apart_and_none_further"
_AROUND = f"{_REPLAY}::test_nothing_private_goes_around_the_noise"

BLOCKS = (
    Mutant(
        "blocks of a row are not shortened",
        (
            Patch(
                "rows/quantise.py",
                "                shorten_rows(part, run.limit)",
                "                pass",
            ),
        ),
        (f"{_WITHIN}[norm-stated]",),
    ),
    Mutant(
        "single features are not shortened",
        (Patch("rows/quantise.py", "np.clip(part, -run.ends, run.ends, out=part)", "pass"),),
        (f"{_WITHIN}[norm-stated]",),
    ),
    Mutant(
        "blocks are shortened and the whole row is not",
        (
            Patch(
                "rows/quantise.py",
                "                lengths = _squares(z)\n            over",
                "                lengths = _squares(z) * 0\n            over",
            ),
        ),
        (f"{_WITHIN}[norm-from bounds]",),
    ),
    Mutant(
        "copies in a long block are counted as they are",
        (Patch("rows/block_copies.py", "                shorten_rows(again, run.limit)\n", ""),),
        (f"{_COUNTED}[64-3.0-short blocks-0.0]",),
    ),
    Mutant(
        "a long row of copies is counted as it is",
        (
            Patch(
                "rows/block_copies.py",
                "left = ~(lengths <= self._features.radius_squared)",
                "left = ~(lengths <= np.inf)",
            ),
        ),
        (f"{_COUNTED}[701-1.25-from bounds-0.0]",),
    ),
    Mutant(
        "the noise of blocks has half the variance, as in the first sketch",
        (
            Patch(
                "privacy/blocks.py",
                "least = 4 * radius * 2**grid",
                "least = 2 * radius * 2**grid",
            ),
            Patch("privacy/blocks.py", ">= 4 * radius * unit**2", ">= 2 * radius * unit**2"),
        ),
        (f"{_GRID}[1.0-1000]",),
    ),
    Mutant(
        "the association with blocks loses its 2",
        (
            Patch("privacy/blocks.py", "q = mu**2 / 4 * (1 - 1e-11)", "q = mu**2 * (1 - 1e-11)"),
            Patch("privacy/blocks.py", "if 4 * grid.q > ", "if grid.q > "),
        ),
        (f"{_SEARCH}[both-none-full-intercept]",),
    ),
    Mutant(
        "the diagonal of blocks has no noise",
        (
            Patch(
                "wall/blocks.py",
                'noisy[on] = draw(noisy[on], variance_bits, f"blocks of 2**{variance_bits} diagonal")',
                "noisy[on] = noisy[on]",
            ),
        ),
        (f"{_AROUND}[both-none-full-intercept]",),
    ),
    Mutant(
        "one triangle of a block has no noise",
        (Patch("wall/blocks.py", "            square.T[lower] = square[lower]\n", ""),),
        (_SCALES,),
    ),
    Mutant(
        "the sums of the features have no noise",
        (
            Patch(
                "wall/blocks.py",
                'sums = draw(sums, grid.association_variance_bits, "feature sums of blocks")',
                "sums = sums.copy()",
            ),
        ),
        (f"{_AROUND}[both-blocks-full-intercept]",),
    ),
    Mutant(
        "a file may claim any noise inside blocks",
        (
            Patch(
                "planning/guarantee.py",
                "(plan.blocks.covers(plan.d) and plan.blocks.holds(plan.grid, plan.n))",
                "plan.blocks.covers(plan.d)",
            ),
        ),
        ("tests/planning/test_blocks.py::test_a_file_cannot_claim_less_noise[variance_bits--1]",),
    ),
)
