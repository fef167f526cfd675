"""Which data a folder of results was made from: `data.json`, written beside the scores.

Names of sets of features are the same for a user's file and for its stand-in, so that grids need not
change; what they stood for in a run is kept here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.figures.features import Data

__all__ = ["describe", "read_sources", "record_sources"]

FILE = "data.json"


def record_sources(folder: Path, data: Data, features: Iterable[str]) -> Path:
    """Write what each set of features was read from; sets of earlier runs are kept."""
    given = {"1kg": data.kg, "dbgap": data.dbgap, "mnist": data.mnist}
    found = read_sources(folder)
    for name in features:
        own = given.get(name)
        # The name alone: a path says more about a machine than a page should.
        found[name] = "" if own is None else own.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return path


def read_sources(folder: Path) -> dict[str, str]:
    """Return the user's file of each set of features, "" where none was given."""
    path = folder / FILE
    if not path.exists():
        return {}
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def describe(features: str, sources: dict[str, str]) -> str:
    """Return what a set of features is, in words."""
    own = sources.get(features)
    if own:
        return f"the user's file `{own}`"
    text = _stand_in(features) or _KNOWN.get(features, f"the set `{features}`")
    if own is None and features in ("1kg", "dbgap", "mnist"):
        text += (
            " (as without a file of the user's; these results do not record whether one was given)"
        )
    return text


def _stand_in(features: str) -> str:
    """Describe a simulated set by the recipe it is made from."""
    if features not in ("1kg", "dbgap"):
        return ""
    from experiments.figures.stand_ins import DBGAP, KG

    recipe = KG if features == "1kg" else DBGAP
    people = " + ".join(f"{number} {place}" for place, number in recipe.people)
    return (
        f"a simulated stand-in (msprime, out-of-Africa demography, {people} people, seed "
        f"{recipe.seed}): {recipe.n} haplotypes, {recipe.snps} SNPs of frequency {recipe.maf:g} or more"
    )


_KNOWN = {
    "1kg-real": "haplotypes of the 2504 people of the 1000 Genomes Project, from `../shared/data`",
    "gan": "rows from a GAN that was trained on the simulated stand-in for dbGaP",
    "gan-quick": "rows from a small, briefly trained GAN",
    "gaussian": "independent standard normal features",
    "mnist": "MNIST training images, pixels divided by 255",
    "soynam": "SNPs and measured traits of soybean lines (SoyNAM), from `../shared/data`",
    "crime": "census and police numbers of communities in the USA, from `../shared/data`",
    "drugs": "answers and drug use of people, from `../shared/data`",
    "personality": "answers to a personality inventory and ten criteria, from `../shared/data`",
}
