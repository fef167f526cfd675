"""Mistakes about rows: how far one can move the sums, and what it is clipped to."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["CLIPPING", "SENSITIVITY"]

_WORST = "tests/wall/test_replay.py::test_worst_neighbours_are_mu_apart_and_no_more"
_RANDOM = "tests/wall/test_replay.py::test_random_neighbours_are_never_further_apart"
_REPLAY = "tests/audit_replay/test_neighbours.py"
_SEARCH = f"{_REPLAY}::test_a_search_finds_neighbours_mu_apart_and_none_further"
_AROUND = f"{_REPLAY}::test_nothing_private_goes_around_the_noise"
_ALONE = "tests/rows/test_rows_alone.py"
_SAMPLING = "tests/privacy/test_subsampling.py"

# The sensitivity.
SENSITIVITY = (
    Mutant(
        "the covariance's sensitivity loses its √2",
        (
            Patch("privacy/grid.py", "mu**2 / (2 + 2 * split", "mu**2 / (1 + 2 * split"),
            Patch("privacy/sensitivity.py", "return 2 * p + 2 * q + 2 * s", "return p + 2 * q + s"),
            Patch(
                "privacy/sensitivity.py",
                "return 2 * p + 2 * q + q * q / (2 * p)",
                "return p + 2 * q + q * q / (2 * p)",
            ),
        ),
        (f"{_WORST}[both-full-rows]",),
    ),
    Mutant(
        "the association's sensitivity loses its 2",
        (
            Patch("planning/make.py", "q = left**2 / 4 * (1 - 1e-11)", "q = left**2 * (1 - 1e-11)"),
            Patch("privacy/sensitivity.py", "        return 4 * q\n", "        return q\n"),
        ),
        (f"{_WORST}[both-full-extension]",),
    ),
    Mutant(
        "the sensitivities are those that the paper prints",
        (
            Patch("privacy/grid.py", "(2 + 2 * split + split**2 / 2)", "(1 + split)"),
            Patch(
                "privacy/grid.py", "joint_distance(grid.p, grid.q, grid.s) > ", "grid.p + grid.q > "
            ),
        ),
        (f"{_SEARCH}[both-gauss-full]",),
    ),
    Mutant(
        "joint_distance forgets the outcome moments",
        (
            Patch(
                "privacy/sensitivity.py",
                "max(_two_blocks(p, q), _two_blocks(s, q))",
                "_two_blocks(p, q)",
            ),
        ),
        (
            "tests/privacy/test_sensitivity.py::test_search_reaches_but_never_beats_the_formula[1-10-12.5]",
        ),
    ),
    Mutant(
        "a sampled covariance loses its √2",
        (
            Patch(
                "privacy/subsampling.py",
                "math.sqrt(2) / scales.covariance",
                "1 / scales.covariance",
            ),
        ),
        (f"{_SAMPLING}::test_covariance_alone_is_exact_against_the_worst_pair[0.1-0.4-0.02]",),
    ),
    Mutant(
        "amplification by sampling is claimed for the association too",
        (
            Patch(
                "privacy/subsampling.py",
                "((1 - scales.rate) * not_drawn + scales.rate * drawn) * _SAFETY",
                "scales.rate * drawn * _SAFETY",
            ),
        ),
        (f"{_SAMPLING}::test_composition_lies_between_brute_force_and_the_bound[3.0-2.0-0.1]",),
    ),
)

# Clipping and the bounds.
CLIPPING = (
    Mutant(
        "clipping is skipped",
        (
            Patch(
                "rows/quantise.py",
                "over = np.flatnonzero(~(lengths <= limit))",
                "over = np.flatnonzero(~np.isfinite(lengths))",
            ),
        ),
        (f"{_RANDOM}[both-full-rows-intercept]",),
    ),
    Mutant(
        "ranges are not cut",
        (Patch("rows/quantise.py", "np.clip(z, lower, upper, out=z)", "pass"),),
        ("tests/rows/test_quantise.py::test_a_range_centres_scales_and_cuts",),
    ),
    Mutant(
        "shortened rows are rounded to nearest and not checked in integers",
        (
            Patch(
                "rows/quantise.py",
                "np.trunc(np.multiply(rows, shrink",
                "np.rint(np.multiply(rows, shrink",
            ),
            Patch("rows/quantise.py", "~(_lengths(rows) <= limit))", "_lengths(rows) < 0)"),
        ),
        ("tests/rows/test_quantise.py::test_shortened_rows_are_in_the_ball_to_the_last_integer",),
    ),
    Mutant(
        "rows are rounded away from zero",
        (
            Patch(
                "rows/quantise.py",
                "        np.trunc(z, out=z)\n",
                "        np.copysign(np.ceil(np.abs(z)), z, out=z)\n",
            ),
        ),
        ("tests/rows/test_quantise.py::test_rounding_is_toward_zero",),
    ),
    Mutant(
        "a compiled kernel vouches for rows of any length",
        (
            Patch(
                "rows/kernels.py", "return length if length < reach**2 else np.inf", "return 0.0"
            ),
            Patch(
                "rows/kernels.py",
                "(-edge if value < -edge else value))\n"
                "        length = _plus(length, value * value)\n"
                "        out[j] = value\n"
                "    return length if sizes < reach else np.inf",
                "(-edge if value < -edge else value))\n"
                "        length = _plus(length, value * value)\n"
                "        out[j] = value\n"
                "    return 0.0",
            ),
        ),
        ("tests/rows/test_kernels.py::test_types_and_layouts[bounds0-float64]",),
        needs="numba",
        slow=True,  # it is compiled anew
    ),
    Mutant(
        "squared norms of long rows are added up in whatever order",
        (
            Patch(
                "rows/quantise.py",
                "np.sqrt(limit / _lengths(rows, squares))",
                "np.sqrt(limit / squares)",
            ),
        ),
        (f"{_ALONE}::test_the_last_bit_of_a_squared_norm_does_not_depend_on_other_rows",),
    ),
    Mutant(
        "a sum of squares decides which rows are too far out",
        (
            Patch(
                "rows/quantise.py",
                "= np.abs(rows).max(axis=1) <= _REACH",
                '= np.isfinite(np.einsum("ij,ij->i", rows, rows))',  # in an order of its own choice
            ),
            Patch("rows/quantise.py", "_REACH = 2.0**480", "_REACH = 2.0**511"),
        ),
        (f"{_ALONE}::test_whether_squares_overflow_does_not_depend_on_other_rows",),
    ),
    Mutant(
        "one string makes strings of all cells of a list",
        (
            Patch(
                "rows/coerce.py",
                "np.asarray(table, dtype=object).astype(np.float64)",
                "np.asarray(table).astype(np.float64)",
            ),
        ),
        ("tests/rows/test_cells_alone.py::test_a_string_in_a_list_does_not_move_other_people",),
    ),
    Mutant(
        "the first chunk of a Dask array decides on the type of others",
        (
            Patch(
                "rows/sources/arrays/dask.py",
                "DaskColumns(array=alike,",
                "DaskColumns(array=array,",
            ),
        ),
        (
            "tests/rows/sources/arrays/test_dask.py::test_the_type_of_one_chunk_does_not_round_the_rows_of_another",
        ),
        needs="dask",
    ),
    Mutant(
        "a blank line in a table of one column is skipped",
        (
            Patch(
                "rows/sources/tabular/text.py", "rows = lines if len(header) == 1 else", "rows ="
            ),
            Patch(
                "rows/sources/tabular/text.py",
                "ignore_empty_lines=len(self.header) > 1",
                "ignore_empty_lines=True",
            ),
        ),
        (
            "tests/rows/sources/tabular/test_blank_lines.py::test_a_blank_line_of_one_column_is_a_missing_cell",
        ),
    ),
    Mutant(
        "tables with skipped lines are paired by order",
        (
            Patch(
                "rows/sources/tabular/tables.py",
                'if getattr(table.store, "skips", False):',
                "if False:",
            ),
        ),
        (
            "tests/rows/sources/tabular/test_blank_lines.py::test_skipped_lines_and_the_same_order_do_not_go_together",
        ),
    ),
    Mutant(
        "sums in float32 are taken for exact beyond its integers",
        (Patch("rows/genotype_products.py", "_EXACT = 2**24", "_EXACT = 2**26"),),
        ("tests/rows/test_genotype_products.py::test_sums_end_at_the_integers_of_float32",),
        needs="numba",
    ),
    Mutant(
        "the intercept is left out of the bound",
        (
            Patch(
                "rows/quantise.py",
                "self.radius_squared - (self.constant or 0) ** 2",
                "self.radius_squared",
            ),
        ),
        (f"{_SEARCH}[both-gauss-full-intercept]",),
    ),
    Mutant(
        "outcomes are clipped to a longer norm than is paid for",
        (
            Patch(
                "rows/quantise.py",
                "radius_squared=plan.grid.outcome_radius_squared",
                "radius_squared=2 * plan.grid.outcome_radius_squared",
            ),
        ),
        (f"{_RANDOM}[outcomes-full-rows]",),
    ),
    Mutant(
        "bounds read off a private block are accepted",
        (Patch("planning/make.py", "if private and bounds.from_data:", "if False:"),),
        ("tests/test_regressor.py::test_bounds_read_off_a_private_block_are_refused",),
    ),
    Mutant(
        "missing bounds are read off private rows",
        (
            Patch("workflow/fit.py", "    if private:\n        return None\n", ""),
            Patch(
                "workflow/fit.py",
                "    return Bounds.from_public_blocks(walk)\n",
                "    import dataclasses\n\n"
                "    return dataclasses.replace(Bounds.from_public_blocks(walk), from_data=False)\n",
            ),
        ),
        (f"{_REPLAY}::test_no_bound_is_read_off_private_rows[both]",),
    ),
    Mutant(
        "GaussProj takes its radius from the private rows",
        (
            Patch(
                "workflow/pipeline.py",
                "_projected(release, public) if",
                "_projected(release, public, source) if",
            ),
            Patch(
                "workflow/pipeline.py",
                "def _projected(release: Release, outcomes: NDArray[Any] | None)",
                "def _projected(release: Release, outcomes: NDArray[Any] | None, source: Source)",
            ),
            Patch(
                "workflow/pipeline.py",
                "n=plan.n, radius=root * plan.features.norm",
                "n=plan.n, radius=float(np.linalg.norm(source.features))",
            ),
        ),
        (f"{_AROUND}[features-projection-full-intercept]",),
    ),
)
