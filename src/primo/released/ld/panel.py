"""Correlations from a public panel for a release that holds the diagonal: scaled, shrunk, and said so.

A panel of N people knows a correlation r with variance (1 − r²)²/N. People of the cohort come from
another population, more or less, and drift between the two is like further sampling: it moves allele
frequencies by √(F·f(1 − f)) and correlations accordingly. The released frequencies tell how large it is,
so that the panel counts as one of N′ people, 1/N′ = 1/N + 2F,
and its correlations are shrunk toward none by the share

    λ = Σ (1 − r²)²/N′ / Σ r²      over the pairs of a block, at most 1

(Schäfer and Strimmer 2005). Variances are the cohort's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.released.blocks import ReleasedBlocks
from primo.released.estimate.blocks.diagonal import shrunk_variances
from primo.released.estimate.means import shrunk_means
from primo.released.ld.align import aligned
from primo.released.moments import ReleasedMoments
from primo.variants import Variants

__all__ = [
    "LdPanel",
    "PanelLinkage",
    "check_diagonal",
    "ld_panel",
    "linked_or_not",
    "shrunk_correlations",
    "with_ld_panel",
]

Floats = NDArray[np.float64]
R = TypeVar("R", bound=ReleasedMoments)

LIKELY = 3.0  # times the drift that any two human populations have, beyond which a panel is refused
MOST_DRIFT = 0.15 * LIKELY  # 2F between continents is up to about 0.15
ENOUGH = 20  # variants, below which frequencies say nothing about the panel as a whole


@dataclass(frozen=True, kw_only=True, eq=False)
class LdPanel:
    """Correlations inside blocks of variants among public people; made by `ld_panel`."""

    variants: Variants
    people: int
    starts: NDArray[np.intp]  # (m + 1,) borders of the blocks
    correlations: tuple[Floats, ...]  # m symmetric (w, w)
    frequency: Floats  # (d,) of the counted alleles


@dataclass(frozen=True, kw_only=True, eq=False)
class PanelLinkage:
    """How the correlations of a panel were used; all of it is public, and to be stated."""

    people: int  # N
    drift: float  # 2F, by frequencies of panel and cohort; 0 if no larger than chance
    effective_people: float  # N′
    shrinkage: Floats  # (m,) λ of every block
    swapped: int  # variants whose panel counts the other allele

    def sentence(self) -> str:
        """Say what was done, for a report."""
        turned = (
            f"; {self.swapped} variants were counted by the other allele" if self.swapped else ""
        )
        return (
            f"correlations are those of a public panel of {self.people} people, taken for "
            f"{self.effective_people:.0f} because of how its allele frequencies differ from the "
            f"cohort's, and shrunk by {100 * float(np.median(self.shrinkage)):.1f} % (median of "
            f"{len(self.shrinkage)} blocks){turned}"
        )


def ld_panel(panel: NDArray[np.generic], variants: Variants, starts: NDArray[np.intp]) -> LdPanel:
    """Compute the correlations of a public panel inside blocks.

    Parameters
    ----------
    panel
        Allele counts of *public* people, (people, variants), nothing missing.
    variants
        What is counted.
    starts
        Borders of the blocks (`find_ld_blocks`).

    Notes
    -----
    Guarantee: reads public people only; costs no privacy. Cost: O(people · Σ w²).

    Examples
    --------
    >>> import numpy as np
    >>> from primo.released.ld.panel import ld_panel
    >>> from primo.variants import Variants
    >>> panel = np.random.default_rng(0).binomial(2, 0.4, size=(500, 4))
    >>> variants = Variants(
    ...     names=("rs0", "rs1", "rs2", "rs3"), chromosome=("1",) * 4, position=np.arange(1, 5),
    ...     counted=("A",) * 4, other=("G",) * 4,
    ... )
    >>> known = ld_panel(panel, variants, np.array([0, 2, 4]))
    >>> known.people, [part.shape for part in known.correlations]
    (500, [(2, 2), (2, 2)])
    """
    counts = np.asarray(panel)
    if counts.ndim != 2 or counts.shape[1] != len(variants) or len(counts) < 3:
        raise InputError(
            Argument("panel"),
            f" must hold a column for each of {len(variants)} variants and at least three people",
        )
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise InputError(
            Argument("panel"), " has missing values", remedy="leave out or impute those variants"
        )
    if starts[0] != 0 or starts[-1] != len(variants) or (np.diff(starts) < 1).any():
        raise InputError(f"the blocks do not cover {len(variants)} variants, each once")
    means = counts.mean(axis=0, dtype=np.float64)
    found = []
    for a, b in pairwise(starts):
        columns = counts[:, a:b] - means[a:b]
        length = np.linalg.norm(columns, axis=0)
        columns = np.divide(columns, length, out=columns, where=length > 0)
        matrix = columns.T @ columns
        np.fill_diagonal(matrix, 1.0)
        found.append(matrix)
    people = len(counts) // 2 if variants.haplotypes else len(counts)
    return LdPanel(
        variants=variants,
        people=people,
        starts=np.asarray(starts, dtype=np.intp),
        correlations=tuple(found),
        frequency=means / variants.copies,
    )


def shrunk_correlations(
    correlations: tuple[Floats, ...], people: float
) -> tuple[tuple[Floats, ...], Floats]:
    """Shrink sample correlations toward none; return them and the shares λ, (m,)."""
    found, shares = [], np.zeros(len(correlations))
    for k, matrix in enumerate(correlations):
        squared = matrix**2
        apart = ~np.eye(len(matrix), dtype=np.bool_)
        total = float(squared[apart].sum())
        if total > 0:
            shares[k] = min(1.0, float(((1 - squared[apart]) ** 2).sum()) / people / total)
        found.append((1 - shares[k]) * matrix + shares[k] * np.eye(len(matrix)))
    return tuple(found), shares


def with_ld_panel(release: R, variants: Variants, panel: LdPanel) -> tuple[R, PanelLinkage]:
    """Give a release that holds the diagonal the correlations of a public panel.

    Parameters
    ----------
    release
        A release with ``covariance="panel"`` or "none": the diagonal and the sums. One with blocks has
        the cohort's own correlations and is refused.
    variants
        What its features count; all of them must be in the panel, in the panel's order.
    panel
        Public correlations (`ld_panel`).

    Returns
    -------
    release
        The same release with blocks whose variances are the cohort's and whose correlations are the
        panel's; `release.coefficients()` uses them.
    linkage
        How much the correlations were shrunk, and why.

    Notes
    -----
    Guarantee: post-processing of a release; costs no privacy. A panel must not share people with the
    cohort: its numbers are taken to be public.
    """
    blocks = release.blocks
    check_diagonal(release, variants)
    assert blocks is not None
    sign = aligned(panel.variants, variants)
    frequency = np.where(sign > 0, panel.frequency, 1 - panel.frequency)
    drift = _drift(release, variants, frequency, panel.people)
    effective = 1 / (1 / panel.people + drift)
    signed = tuple(
        matrix * np.outer(sign[a:b], sign[a:b])
        for matrix, (a, b) in zip(panel.correlations, pairwise(panel.starts), strict=True)
    )
    shrunk, shares = shrunk_correlations(signed, effective)
    n = release.plan.n
    means, spread = shrunk_means(blocks.sums / n, blocks.sums_sigma / n)
    about = n * (means**2 + spread)
    diagonal = np.concatenate([np.diagonal(part) for part in blocks.covariance]) - about
    noise = np.repeat(blocks.sigma, np.diff(blocks.starts)) ** 2
    f = np.clip(frequency, 0.01, 0.99)
    variances, _ = shrunk_variances(diagonal, noise, f * (1 - f) / release.plan.features.scale**2)
    root = np.sqrt(variances)
    # Blocks are about the public centres, as all that is released: what the estimator takes out for
    # the means is put in.
    covariance = tuple(
        matrix * np.outer(root[a:b], root[a:b])
        + n * (np.outer(means[a:b], means[a:b]) + np.diag(spread[a:b]))
        for matrix, (a, b) in zip(shrunk, pairwise(panel.starts), strict=True)
    )
    linked = ReleasedBlocks(
        starts=panel.starts,
        covariance=covariance,
        sigma=np.zeros(len(covariance)),
        sums=blocks.sums,
        sums_sigma=blocks.sums_sigma,
    )
    return replace(release, blocks=linked), PanelLinkage(
        people=panel.people,
        drift=drift,
        effective_people=effective,
        shrinkage=shares,
        swapped=int((sign < 0).sum()),
    )


class OtherFrequenciesError(InputError):
    """The allele frequencies of a panel are not those of the cohort, by released numbers."""


def linked_or_not(release: R, variants: Variants | None, panel: LdPanel) -> tuple[R, str]:
    """Return a release with a panel's correlations and a sentence about them, for publication.

    Where released frequencies show that the panel is of other people or counts other alleles, it is not
    used: the release is paid for, and its marginal associations are worth publishing.
    """
    if variants is None:
        raise InputError(
            "a panel's correlations are for a release of variants",
            argument="panel",
            remedy="say which variants the features are",
        )
    try:
        linked, linkage = with_ld_panel(release, variants, panel)
    except OtherFrequenciesError as error:
        return release, (
            f"the public panel was not used: {error.message}, so coefficients are made from each "
            "variant alone. Check that it counts the same alleles, on the same strand, and is of the "
            "same population; a corrected panel is used at no cost by `primo score-file RELEASE "
            "--ld-panel PANEL`"
        )
    return linked, linkage.sentence()


def check_diagonal(release: ReleasedMoments, variants: Variants) -> None:
    """Refuse a release that a panel's correlations are not for."""
    blocks, d = release.blocks, release.plan.d
    if blocks is None or len(blocks.sigma) != d or len(variants) != d:
        raise InputError(
            "a panel's correlations are for a release of variants that holds the diagonal only",
            argument="panel",
            remedy=Message.of(
                "release with ", Argument("covariance", "panel"), ", all features variants"
            ),
        )


def _drift(release: R, variants: Variants, panel: Floats, people: int) -> float:
    """2F between panel and cohort beyond sampling and noise; refuse a panel of other alleles."""
    plan, blocks = release.plan, release.blocks
    assert blocks is not None
    if not plan.intercept or plan.d < ENOUGH:
        return 0.0
    copies = variants.copies
    scale = plan.features.scale
    cohort = (plan.features.centre + scale * blocks.sums / plan.n) / copies
    noise = (scale * blocks.sums_sigma / (plan.n * copies)) ** 2
    f = np.clip(panel, 0.01, 0.99)
    vary = f * (1 - f)
    ratio = ((cohort - panel) ** 2 - noise) / vary
    # Where noise is large a frequency says little: weights by what it says.
    weights = 1 / (0.05 + noise / vary) ** 2
    found = 2 * float(weights @ ratio / weights.sum())
    chance = 1 / people + 2 / (copies * plan.n)
    sure = 2 * float(np.sqrt(2 * (weights**2 @ (noise / vary) ** 2))) / float(weights.sum())
    if found - LIKELY * sure > MOST_DRIFT:
        raise OtherFrequenciesError(
            "the allele frequencies of the panel are not those of the cohort",
            argument="panel",
            remedy="Check that the panel counts the same alleles, on the same strand, and is of the "
            "same population",
        )
    return max(found - chance, 0.0)
