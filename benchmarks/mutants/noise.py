"""Mistakes about noise: which numbers get how much, and noise that is used twice."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["NOISE", "REUSE"]

_WORST = "tests/wall/test_replay.py::test_worst_neighbours_are_mu_apart_and_no_more"
_CALLS = "tests/wall/test_replay.py::test_the_calls_do_not_depend_on_the_rows"
_REPLAY = "tests/audit_replay/test_neighbours.py"
_SEARCH = f"{_REPLAY}::test_a_search_finds_neighbours_mu_apart_and_none_further"
_AROUND = f"{_REPLAY}::test_nothing_private_goes_around_the_noise"
_GAUSS = "tests/wall/test_mechanism.py"
_LAW = "tests/wall/noise/test_sampler.py::TestLaw"
_SCALES = f"{_GAUSS}::test_noise_scales_are_those_of_the_plan[full]"

# Which numbers get noise, and how much.
NOISE = (
    Mutant(
        "the outcomes themselves get half of the noise that they need",
        (
            Patch("privacy/perturbation.py", "mu / (2 * radius)", "mu / radius"),
            Patch("privacy/perturbation.py", "4 * radius_squared *", "radius_squared *"),
        ),
        (f"{_SEARCH}[outcomes-perturbed-full]",),
    ),
    Mutant(
        "the outcomes themselves get a quarter of the variance that was paid for",
        (
            Patch(
                "wall/mechanism.py",
                "variance_bits=noise.variance_bits,",
                "variance_bits=noise.variance_bits - 2,",
            ),
        ),
        (f"{_SEARCH}[outcomes-perturbed-full]",),
    ),
    Mutant(
        "the outcomes of a row share one draw of noise",
        (
            Patch(
                "wall/mechanism.py",
                'noisy = np.multiply(rows.outcomes, noise.unit, order="C")',
                'whole = np.multiply(rows.outcomes, noise.unit, order="C")\n'
                "    noisy = 0 * whole[:, :1]",
            ),
            Patch(
                "wall/mechanism.py",
                "    noisy += 1 <<",
                "    noisy = noisy + whole\n    noisy += 1 <<",
            ),
        ),
        (f"{_AROUND}[outcomes-perturbed-full]",),
    ),
    Mutant(
        "the diagonal of the covariance gets half the variance, as the rest of it",
        (
            Patch(
                "wall/mechanism.py",
                'noisy(diagonal, variance_bits, f"{label} diagonal")',
                'noisy(diagonal, variance_bits - plan.triangle_bits, f"{label} diagonal")',
            ),
        ),
        (f"{_SEARCH}[both-gauss-full]",),
    ),
    Mutant(
        "the covariance gets a quarter of the variance off its diagonal",
        (Patch("wall/mechanism.py", "variance_bits - plan.triangle_bits,", "variance_bits - 2,"),),
        (f"{_WORST}[both-full-rows]",),
    ),
    Mutant(
        "the covariance gets all of the variance off its diagonal",
        (Patch("wall/mechanism.py", "variance_bits - plan.triangle_bits,", "variance_bits,"),),
        (f"{_WORST}[both-full-rows]",),
    ),
    Mutant(
        "lower and upper triangle are drawn apart and averaged",
        (
            Patch(
                "wall/mechanism.py",
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
        (Patch("wall/mechanism.py", "        values.T[lower] = off\n", ""),),
        (f"{_AROUND}[both-gauss-full]",),
    ),
    Mutant(
        "the outcome moments are released without noise",
        (
            Patch(
                "wall/mechanism.py",
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
                "wall/mechanism.py",
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
                "wall/mechanism.py",
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
                "wall/noise/__init__.py",
                "sampler_for(variance_bits)",
                "sampler_for(variance_bits - 1)",
            ),
        ),
        (_SCALES,),
    ),
    Mutant(
        "σ is 0.87 of what it should be",
        (Patch("wall/noise/__init__.py", "part += noise", "part += noise // 100 * 87"),),
        (_SCALES,),
    ),
    Mutant(
        "the tail of the noise is cut off",
        (
            Patch(
                "wall/noise/sampler.py",
                "            if value is not None:\n",
                "            if False:\n",
            ),
        ),
        (f"{_LAW}::test_early_tail_and_coarse_buckets_have_the_same_law[2-7]",),
    ),
)

# Noise that is used twice.
REUSE = (
    Mutant(
        "a label can be drawn twice",
        (Patch("wall/noise/__init__.py", "    bits.claim(label)\n", ""),),
        (f"{_GAUSS}::test_bits_cannot_serve_two_releases",),
    ),
    Mutant(
        "covariance and association share one stream",
        (Patch("wall/noise/bits.py", "% (chunk, len(text), text)", '% (chunk, 0, b"")'),),
        ("tests/wall/noise/test_api.py::TestRandomBits::test_seeds_labels_and_chunks_differ",),
    ),
    Mutant(
        "every chunk of a block has the same noise",
        (Patch("wall/noise/bits.py", "% (chunk, len(text), text)", "% (0, len(text), text)"),),
        ("tests/wall/noise/test_api.py::TestRandomBits::test_seeds_labels_and_chunks_differ",),
    ),
    Mutant(
        "a sample of any size is drawn from one stream",
        (
            Patch(
                "wall/noise/bits.py",
                "self.stream(label, next(chunks)).words(",
                "stream.words(",
            ),
            Patch(
                "wall/noise/bits.py",
                "        chunks = itertools.count()",
                "        stream = self.stream(label, 0)\n        chunks = itertools.count()",
            ),
        ),
        ("tests/wall/noise/test_streams.py::test_a_sample_takes_a_stream_for_every_32768_rows",),
    ),
    Mutant(
        "a fork repeats the noise of its parent",
        (
            Patch(
                "wall/noise/bits.py", "not self.reproducible and os.getpid() != self._pid", "False"
            ),
        ),
        (
            "tests/wall/noise/test_api.py::TestRandomBits::test_fresh_key_refuses_to_work_after_a_fork",
        ),
    ),
    Mutant(
        "the key of sealed noise is not bound to what is released",
        (
            Patch(
                "wall/noise/bits.py",
                "_derived(secret, purpose + digest)",
                "_derived(secret, purpose)",
            ),
        ),
        ("tests/wall/noise/test_sealed.py::test_another_secret_or_release_gives_other_noise",),
    ),
    Mutant(
        "sealed noise is bound to something that does not know the moments",
        (
            Patch(
                "workflow/pipeline.py",
                "bits.bound(moments_digest(moments, plan))",
                'bits.bound(b"release")',
            ),
        ),
        ("tests/workflow/test_resume.py::test_same_rows_same_noise_and_other_rows_other_noise",),
    ),
    Mutant(
        "a resumed release draws new noise",
        (
            Patch(
                "workflow/resume.py",
                "return RandomBits.sealed(\n            secret, commit",
                "return RandomBits.fresh()\n        RandomBits.sealed(\n            secret, commit",
            ),
        ),
        ("tests/workflow/test_resume.py::test_same_rows_same_noise_and_other_rows_other_noise",),
    ),
    Mutant(
        "a charge that is resumed draws for other rows",
        (
            Patch(
                "workflow/resume.py",
                "same = hmac.compare_digest(self._place.read(name), mark)",
                "same = True",
            ),
        ),
        ("tests/workflow/test_resume.py::test_one_charge_draws_for_one_set_of_rows_only",),
    ),
    Mutant(
        "a seed does not mark the release",
        (Patch("wall/mechanism.py", "reproducible=bits.reproducible", "reproducible=False"),),
        ("tests/test_regressor.py::test_a_seeded_release_says_that_it_is_not_for_publication",),
    ),
    Mutant(
        "a seed does not mark a release of several rounds",
        (Patch("workflow/pipeline.py", "reproducible=bits.reproducible", "reproducible=False"),),
        ("tests/test_regressor.py::test_a_seeded_release_says_that_it_is_not_for_publication",),
    ),
)
