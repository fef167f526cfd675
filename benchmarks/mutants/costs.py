"""Mistakes about costs: from (ε, δ) to mu and back, and what a ledger is charged."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["CALIBRATED", "CHARGED"]

_REPLAY = "tests/audit_replay/test_neighbours.py"
_CHARGES = "tests/audit_replay/test_charges.py"
_SOURCES = "tests/audit_replay/test_sources.py"
_LEDGER = "tests/ledger/test_ledger.py"
_CALIBRATION = "tests/privacy/test_calibration.py"
_ROUNDING = "tests/privacy/test_subsampling_rounding.py"

# From (ε, δ) to mu, and back.
CALIBRATED = (
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
        (f"{_CALIBRATION}::test_the_next_float_would_break_usual_budgets",),
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
        (f"{_CALIBRATION}::test_the_next_float_would_break_usual_budgets",),
    ),
    Mutant(
        "the lattice margin is not taken off the budget",
        (
            Patch(
                "planning/noise.py",
                "mu = mu_of(budget, margin=margin(decided))",
                "mu = mu_of(budget)",
            ),
        ),
        (f"{_CHARGES}::test_a_plan_for_the_whole_limit_is_paid_to_the_last_bit[both]",),
    ),
    Mutant(
        "the lattice margin is zero",
        (
            Patch(
                "planning/noise.py",
                "return lattice_margin(count, SMALLEST_VARIANCE_BITS)",
                "return 0.0",
            ),
        ),
        (f"{_REPLAY}::test_the_margin_covers_every_number_released[both-gauss-full]",),
    ),
    Mutant(
        "an epsilon and its margin are added in floats",
        (
            Patch(
                "privacy/calibration.py",
                "mu_exact, offset = ctx.mpf(mu), 2 * ctx.mpf(margin)",
                "if margin:\n        return epsilon_of(mu, delta) + 2 * margin\n"
                "    mu_exact, offset = ctx.mpf(mu), 2 * ctx.mpf(margin)",
            ),
        ),
        (
            f"{_CALIBRATION}::"
            "test_an_epsilon_with_its_margin_is_the_smallest_float_that_is_true[2.0-0.01]",
        ),
    ),
    Mutant(
        "a delta smaller than what the generator adds is accepted",
        (Patch("privacy/budget.py", "SMALLEST_DELTA = 1e-20", "SMALLEST_DELTA = 1e-200"),),
        (f"{_CALIBRATION}::test_the_smallest_delta_covers_the_generator",),
    ),
    Mutant(
        "the sub-sampled profile subtracts nearly equal numbers",
        (
            Patch(
                "privacy/subsampling.py",
                "near = np.log1p(np.expm1(np.minimum(epsilon, 40.0)) / rate)",
                "near = epsilon - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-epsilon))",
            ),
        ),
        (f"{_ROUNDING}::test_the_amplified_profile_is_right_to_eleven_digits[0.001-1e-06]",),
    ),
    Mutant(
        "a sub-sampled delta is not rounded up",
        (
            Patch("privacy/subsampling.py", "_SAFETY = 1 + 1e-9", "_SAFETY = 1 - 1e-9"),
            Patch("privacy/subsampling.py", "gain -= _ROUNDING * mass", "gain += _ROUNDING * mass"),
        ),
        (f"{_ROUNDING}::test_a_delta_is_never_rounded_down[1000000000-3.0-0.8-6.0]",),
    ),
    Mutant(
        "the statement rounds down",
        (Patch("released/statement.py", "rounding=ROUND_CEILING", 'rounding="ROUND_FLOOR"'),),
        ("tests/workflow/test_variants.py::test_statements_round_up",),
    ),
)

# What is charged.
CHARGED = (
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
        (
            Patch("workflow/fit.py", "release_id or new_release_id()", 'release_id or "release"'),
            Patch("workflow/fit.py", "again=bits.unbound", "again=True"),
        ),
        (f"{_CHARGES}::test_releases_add_up",),
    ),
    Mutant(
        "an id that is in the ledger draws again without a charge",
        (Patch("workflow/fit.py", "again=bits.unbound", "again=True"),),
        (f"{_CHARGES}::test_an_id_that_was_charged_draws_no_second_release",),
    ),
    Mutant(
        "an extension is not charged",
        (
            Patch(
                "workflow/fit.py",
                "        if account is not None:\n            account.pay",
                "        if account is not None and prepared.earlier is None:\n            account.pay",
            ),
        ),
        (f"{_CHARGES}::test_releases_add_up",),
    ),
    Mutant(
        "an extension states its own mu as the total",
        (Patch("planning/make.py", "earlier_mu=earlier.total_mu", "earlier_mu=0.0"),),
        (f"{_CHARGES}::test_an_extension_states_the_sum_too",),
    ),
    Mutant(
        "a charge is made after the rows were read",
        (
            Patch(
                "workflow/fit.py",
                "            account.pay(source, prepared.plan, release_id, again=bits.unbound)\n",
                "            unbound = bits.unbound\n",
            ),
            Patch(
                "workflow/fit.py",
                "    return release if prepared.earlier is None",
                "    if account is not None:\n"
                "        account.pay(source, prepared.plan, release_id, again=unbound)\n"
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
        (
            Patch(
                "planning/plan.py", "return alone.for_group(self.rows_per_person)", "return alone"
            ),
        ),
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
                "regressor.py",
                "score_public_rows: bool = False,",
                "score_public_rows: bool = True,",
            ),
        ),
        ("tests/test_regressor.py::test_score_is_refused_unless_the_rows_are_declared_public",),
    ),
)
