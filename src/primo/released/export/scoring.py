"""Coefficients as scoring files: for `plink2 --score`, and in the format of the PGS Catalog.

A score is the part of a prediction that comes from the variants, Σ slope × copies of the counted allele.
Other features (age, sex) and the intercept are not in it; the intercepts are written to a second file.

Guarantee: post-processing of released coefficients; costs no privacy.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from primo._util.atomic import as_text, new_file, new_folder, publish, refuse_existing, whole_file
from primo._util.writers import escaped
from primo.errors import Argument, InputError
from primo.released.coefficients import Coefficients
from primo.variants import Variants

__all__ = [
    "AFREQ",
    "SIDECAR",
    "ScoreFile",
    "safe_names",
    "text_file",
    "write_pgs_catalog",
    "write_plink_scores",
]

#: Ending of the file of intercepts, after the name of the score file.
SIDECAR = ".outcomes.tsv"

#: Ending of the file of public frequencies, which plink2 reads.
AFREQ = ".afreq"

_MANY = 1_000_000  # observations that plink2 is told of; it uses the frequencies alone

_NUMBER = "%.12g"


@dataclass(frozen=True, kw_only=True)
class ScoreFile:
    """A score file for plink2, and facts that the file itself does not hold."""

    path: Path
    sidecar: Path  # column, outcome and intercept of each score
    afreq: Path | None  # the public means as frequencies
    columns: tuple[str, ...]  # names of the scores: those of the outcomes, made safe
    left_out: tuple[str, ...]  # features that are not variants


def write_plink_scores(
    coefficients: Coefficients,
    variants: Variants,
    path: str | os.PathLike[str],
    *,
    means: NDArray[np.float64] | None = None,
    replace: bool = True,
) -> ScoreFile:
    """Write the slopes of all outcomes for plink2: ID, A1 and one column per outcome.

    Use it with ``plink2 --score FILE header-read cols=+scoresums --score-col-nums 3-N --read-freq
    FILE.afreq``, where N is two more than the number of outcomes. The column NAME_SUM plus the intercept
    in the second file (`FILE.outcomes.tsv`), plus slope × value of the features left out, is the
    prediction. A missing genotype counts as its public mean, as in `primo predict`: plink2 reads the
    `means` (of all features in the order of the coefficients: `public_means`) from the third file.
    A variant that a file lacks is left out by plink2; add slope × public mean for it, or use `predict`.
    Without `means` there is no third file, and plink2 would use the means of the scored people.

    Names of outcomes become column names: characters other than letters, digits, dot, dash and
    underscore are replaced by underscores, and equal names are numbered.
    Cost: d·l numbers of text.
    """
    slopes, left_out = _slopes(coefficients, variants)
    for name, counted in zip(variants.names, variants.counted, strict=True):
        if not _one_word(name) or not _one_word(counted):
            raise InputError(
                f"variant {name!r} (counted allele {counted!r}): plink2 reads names and alleles without "
                "blanks only; rename it in the data"
            )
    target = Path(path)
    sidecar, afreq = (target.with_name(target.name + ending) for ending in (SIDECAR, AFREQ))
    if not replace:
        for place in (target, sidecar, afreq):
            refuse_existing(place)
    columns = safe_names(coefficients.outcome_names)
    with whole_file(target, replace=replace) as binary, as_text(binary) as file:
        file.write("\t".join(("ID", "A1", *columns)) + "\n")
        for name, counted, row in zip(variants.names, variants.counted, slopes, strict=True):
            file.write("\t".join((name, counted, *map(_NUMBER.__mod__, row.tolist()))) + "\n")
    lines = zip(columns, coefficients.outcome_names, coefficients.intercept.tolist(), strict=True)
    with whole_file(sidecar, replace=replace) as binary, as_text(binary) as file:
        file.write("column\toutcome\tintercept\n")
        file.writelines(f"{c}\t{escaped(name)}\t{_NUMBER % value}\n" for c, name, value in lines)
    if means is not None:
        public = np.asarray(means)[_places(coefficients, variants)] / variants.copies
        _write_frequencies(afreq, variants, np.clip(public, 0.0, 1.0), replace=replace)
    return ScoreFile(
        path=target,
        sidecar=sidecar,
        afreq=None if means is None else afreq,
        columns=columns,
        left_out=left_out,
    )


def _write_frequencies(
    path: Path, variants: Variants, frequencies: NDArray[np.float64], *, replace: bool
) -> None:
    """Write public frequencies of the counted alleles as plink2 reads them."""
    with whole_file(path, replace=replace) as binary, as_text(binary) as file:
        file.write("#CHROM\tID\tREF\tALT\tALT_FREQS\tOBS_CT\n")
        for i, (name, f) in enumerate(zip(variants.names, frequencies.tolist(), strict=True)):
            place = f"{variants.chromosome[i] or '0'}\t{name}"
            alleles = f"{variants.other[i] or '.'}\t{variants.counted[i]}"
            file.write(f"{place}\t{alleles}\t{_NUMBER % f}\t{_MANY}\n")


def write_pgs_catalog(
    coefficients: Coefficients,
    variants: Variants,
    folder: str | os.PathLike[str],
    *,
    genome_build: str = "NR",
    compress: bool = True,
) -> tuple[Path, ...]:
    """Write one scoring file per outcome in the format of the PGS Catalog (2.0) to a new folder.

    `genome_build` is that of the positions, for example GRCh38; NR means not reported. The files appear
    together or not at all, named after the outcomes, with safe and unique names.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]+", genome_build):
        raise InputError(
            Argument("genome_build", genome_build), ": give a name such as GRCh38, or NR"
        )
    slopes, _ = _slopes(coefficients, variants)
    target = Path(folder)
    ending = ".txt.gz" if compress else ".txt"
    # Unique without regard to case: some file systems ignore it.
    names = [f"{name}{ending}" for name in safe_names(coefficients.outcome_names, longest=100)]
    columns = _pgs_columns(variants)
    with new_folder(target) as place:
        made = place / "scores"
        made.mkdir()
        for j, name in enumerate(names):
            header = _pgs_header(
                coefficients.outcome_names[j],
                identifier=name.removesuffix(ending),
                genome_build=genome_build,
                number=len(variants),
                intercept=float(coefficients.intercept[j]),
            )
            with text_file(made / name) as file:
                file.write(header)
                file.writelines(
                    f"{column}\t{_NUMBER % slope}\n"
                    for column, slope in zip(columns, slopes[:, j].tolist(), strict=True)
                )
        publish(made, target)
    return tuple(target / name for name in names)


def _slopes(
    coefficients: Coefficients, variants: Variants | None
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the slopes of the variants, (variants, l), and the names of all other features."""
    if variants is None or not len(variants):
        raise InputError(
            "scores are for variants, and this release has none among its features; use predict"
        )
    known = set(variants.names)
    others = tuple(name for name in coefficients.feature_names if name not in known)
    return coefficients.slopes[_places(coefficients, variants)], others


def _places(coefficients: Coefficients, variants: Variants) -> list[int]:
    """Return where among the features the variants are."""
    place = {name: i for i, name in enumerate(coefficients.feature_names)}
    unknown = [name for name in variants.names if name not in place]
    if unknown:
        raise InputError(f"variant {unknown[0]!r} has no coefficients")
    return [place[name] for name in variants.names]


def safe_names(names: tuple[str, ...], *, longest: int = 1000) -> tuple[str, ...]:
    """Make names that file systems and plink2 accept, each once (upper and lower case being equal)."""
    taken: set[str] = set()
    safe = []
    for name in names:
        base = re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".-")[:longest] or "outcome"
        unique, number = base, 1
        while unique.lower() in taken:
            number += 1
            unique = f"{base}_{number}"
        taken.add(unique.lower())
        safe.append(unique)
    return tuple(safe)


def _one_word(text: str) -> bool:
    return bool(text) and not re.search(r"\s", text)


def _pgs_header(
    outcome: str, *, identifier: str, genome_build: str, number: int, intercept: float
) -> str:
    name = " ".join(outcome.split())
    lines = (
        "###PGS CATALOG SCORING FILE - see https://www.pgscatalog.org/downloads/#dl_ftp_scoring "
        "for additional information",
        "#format_version=2.0",
        "##POLYGENIC SCORE (PGS) INFORMATION",
        f"#pgs_id={identifier}",  # pgscatalog-utils wants one; the catalogue assigns its own
        f"#pgs_name={name}",
        f"#trait_reported={name}",
        f"#genome_build={genome_build}",
        f"#variants_number={number}",
        "#weight_type=beta",
        "##PRIMO",
        f"#intercept={_NUMBER % intercept}",
        "\t".join(
            ("rsID", "chr_name", "chr_position", "effect_allele", "other_allele", "effect_weight")
        ),
    )
    return "\n".join(lines) + "\n"


def _pgs_columns(variants: Variants) -> list[str]:
    """Return the columns before the weight; what is not known is left empty."""
    columns = []
    for i, name in enumerate(variants.names):
        position = int(variants.position[i])
        known = position > 0
        cells = (
            name if name.startswith("rs") or not known else "",
            variants.chromosome[i] if known else "",
            str(position) if known else "",
            variants.counted[i],
            variants.other[i],
        )
        columns.append("\t".join(map(escaped, cells)))
    return columns


@contextmanager
def text_file(path: Path) -> Iterator[TextIO]:
    """Open a text file, compressed without name and time if it ends in .gz."""
    if path.suffix != ".gz":
        with new_file(path) as raw, as_text(raw) as file:
            yield file
        return
    with (
        new_file(path) as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as file,
    ):
        yield file
