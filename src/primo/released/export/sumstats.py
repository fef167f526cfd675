"""Summary statistics as files that other programs read: GWAS-SSF, LDSC, regenie, plink2.

One file per outcome, in a new folder, beside `guarantee.yaml`, which states the guarantee; GWAS-SSF
files have a metadata file each, which states it as well. The columns of each format are in
docs/genotypes.md.

Guarantee: post-processing of a release; costs no privacy.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primo._util.atomic import new_folder, publish
from primo._util.writers import escaped
from primo.errors import Argument, InputError
from primo.released.export.scoring import safe_names, text_file
from primo.released.export.sumstats_metadata import privacy_facts, ssf_metadata, write_yaml
from primo.released.marginal import MarginalEffects, SummaryStatistics
from primo.variants import Variants

__all__ = ["FORMATS", "SumstatsFiles", "write_summary_statistics"]

_NUMBER = "%.7g"
_ABSENT = "NA"
_ABSENT_SSF = "#NA"

#: X, Y and mitochondria as GWAS-SSF numbers them. PLINK's 25 is the part of X that Y shares, its 26 MT.
_CHROMOSOMES = {
    **{str(number): number for number in range(1, 25)},
    "X": 23,
    "XY": 23,
    "PAR1": 23,
    "PAR2": 23,
    "25": 23,
    "Y": 24,
    "MT": 25,
    "M": 25,
    "26": 25,
}


@dataclass(frozen=True, kw_only=True)
class SumstatsFiles:
    """What was written."""

    paths: tuple[Path, ...]  # one per outcome
    guarantee: Path  # states the guarantee
    written: int  # variants in each file
    hidden: int  # variants left out because the noise hides how much they vary
    unfit: tuple[str, ...]  # variants left out because the format has no place for them


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lines:
    """What the lines of a file are made of, with the variants that are written, in their order."""

    statistics: SummaryStatistics
    effects: MarginalEffects
    places: NDArray[np.intp]

    def numbers(self, values: NDArray[np.float64] | None, absent: str = _ABSENT) -> Iterator[str]:
        if values is None:
            return (absent for _ in self.places)
        chosen = values[self.places].tolist()
        return (absent if math.isnan(value) else _NUMBER % value for value in chosen)

    def words(self, values: Sequence[str]) -> Iterator[str]:
        return (escaped(values[i]) for i in self.places.tolist())

    def p_values(self) -> Iterator[str]:
        return map(p_text, self.effects.neg_log10_p[self.places].tolist())

    @property
    def variants(self) -> Variants:
        return self.statistics.variants

    @property
    def positions(self) -> Iterator[str]:
        return map(str, self.variants.position[self.places].tolist())


@dataclass(frozen=True, kw_only=True)
class _Format:
    """A format: how files are called, what separates columns, and what the columns are."""

    ending: str
    separator: str
    columns: Callable[[_Lines], dict[str, Iterator[str]]]


def write_summary_statistics(
    statistics: SummaryStatistics,
    folder: str | os.PathLike[str],
    *,
    format: str = "gwas-ssf",
    outcomes: Sequence[str] | None = None,
    genome_build: str = "NR",
    digest: str | None = None,
) -> SumstatsFiles:
    """Write one file per outcome to a new folder, and `guarantee.yaml`, which states the guarantee.

    Parameters
    ----------
    statistics
        What `summary_statistics` gave.
    folder
        Where the files appear, together or not at all; it must not exist.
    format
        "gwas-ssf", "ldsc", "regenie" or "plink2".
    outcomes
        Names of the outcomes to write; all if None.
    genome_build
        Of the positions, for example GRCh38; NR means not reported.
    digest
        SHA-256 of the bundle's manifest, written into `guarantee.yaml` if given.

    Notes
    -----
    Variants that have no effect (`SummaryStatistics.determined`), or that GWAS-SSF cannot express
    (alleles other than A, C, G, T; no position; a chromosome that is none of 1–22, X, Y, MT), are left
    out and counted in the result. Cost: variants × outcomes lines of text.
    """
    chosen = _format(format)
    if not re.fullmatch(r"[A-Za-z0-9._-]+", genome_build):
        raise InputError(
            Argument("genome_build", genome_build), ": give a name such as GRCh38, or NR"
        )
    names = statistics.outcome_names if outcomes is None else tuple(outcomes)
    target = Path(folder)
    places, unfit = _places(statistics, format)
    files = [f"{name}{chosen.ending}" for name in safe_names(names, longest=100)]
    facts = privacy_facts(statistics, digest)
    with new_folder(target) as workspace:
        made = workspace / "sumstats"
        made.mkdir()
        for file, name in zip(files, names, strict=True):
            lines = _Lines(statistics=statistics, effects=statistics.outcome(name), places=places)
            _write_table(made / file, chosen, lines)
            if format == "gwas-ssf":
                meta = ssf_metadata(made / file, name, statistics, genome_build, facts)
                write_yaml(made / f"{file}-meta.yaml", meta)
        write_yaml(made / "guarantee.yaml", facts)
        publish(made, target)
    return SumstatsFiles(
        paths=tuple(target / file for file in files),
        guarantee=target / "guarantee.yaml",
        written=len(places),
        hidden=int((~statistics.determined).sum()),
        unfit=unfit,
    )


def frequencies_of(statistics: SummaryStatistics) -> NDArray[np.float64]:
    """Return allele frequencies by released means; without an intercept, by the public centres."""
    if statistics.frequency is not None:
        return statistics.frequency
    place = {name: i for i, name in enumerate(statistics.release.feature_names)}
    places = [place[name] for name in statistics.variants.names]
    centre = statistics.release.plan.features.centre[places]
    return np.asarray(np.clip(centre / statistics.variants.copies, 0.0, 1.0))


def p_text(neg_log10: float) -> str:
    """Write a p-value with six digits, also where it is smaller than any float."""
    exponent = int(np.floor(-neg_log10))
    mantissa = 10 ** (-neg_log10 - exponent)
    return f"{mantissa:.5f}e{exponent}"


def _format(name: str) -> _Format:
    if name not in FORMATS:
        raise InputError(
            Argument("format", name), " is unknown", remedy=f"choose one of {', '.join(FORMATS)}"
        )
    return FORMATS[name]


def _places(statistics: SummaryStatistics, format: str) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Return which variants are written, in which order, and the names of those with no place."""
    variants, known = statistics.variants, statistics.determined
    if format != "gwas-ssf":
        return np.flatnonzero(known), ()
    fit = np.array([_is_ssf(variants, i) for i in range(len(variants))])
    places = np.flatnonzero(known & fit)
    unfit = tuple(variants.names[i] for i in np.flatnonzero(known & ~fit))
    if not len(places):
        raise InputError(
            f"none of the variants can be written in GWAS-SSF, for example {unfit[0]!r}: alleles must "
            "be of A, C, G, T, with a position on chromosome 1 to 22, X, Y or MT",
            argument="format",
            value=format,
            remedy="Choose another format",
        )
    chromosome = np.array([chromosome_number(variants.chromosome[i]) or 0 for i in places])
    return places[np.lexsort((variants.position[places], chromosome))], unfit


def chromosome_number(name: str) -> int | None:
    """Return a chromosome as GWAS-SSF numbers it; None if it has no number there."""
    return _CHROMOSOMES.get(re.sub("^chr", "", name, flags=re.IGNORECASE).upper())


def _is_ssf(variants: Variants, i: int) -> bool:
    alleles = re.fullmatch("[ACGTacgt]+", variants.counted[i]) and re.fullmatch(
        "[ACGTacgt]+", variants.other[i]
    )
    known = chromosome_number(variants.chromosome[i]) is not None
    return bool(alleles) and known and variants.position[i] > 0


def _write_table(path: Path, chosen: _Format, lines: _Lines) -> None:
    columns = chosen.columns(lines)
    with text_file(path) as file:
        file.write(chosen.separator.join(columns) + "\n")
        file.writelines(
            chosen.separator.join(cells) + "\n" for cells in zip(*columns.values(), strict=True)
        )


def _ssf(lines: _Lines) -> dict[str, Iterator[str]]:
    statistics, variants, effects = lines.statistics, lines.variants, lines.effects
    numbers = [str(chromosome_number(name)) for name in variants.chromosome]
    ids = [
        f"{number}_{position}_{other}_{counted}"
        for number, position, other, counted in zip(
            numbers, variants.position.tolist(), variants.other, variants.counted, strict=True
        )
    ]
    rsid = [name if re.fullmatch("rs[0-9]+", name) else _ABSENT_SSF for name in variants.names]
    lower, upper = effects.interval()
    return {
        "chromosome": lines.words(numbers),
        "base_pair_location": lines.positions,
        "effect_allele": lines.words(variants.counted),
        "other_allele": lines.words(variants.other),
        "beta": lines.numbers(effects.effect),
        "standard_error": lines.numbers(effects.standard_error),
        "effect_allele_frequency": lines.numbers(frequencies_of(statistics)),
        "p_value": lines.p_values(),
        "variant_id": lines.words(ids),
        "rsid": lines.words(rsid),
        "ci_upper": lines.numbers(upper),
        "ci_lower": lines.numbers(lower),
        "n": (str(statistics.n) for _ in lines.places),
        "effective_n": lines.numbers(effects.effective_n, _ABSENT_SSF),
        "z_score": lines.numbers(effects.z),
        "neg_log_10_p_value": lines.numbers(effects.neg_log10_p),
        "effect_allele_frequency_noise": lines.numbers(statistics.frequency_error, _ABSENT_SSF),
    }


def _ldsc(lines: _Lines) -> dict[str, Iterator[str]]:
    if np.isnan(lines.effects.effective_n[lines.places]).any():
        raise InputError(
            f"the noise hides how much outcome {lines.effects.outcome!r} varies, so its effective n, "
            "which is the N of an LDSC file, is not determined",
            argument="format",
            value="ldsc",
            remedy="Choose another format, which does without it, or leave this outcome out; next time "
            "release with narrower bounds of the outcomes, a larger epsilon, or noise on the "
            "associations instead of the outcomes",
        )
    return {
        "SNP": lines.words(lines.variants.names),
        "A1": lines.words(lines.variants.counted),
        "A2": lines.words(lines.variants.other),
        "Z": lines.numbers(lines.effects.z),
        "N": lines.numbers(lines.effects.effective_n),
    }


def _regenie(lines: _Lines) -> dict[str, Iterator[str]]:
    variants, effects = lines.variants, lines.effects
    return {
        "CHROM": lines.words(variants.chromosome),
        "GENPOS": lines.positions,
        "ID": lines.words(variants.names),
        "ALLELE0": lines.words(variants.other),
        "ALLELE1": lines.words(variants.counted),
        "A1FREQ": lines.numbers(frequencies_of(lines.statistics)),
        "N": (str(lines.statistics.n) for _ in lines.places),
        "TEST": ("ADD" for _ in lines.places),
        "BETA": lines.numbers(effects.effect),
        "SE": lines.numbers(effects.standard_error),
        "CHISQ": lines.numbers(effects.z**2),
        "LOG10P": lines.numbers(effects.neg_log10_p),
        "EXTRA": (f"EFFECTIVE_N={value}" for value in lines.numbers(effects.effective_n)),
    }


def _plink(lines: _Lines) -> dict[str, Iterator[str]]:
    variants, effects = lines.variants, lines.effects
    return {
        "#CHROM": lines.words(variants.chromosome),
        "POS": lines.positions,
        "ID": lines.words(variants.names),
        "REF": lines.words(variants.other),
        "ALT": lines.words(variants.counted),
        "A1": lines.words(variants.counted),
        "OMITTED": lines.words(variants.other),
        "A1_FREQ": lines.numbers(frequencies_of(lines.statistics)),
        "TEST": ("ADD" for _ in lines.places),
        "OBS_CT": (str(lines.statistics.n) for _ in lines.places),
        "BETA": lines.numbers(effects.effect),
        "SE": lines.numbers(effects.standard_error),
        "T_STAT": lines.numbers(effects.z),
        "P": lines.p_values(),
        "ERRCODE": ("." for _ in lines.places),
    }


#: What can be written.
FORMATS: Mapping[str, _Format] = {
    "gwas-ssf": _Format(ending=".tsv.gz", separator="\t", columns=_ssf),
    "ldsc": _Format(ending=".sumstats.gz", separator="\t", columns=_ldsc),
    "regenie": _Format(ending=".regenie", separator=" ", columns=_regenie),
    "plink2": _Format(ending=".glm.linear", separator="\t", columns=_plink),
}
