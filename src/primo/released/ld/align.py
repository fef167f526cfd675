"""The variants of a panel and of a cohort, compared: same places, same alleles, which one is counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.variants import Variants

__all__ = ["aligned"]

_OPPOSITE = str.maketrans("ACGTacgt", "TGCATGCA")


def aligned(
    panel: Variants, cohort: Variants, *, where: str = "the release"
) -> NDArray[np.float64]:
    """Return 1 for variants whose panel counts the cohort's allele, −1 where it counts the other.

    `where` is what messages call the cohort's variants.
    Refuses, with the remedy, a panel with other variants, of another build (same names at other
    places), of the opposite strand, or with other alleles.
    """
    if len(panel) != len(cohort):
        raise InputError(
            f"the panel has {len(panel)} variants and {where} {len(cohort)}",
            argument="panel",
            remedy=f"Extract the variants of {where} from the panel, in the same order",
        )
    sign = np.ones(len(cohort))
    for i, name in enumerate(cohort.names):
        here = (_chromosome(cohort.chromosome[i]), int(cohort.position[i]))
        there = (_chromosome(panel.chromosome[i]), int(panel.position[i]))
        if here != there:
            raise _elsewhere(panel, cohort, i, where)
        ours = (cohort.counted[i].upper(), cohort.other[i].upper())
        theirs = (panel.counted[i].upper(), panel.other[i].upper())
        if ours == theirs:
            continue
        if ours == theirs[::-1]:
            sign[i] = -1.0
            continue
        turned = (theirs[0].translate(_OPPOSITE), theirs[1].translate(_OPPOSITE))
        if turned in (ours, ours[::-1]):
            raise InputError(
                f"variant {name!r} has the alleles {'/'.join(ours)} in {where} and "
                f"{'/'.join(theirs)} in the panel: they are of opposite strands",
                argument="panel",
                remedy="Bring both to the same strand, for example with plink2 --ref-from-fa",
            )
        raise InputError(
            f"variant {name!r} has the alleles {'/'.join(ours)} in {where} and "
            f"{'/'.join(theirs)} in the panel",
            argument="panel",
            remedy="Leave out such variants, or take a panel that has these alleles",
        )
    return sign


def _elsewhere(panel: Variants, cohort: Variants, i: int, where: str) -> InputError:
    name = cohort.names[i]
    if panel.names[i] == name and panel.position[i] != cohort.position[i]:
        return InputError(
            f"variant {name!r} lies at {cohort.position[i]} in {where} and at "
            f"{panel.position[i]} in the panel: they are of different genome builds",
            argument="panel",
            remedy="Lift the panel to the build of the cohort",
        )
    return InputError(
        f"variant {i + 1} is {name!r} in {where} and {panel.names[i]!r} in the panel",
        argument="panel",
        remedy=f"Extract the variants of {where} from the panel, in the same order",
    )


def _chromosome(name: str) -> str:
    return name[3:] if name.lower().startswith("chr") else name
