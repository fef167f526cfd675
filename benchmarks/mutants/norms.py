"""Mistakes about norms that are found from row lengths."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["NORMS"]

_REPLAY = "tests/audit_replay/test_neighbours.py"
_SEARCH = f"{_REPLAY}::test_a_search_finds_neighbours_mu_apart_and_none_further"
_AROUND = f"{_REPLAY}::test_nothing_private_goes_around_the_noise"
_COST = "tests/planning/test_norm_search.py"
_LENGTHS = "tests/rows/test_lengths.py"
_SEARCHES = "tests/planning/test_searches.py"

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
                "left = remaining_mu(mu, searches)\n    rounds,",
                "left = mu\n    rounds,",
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
                "workflow/stages.py",
                "return settled_plan(plan, lengths), replace(lengths, columns=columns)",
                "return settled_plan(plan, ReleasedLengths("
                "features=counted.features * 1.0, outcomes=counted.outcomes * 1.0)), "
                "replace(lengths, columns=columns)",
            ),
        ),
        ("tests/workflow/test_found_norms.py::test_norms_follow_from_released_counts_alone",),
    ),
    Mutant(
        "a length depends on the order in which a block is summed",
        (
            Patch(
                "rows/lengths.py",
                "return squares_in_order(scaled(rows, clip, missing=missing, block=block))",
                "z = scaled(rows, clip, missing=missing, block=block)\n"
                "        return np.cumsum(z * z, axis=1)[:, -1] * (1 + 1e-15 * len(z))",
            ),
        ),
        (f"{_LENGTHS}::test_a_length_depends_on_its_row_alone",),
    ),
    Mutant(
        "a centre is read off the sums before the noise",
        (
            Patch(
                "workflow/stages.py",
                "plan = centred_plan(plan, sums)",
                "plan = centred_plan(plan, type(sums)("
                "features=summed.features / 2**20, outcomes=summed.outcomes / 2**20))",
            ),
        ),
        ("tests/workflow/test_found_norms.py::test_norms_follow_from_released_counts_alone",),
    ),
    Mutant(
        "scales are read off the counts before the noise",
        (
            Patch(
                "workflow/stages.py",
                "plan = plan_with_columns(plan, columns)",
                "plan = plan_with_columns(plan, values)",
            ),
        ),
        ("tests/workflow/test_found_norms.py::test_norms_follow_from_released_counts_alone",),
    ),
    Mutant(
        "a row is counted twice in the histograms of columns",
        (Patch("rows/values.py", "counts[j] += np.bincount(", "counts[j] += 2 * np.bincount("),),
        (
            f"{_SEARCHES}::test_no_pair_of_rows_moves_the_counts_of_columns_further_than_stated",
            f"{_SEARCH}[both-auto norms-full-intercept]",
        ),
    ),
    Mutant(
        "the histograms of all columns are charged as one",
        (
            Patch(
                "privacy/column_search.py",
                "Fraction(2 * self.columns * self.unit**2,",
                "Fraction(2 * self.unit**2,",
            ),
            Patch("privacy/column_search.py", "mu / math.sqrt(2 * columns)", "mu / math.sqrt(2)"),
        ),
        (
            f"{_SEARCHES}::test_columns_spend_mu_and_no_more[7]",
            f"{_SEARCH}[both-auto norms-full-intercept]",
        ),
    ),
    Mutant(
        "sums are charged as if a row were added, not replaced",
        (
            Patch(
                "privacy/centre_search.py",
                "squared_distance = 4 * self.blocks * RADIUS**2",
                "squared_distance = self.blocks * RADIUS**2",
            ),
            Patch("privacy/centre_search.py", "math.sqrt(4 * blocks)", "math.sqrt(blocks)"),
        ),
        (f"{_SEARCHES}::test_centres_spend_mu_and_no_more[1000-blocks1-0.04]",),
    ),
    Mutant(
        "rows are summed without being shortened",
        (Patch("rows/sums.py", "radius_squared=RADIUS**2,", "radius_squared=(4 * RADIUS) ** 2,"),),
        (f"{_SEARCHES}::test_no_pair_of_rows_moves_the_sums_further_than_stated",),
    ),
    Mutant(
        "the stage that finds centres is not charged",
        (
            Patch(
                "planning/searches.py",
                "made = (self.norms, self.centres, self.columns)",
                "made = (self.norms, self.columns)",
            ),
        ),
        (f"{_SEARCHES}::test_what_is_looked_for_follows_from_public_numbers[ranges]",),
    ),
    Mutant(
        "sums leave the wall without noise",
        (
            Patch(
                "wall/stages.py",
                "            add_noise(\n",
                '            if stage != "sums":\n             add_noise(\n',
            ),
        ),
        ("tests/workflow/test_found_norms.py::test_every_stage_has_noise_of_its_own[ranges]",),
    ),
    Mutant(
        "a range with a moved centre is cut elsewhere by the kernel",
        (
            Patch(
                "rows/kernels.py",
                "value = upper[j] if value > upper[j] else",
                "value = -lower[j] if value > -lower[j] else",
            ),
        ),
        ("tests/rows/test_moved_ranges.py::test_the_kernel_writes_the_same_bits",),
    ),
)
