"""Mistakes about norms that are found from row lengths."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["NORMS"]

_REPLAY = "tests/audit_replay/test_neighbours.py"
_SEARCH = f"{_REPLAY}::test_a_search_finds_neighbours_mu_apart_and_none_further"
_AROUND = f"{_REPLAY}::test_nothing_private_goes_around_the_noise"
_COST = "tests/planning/test_norm_search.py"
_LENGTHS = "tests/rows/test_lengths.py"

NORMS = (
    Mutant(
        "a row is counted twice in the histogram of lengths",
        (
            Patch(
                "rows/lengths.py",
                "counts += np.bincount(",
                "counts += 2 * np.bincount(",
            ),
        ),
        (
            f"{_LENGTHS}::test_a_row_moves_two_counts_by_one_at_most",
            f"{_SEARCH}[both-auto norms-full]",
        ),
    ),
    Mutant(
        "the edges of the bins are read off the data",
        (
            Patch(
                "rows/lengths.py",
                "bin_of_squared(squares)",
                "bin_of_squared(squares / max(float(squares.max()), 1e-300))",
            ),
        ),
        (f"{_LENGTHS}::test_a_row_moves_two_counts_by_one_at_most",),
    ),
    Mutant(
        "the share for the histograms is not taken from the main release",
        (
            Patch(
                "planning/make.py",
                "left = mu if search is None else remaining_mu(mu, search)\n        if count",
                "left = mu\n        if count",
            ),
        ),
        (f"{_COST}::test_both_stages_together_spend_mu_and_no_more[both-0.05-1.0]",),
    ),
    Mutant(
        "two histograms are charged as one",
        (
            Patch(
                "privacy/norm_search.py",
                "squared_distance = 2 * (int(self.features) + int(self.outcomes))",
                "squared_distance = 2",
            ),
            Patch(
                "privacy/norm_search.py",
                "histograms = int(features) + int(outcomes)",
                "histograms = 1",
            ),
        ),
        (f"{_COST}::test_a_histogram_moves_by_the_root_of_two_and_two_by_two",),
    ),
    Mutant(
        "a private histogram is released without noise",
        (Patch("wall/mechanism.py", "if not plan.is_private(block):", "if True:"),),
        (f"{_AROUND}[both-auto norms-full-intercept]",),
    ),
    Mutant(
        "the norm is read off the counts before the noise",
        (
            Patch(
                "workflow/pipeline.py",
                "return settled_plan(plan, lengths), lengths",
                "return settled_plan(plan, ReleasedLengths("
                "features=counted.features * 1.0, outcomes=counted.outcomes * 1.0)), lengths",
            ),
        ),
        ("tests/workflow/test_found_norms.py::test_norms_follow_from_released_counts_alone",),
    ),
    Mutant(
        "a length depends on the order in which a block is summed",
        (
            Patch(
                "rows/lengths.py",
                "return squares_in_order(z)",
                "return np.cumsum(z * z, axis=1)[:, -1] * (1 + 1e-15 * len(z))",
            ),
        ),
        (f"{_LENGTHS}::test_a_length_depends_on_its_row_alone",),
    ),
)
