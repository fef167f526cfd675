"""The mistakes: what is changed in the source, and which tests are to fail because of it.

A mistake is one or a few replacements of text. Each text must be in its file exactly once: a mutant
that no longer fits the source is an error, never a pass (`Mutant.apply`, tests/mutants).

Mistakes without a mutant, because no test can see them:

- The integer re-check of a shortened row, left out by itself. Truncation shrinks every coordinate by
  more than float64 rounds, so the check never finds anything; it is there so that nobody has to rely
  on that argument. Together with rounding to nearest it is a mutant below.
"""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["MUTANTS", "Mutant", "OutOfDateError", "Patch"]


class OutOfDateError(Exception):
    """A mutant does not fit the source any more."""


@dataclass(frozen=True)
class Patch:
    """One replacement of text in a file of src/primo."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A mistake and the tests that notice it."""

    name: str
    patches: tuple[Patch, ...]
    killers: tuple[str, ...]  # arguments of pytest; the first that fails kills
    needs: str | None = None  # a module without which the mistake cannot happen
    slow: bool = False  # not part of --quick

    @property
    def files(self) -> str:
        """The files that are changed."""
        return ", ".join(dict.fromkeys(patch.file for patch in self.patches))

    def apply(self, package: Path) -> None:
        """Write the mistake into a copy of the package."""
        for patch in self.patches:
            path = package / patch.file
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            found = text.count(patch.old)
            if found != 1:
                raise OutOfDateError(
                    f"mutant out of date: {self.name!r} looks for a text that is {found} times in "
                    f"{patch.file}, instead of once:\n{patch.old}"
                )
            changed = text.replace(patch.old, patch.new)
            compile(changed, patch.file, "exec")  # a mistake, not a typing error
            path.write_text(changed, encoding="utf-8")


# Where the tests are.
_WORST = "tests/mechanisms/test_replay.py::test_worst_neighbours_are_mu_apart_and_no_more"
_RANDOM = "tests/mechanisms/test_replay.py::test_random_neighbours_are_never_further_apart"
_CALLS = "tests/mechanisms/test_replay.py::test_the_calls_do_not_depend_on_the_rows"
_REPLAY = "tests/audit_replay/test_neighbours.py"
_SEARCH = f"{_REPLAY}::test_a_search_finds_neighbours_mu_apart_and_none_further"
_AROUND = f"{_REPLAY}::test_nothing_private_goes_around_the_noise"
_CHARGES = "tests/audit_replay/test_charges.py"
_SOURCES = "tests/audit_replay/test_sources.py"
_GAUSS = "tests/mechanisms/test_gauss.py"
_LEDGER = "tests/ledger/test_ledger.py"
_CALIBRATION = "tests/privacy/test_calibration.py"
_SAMPLING = "tests/privacy/test_subsampling.py"
_LAW = "tests/noise/test_sampler.py::TestLaw"
_SCALES = f"{_GAUSS}::test_noise_scales_are_those_of_the_plan[full]"

# The sensitivity.
_SENSITIVITY = (
    Mutant(
        "the covariance's sensitivity loses its √2",
        (
            Patch("grid.py", "mu**2 / (2 + 2 * split", "mu**2 / (1 + 2 * split"),
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
            Patch("planner.py", "q = mu**2 / 4 * (1 - 1e-11)", "q = mu**2 * (1 - 1e-11)"),
            Patch("privacy/sensitivity.py", "        return 4 * q\n", "        return q\n"),
        ),
        (f"{_WORST}[both-full-extension]",),
    ),
    Mutant(
        "the sensitivities are those that the paper prints",
        (
            Patch("grid.py", "(2 + 2 * split + split**2 / 2)", "(1 + split)"),
            Patch("grid.py", "joint_distance(grid.p, grid.q, grid.s) > ", "grid.p + grid.q > "),
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
                "((1 - scales.rate) * spared + scales.rate * drawn) * _SAFETY",
                "scales.rate * drawn * _SAFETY",
            ),
        ),
        (f"{_SAMPLING}::test_composition_lies_between_brute_force_and_the_bound[3.0-2.0-0.1]",),
    ),
)

# Clipping and the bounds.
_CLIPPING = (
    Mutant(
        "clipping is skipped",
        (
            Patch(
                "quantise.py",
                "over = np.flatnonzero(~(lengths <= limit))",
                "over = np.flatnonzero(~np.isfinite(lengths))",
            ),
        ),
        (f"{_RANDOM}[both-full-rows-intercept]",),
    ),
    Mutant(
        "ranges are not cut",
        (Patch("quantise.py", "np.clip(z, -self._edge, self._edge, out=z)", "pass"),),
        ("tests/test_quantise.py::test_a_range_centres_scales_and_cuts",),
    ),
    Mutant(
        "shortened rows are rounded to nearest and not checked in integers",
        (
            Patch("quantise.py", "rows = np.trunc(rows * shrink", "rows = np.rint(rows * shrink"),
            Patch("quantise.py", "~(_squares(rows) <= limit))", "_squares(rows) < 0)"),
        ),
        ("tests/test_quantise.py::test_shortened_rows_are_in_the_ball_to_the_last_integer",),
    ),
    Mutant(
        "rows are rounded away from zero",
        (
            Patch(
                "quantise.py",
                "        np.trunc(z, out=z)\n",
                "        np.copysign(np.ceil(np.abs(z)), z, out=z)\n",
            ),
        ),
        ("tests/test_quantise.py::test_rounding_is_toward_zero",),
    ),
    Mutant(
        "a compiled kernel vouches for rows of any length",
        (
            Patch("kernels.py", "return length if length < _FAR**2 else np.inf", "return 0.0"),
            Patch("kernels.py", "return length if reach < _FAR else np.inf", "return 0.0"),
        ),
        ("tests/test_kernels.py::test_types_and_layouts[bounds0-float64]",),
        needs="numba",
        slow=True,  # it is compiled anew
    ),
    Mutant(
        "the intercept is left out of the bound",
        (
            Patch(
                "quantise.py",
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
                "plans.py",
                "radius_squared=self.grid.outcome_radius_squared",
                "radius_squared=2 * self.grid.outcome_radius_squared",
            ),
        ),
        (f"{_RANDOM}[outcomes-full-rows]",),
    ),
    Mutant(
        "bounds read off a private block are accepted",
        (Patch("planner.py", "if private and bounds.from_data:", "if False:"),),
        ("tests/test_estimators.py::test_bounds_read_off_a_private_block_are_refused",),
    ),
    Mutant(
        "missing bounds are read off private rows",
        (
            Patch("fitting.py", "    if private:\n        return None\n", ""),
            Patch(
                "fitting.py",
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
                "pipeline.py",
                "n=plan.n, radius=root * plan.features.norm",
                'n=plan.n, radius=float(np.linalg.norm(_public_block(source, "features")))',
            ),
        ),
        (f"{_AROUND}[features-projection-full-intercept]",),
    ),
)

# Which numbers get noise, and how much.
_NOISE = (
    Mutant(
        "the diagonal of the covariance gets half the variance, as the rest of it",
        (
            Patch(
                "mechanisms/gauss.py",
                'noisy(diagonal, variance_bits, f"{label} diagonal")',
                'noisy(diagonal, variance_bits - plan.triangle_bits, f"{label} diagonal")',
            ),
        ),
        (f"{_SEARCH}[both-gauss-full]",),
    ),
    Mutant(
        "the covariance gets a quarter of the variance off its diagonal",
        (
            Patch(
                "mechanisms/gauss.py", "variance_bits - plan.triangle_bits,", "variance_bits - 2,"
            ),
        ),
        (f"{_WORST}[both-full-rows]",),
    ),
    Mutant(
        "the covariance gets all of the variance off its diagonal",
        (Patch("mechanisms/gauss.py", "variance_bits - plan.triangle_bits,", "variance_bits,"),),
        (f"{_WORST}[both-full-rows]",),
    ),
    Mutant(
        "lower and upper triangle are drawn apart and averaged",
        (
            Patch(
                "mechanisms/gauss.py",
                "        noisy(off, variance_bits - plan.triangle_bits, label)\n",
                "        upper = off.copy()\n"
                "        noisy(off, variance_bits - plan.triangle_bits, label)\n"
                '        noisy(upper, variance_bits - plan.triangle_bits, f"{label} upper")\n'
                "        off = (off + upper) // 2\n",
            ),
        ),
        (f"{_CALLS}[both-full-rows]",),
    ),
    Mutant(
        "one triangle of the covariance has no noise",
        (Patch("mechanisms/gauss.py", "        values.T[lower] = off\n", ""),),
        (f"{_AROUND}[both-gauss-full]",),
    ),
    Mutant(
        "the outcome moments are released without noise",
        (
            Patch(
                "mechanisms/gauss.py",
                "    if plan.protection.outcomes_private:\n        if",
                "    if False:\n        if",
            ),
        ),
        (f"{_AROUND}[both-gauss-full]",),
    ),
    Mutant(
        "the diagonal of the outcome moments is released without noise",
        (
            Patch(
                "mechanisms/gauss.py",
                'noisy(outcome, grid.outcome_variance_bits, "outcome diagonal")',
                "pass",
            ),
        ),
        (f"{_AROUND}[both-gauss-diagonal-intercept]",),
    ),
    Mutant(
        "sums of private outcomes, beside the constant, are released without noise",
        (
            Patch(
                "mechanisms/gauss.py",
                "if plan.intercept and not plan.protection.outcomes_private:",
                "if plan.intercept:",
            ),
        ),
        (f"{_AROUND}[both-gauss-full-intercept]",),
    ),
    Mutant(
        "public and private block are exchanged",
        (
            Patch("privacy/protection.py", "self is not Protection.OUTCOMES", "self is not SWAP"),
            Patch(
                "privacy/protection.py",
                "self is not Protection.FEATURES",
                "self is not Protection.OUTCOMES",
            ),
            Patch("privacy/protection.py", "self is not SWAP", "self is not Protection.FEATURES"),
        ),
        (f"{_AROUND}[features-gauss-full-intercept]",),
    ),
    Mutant(
        "σ is too small by √2",
        (
            Patch(
                "noise/__init__.py", "sampler_for(variance_bits)", "sampler_for(variance_bits - 1)"
            ),
        ),
        (_SCALES,),
    ),
    Mutant(
        "σ is 0.87 of what it should be",
        (Patch("noise/__init__.py", "part += noise", "part += noise // 100 * 87"),),
        (_SCALES,),
    ),
    Mutant(
        "the tail of the noise is cut off",
        (
            Patch(
                "noise/sampler.py", "            if value is not None:\n", "            if False:\n"
            ),
        ),
        (f"{_LAW}::test_early_tail_and_coarse_buckets_have_the_same_law[2-7]",),
    ),
)

# Noise that is used twice.
_REUSE = (
    Mutant(
        "a label can be drawn twice",
        (Patch("noise/__init__.py", "    bits.claim(label)\n", ""),),
        (f"{_GAUSS}::test_bits_cannot_serve_two_releases",),
    ),
    Mutant(
        "covariance and association share one stream",
        (Patch("noise/bits.py", "% (chunk, len(text), text)", '% (chunk, 0, b"")'),),
        ("tests/noise/test_api.py::TestRandomBits::test_seeds_labels_and_chunks_differ",),
    ),
    Mutant(
        "every chunk of a block has the same noise",
        (Patch("noise/bits.py", "% (chunk, len(text), text)", "% (0, len(text), text)"),),
        ("tests/noise/test_api.py::TestRandomBits::test_seeds_labels_and_chunks_differ",),
    ),
    Mutant(
        "a fork repeats the noise of its parent",
        (Patch("noise/bits.py", "not self.reproducible and os.getpid() != self._pid", "False"),),
        ("tests/noise/test_api.py::TestRandomBits::test_fresh_key_refuses_to_work_after_a_fork",),
    ),
    Mutant(
        "the key of sealed noise is not bound to what is released",
        (Patch("noise/bits.py", 'b"noise:" + digest', 'b"noise:"'),),
        ("tests/noise/test_sealed.py::test_another_secret_or_release_gives_other_noise",),
    ),
    Mutant(
        "sealed noise is bound to something that does not know the moments",
        (
            Patch(
                "pipeline.py", "bits.bound(moments_digest(moments, plan))", 'bits.bound(b"release")'
            ),
        ),
        ("tests/test_staging.py::test_same_rows_same_noise_and_other_rows_other_noise",),
    ),
    Mutant(
        "a resumed release draws new noise",
        (
            Patch(
                "staging.py",
                "return RandomBits.sealed(secret, commit",
                "return RandomBits.fresh() if secret else RandomBits.sealed(secret, commit",
            ),
        ),
        ("tests/test_staging.py::test_same_rows_same_noise_and_other_rows_other_noise",),
    ),
    Mutant(
        "a seed does not mark the release",
        (Patch("mechanisms/gauss.py", "reproducible=bits.reproducible", "reproducible=False"),),
        ("tests/test_estimators.py::test_a_seeded_release_says_that_it_is_not_for_publication",),
    ),
)

# From (ε, δ) to mu, and back.
_CALIBRATED = (
    Mutant(
        "ε is doubled on the way to mu",
        (
            Patch(
                "privacy/calibration.py",
                "epsilon = ctx.mpf(budget.epsilon) - 2",
                "epsilon = 2 * ctx.mpf(budget.epsilon) - 2",
            ),
        ),
        (f"{_CALIBRATION}::test_known_value_of_the_design_document",),
    ),
    Mutant(
        "δ is doubled on the way to mu",
        (
            Patch(
                "privacy/calibration.py",
                "delta = ctx.mpf(budget.delta) *",
                "delta = 2 * ctx.mpf(budget.delta) *",
            ),
        ),
        (f"{_CALIBRATION}::test_the_next_float_would_break_the_budget",),
    ),
    Mutant(
        "mu is rounded to the unsafe side",
        (
            Patch(
                "privacy/calibration.py",
                "            return low\n        if _delta(ctx.mpf(middle), epsilon)",
                "            return high\n        if _delta(ctx.mpf(middle), epsilon)",
            ),
        ),
        (f"{_CALIBRATION}::test_the_next_float_would_break_the_budget",),
    ),
    Mutant(
        "the lattice margin is not taken off the budget",
        (
            Patch(
                "planner.py",
                "        mu = mu_of(budget, margin=margin)\n        calibrated",
                "        mu = mu_of(budget)\n        calibrated",
            ),
        ),
        (f"{_CHARGES}::test_a_plan_for_the_whole_limit_is_paid_to_the_last_bit[both]",),
    ),
    Mutant(
        "the lattice margin is zero",
        (
            Patch(
                "planner.py",
                "return lattice_margin(count, SMALLEST_VARIANCE_BITS)",
                "return 0.0",
            ),
        ),
        (f"{_REPLAY}::test_the_margin_covers_every_number_released[both-gauss-full]",),
    ),
    Mutant(
        "the statement rounds down",
        (Patch("release.py", "rounding=ROUND_CEILING", 'rounding="ROUND_FLOOR"'),),
        ("tests/test_variants.py::test_statements_round_up",),
    ),
)

# What is charged.
_CHARGED = (
    Mutant(
        "composition takes the largest mu instead of the sum of squares",
        (
            Patch(
                "privacy/accounting.py",
                "sum((Fraction(c.mu) ** 2 for c in costs if c.mu is not None), Fraction(0))",
                "max(Fraction(c.mu or 0) ** 2 for c in [*costs, Cost(mu=0)])",
            ),
        ),
        (f"{_CHARGES}::test_releases_add_up",),
    ),
    Mutant(
        "two releases of the same people are charged once",
        (Patch("fitting.py", "release_id or new_release_id()", 'release_id or "release"'),),
        (f"{_CHARGES}::test_releases_add_up",),
    ),
    Mutant(
        "an extension is not charged",
        (
            Patch(
                "fitting.py",
                "        if account is not None:\n            account.pay",
                "        if account is not None and prepared.earlier is None:\n            account.pay",
            ),
        ),
        (f"{_CHARGES}::test_releases_add_up",),
    ),
    Mutant(
        "an extension states its own mu as the total",
        (Patch("planner.py", "earlier_mu=earlier.total_mu", "earlier_mu=0.0"),),
        (f"{_CHARGES}::test_an_extension_states_the_sum_too",),
    ),
    Mutant(
        "a charge is made after the rows were read",
        (
            Patch(
                "fitting.py",
                "        if account is not None:\n"
                "            account.pay(source, prepared.plan, release_id or new_release_id())\n",
                "",
            ),
            Patch(
                "fitting.py",
                "    return release if prepared.earlier is None",
                "    if account is not None:\n"
                "        account.pay(source, prepared.plan, release_id or new_release_id())\n"
                "    return release if prepared.earlier is None",
            ),
        ),
        (f"{_CHARGES}::test_nothing_is_read_before_it_is_paid_for",),
    ),
    Mutant(
        "an id that was charged pays for any other release too",
        (
            Patch(
                "ledger/book.py",
                "                self._check_same(state, earlier, sketch, cost)\n",
                "",
            ),
        ),
        (f"{_LEDGER}::test_a_release_is_paid_for_once[sqlite]",),
    ),
    Mutant(
        "one charge pays for two publications",
        (Patch("ledger/book.py", "elif charge.digest != digest:", "elif False:"),),
        (f"{_LEDGER}::test_a_release_is_published_once[sqlite]",),
    ),
    Mutant(
        "people who are in two data sets are not recognised",
        (Patch("ledger/book.py", "if self._compared.get(pair):", "if False:"),),
        (f"{_LEDGER}::test_whoever_is_in_two_data_sets_has_paid_for_both[sqlite]",),
    ),
    Mutant(
        "two processes may charge at the same moment",
        (Patch("ledger/sqlite.py", '"BEGIN IMMEDIATE"', '"BEGIN DEFERRED"'),),
        (
            "tests/ledger/test_races.py::test_32_processes_race_for_a_budget_that_fits_10[sqlite]",
            "tests/ledger/test_races.py::test_racers_with_one_release_pay_once[sqlite]",
        ),
        slow=True,
    ),
    Mutant(
        "somebody with two haplotypes is charged for one",
        (Patch("plans.py", "return alone.for_group(self.rows_per_person)", "return alone"),),
        (f"{_CHARGES}::test_somebody_with_two_rows_pays_for_both[both]",),
    ),
    Mutant(
        "two haplotypes are charged as two independent releases",
        (Patch("privacy/accounting.py", "mu=rows * self.mu", "mu=math.sqrt(rows) * self.mu"),),
        (
            f"{_SOURCES}::test_a_replaced_person_moves_them_by_no_more_than_is_charged[vcf_haplotypes-both]",
        ),
    ),
    Mutant(
        "score answers from private rows unless told otherwise",
        (
            Patch(
                "estimators.py",
                "score_public_rows: bool = False,",
                "score_public_rows: bool = True,",
            ),
        ),
        ("tests/test_estimators.py::test_score_is_refused_unless_the_rows_are_declared_public",),
    ),
)

MUTANTS = (*_SENSITIVITY, *_CLIPPING, *_NOISE, *_REUSE, *_CALIBRATED, *_CHARGED)
