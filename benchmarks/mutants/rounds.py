"""Mistakes about several rounds."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["ROUNDS"]

_REPLAY = "tests/audit_replay/test_neighbours.py"
_WAY = "both-rounds-full-intercept"
_SEARCH = f"{_REPLAY}::test_a_search_finds_neighbours_mu_apart_and_none_further[{_WAY}]"
_AROUND = f"{_REPLAY}::test_nothing_private_goes_around_the_noise[{_WAY}]"
_BUDGETS = "tests/privacy/test_rounds.py"
_RESIDUALS = "tests/rows/test_residuals.py"
_WORKFLOW = "tests/workflow/test_rounds.py"

_LOOK = Patch(
    "workflow/rounds.py",
    "    if bits.unbound:\n        last = number",
    "    _SEEN.append(moments)\n    if bits.unbound:\n        last = number",
)
_SEEN = Patch(
    "workflow/rounds.py",
    "class RowWalk(Protocol):",
    "_SEEN: list[Moments] = []\n\n\nclass RowWalk(Protocol):",
)
_UNCHECKED = Patch(
    "wall/mechanism.py",
    "if residuals is not None and residuals.of_features and not plan.protection.outcomes_private:",
    "if False:",
)

ROUNDS = (
    Mutant(
        "the clip of a round is read off the private residuals",
        (
            _LOOK,
            _SEEN,
            Patch(
                "workflow/rounds.py",
                "clip_of_round(plan, step.clip)",
                "clip_of_round(plan, float(np.trace(np.atleast_2d(_SEEN[-1].outcome))) * 1e-13)",
            ),
        ),
        (_AROUND,),
    ),
    Mutant(
        "the coefficients of a round come from private numbers",
        (
            _LOOK,
            _SEEN,
            Patch(
                "workflow/rounds.py",
                "residual_grid(own, step.coefficients)",
                "residual_grid(own, step.coefficients + 1e-13 * _SEEN[-1].association)",
            ),
        ),
        (_AROUND,),
    ),
    Mutant(
        "a residual is scaled by the longest of its block",
        (
            Patch(
                "rows/residuals.py",
                "self._outcomes(outcomes[part], out[part], predicted)",
                "self._outcomes(outcomes[part], out[part], predicted)\n"
                "            out[part] = np.trunc(out[part] * 1e5 / max(1.0, abs(out[part]).max()))",
            ),
        ),
        (f"{_RESIDUALS}::test_the_same_bits_for_every_block_and_thread",),
    ),
    Mutant(
        "rows of features are not shortened after their residuals were taken",
        (
            Patch(
                "rows/moments.py",
                "shorten_rows(x[:, : self.plan.d], limit, lengths)",
                "shorten_rows(x[:, : self.plan.d], 64 * limit, lengths)",
            ),
        ),
        (f"{_RESIDUALS}::test_a_search_does_not_beat_the_sensitivity", _SEARCH),
    ),
    Mutant(
        "the first round is not charged",
        (
            Patch(
                "privacy/rounds.py",
                "return (first, *[(1 - first) / (count - 1)] * (count - 1))",
                "return (first, *[1 / (count - 1)] * (count - 1))",
            ),
            Patch(
                "privacy/rounds.py",
                "for grid in self.grids),\n            Fraction(0),",
                "for grid in self.grids[1:]),\n            Fraction(0),",
            ),
        ),
        (f"{_BUDGETS}::test_shares_add_up_and_nothing_more_is_spent", _SEARCH),
    ),
    Mutant(
        "every round has the noise of the first, which has a larger share",
        (
            Patch(
                "workflow/rounds.py",
                "return round_plan(plan, number, step.clip, residuals=step.of_features)",
                "return round_plan(plan, 0, step.clip, residuals=step.of_features)",
            ),
        ),
        (_SEARCH,),
    ),
    Mutant(
        "noise is used again in the next round",
        (
            Patch("wall/mechanism.py", 'prefix=f"round {number + 1} ",', 'prefix="",'),
            Patch(
                "wall/noise/bits.py",
                "            if label in self._used:\n",
                "            if False:\n",
            ),
        ),
        (f"{_WORKFLOW}::test_no_two_rounds_have_the_same_noise",),
    ),
    Mutant(
        "the lattice margin counts the numbers of one round",
        (Patch("planning/noise.py", "    count *= rounds\n", ""),),
        (f"{_BUDGETS}::test_the_margin_counts_the_numbers_of_all_rounds",),
    ),
    Mutant(
        "a resumed round takes residuals of new coefficients",
        (
            Patch(
                "workflow/rounds.py",
                "step = kept.step(number) if number else None",
                "step = None",
            ),
        ),
        (f"{_WORKFLOW}::test_a_resumed_run_does_not_take_another_step",),
    ),
    Mutant(
        "the noise of a round does not depend on its coefficients",
        (
            Patch(
                "wall/sealing.py",
                "(residuals.integers, residuals.bits, residuals.clip)",
                "()",
            ),
        ),
        (
            "tests/wall/test_sealing.py::test_the_digest_of_a_round_says_what_residuals_are_taken_of",
        ),
    ),
    Mutant(
        "residuals of public outcomes are taken as public",
        (
            Patch(
                "planning/rounds.py",
                "private = residuals and plan.protection is Protection.FEATURES",
                "private = False",
            ),
            _UNCHECKED,
        ),
        (f"{_REPLAY}::test_nothing_private_goes_around_the_noise[features-rounds-full-intercept]",),
    ),
    Mutant(
        "the wall lets residuals of public outcomes out without noise",
        (_UNCHECKED,),
        (f"{_WORKFLOW}::test_residuals_of_public_outcomes_are_never_released_without_noise",),
    ),
    Mutant(
        "a file with more rounds than were paid for is read",
        (
            Patch(
                "released/round_release.py",
                'raise ValueError("there are more rounds than the plan paid for")',
                "pass",
            ),
        ),
        (f"{_WORKFLOW}::test_rounds_that_do_not_fit_the_plan_are_refused",),
    ),
)
