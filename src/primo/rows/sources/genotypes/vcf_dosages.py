"""Expected copies of ALT in the records of a VCF: the fields DS and GP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.rows.sources.genotypes.spooled import Dosage

__all__ = ["FIELDS", "expected_copies", "stated_copies"]

FIELDS = ("GT", "DS", "GP")  # calls, dosages, genotype probabilities

#: Chromosomes of which some people have one copy.
_HAPLOID = frozenset({"X", "Y", "M", "MT", "23", "24", "26"})

_LARGEST = 1.01  # of a probability, with what rounding to two digits may add
_ABSENT = -2  # cyvcf2's mark for the second allele of a haploid call


def stated_copies(record: Any, path: Path, name: str, people: int) -> Dosage:
    """Return the field DS of all people; refuse it where a person may have one copy only."""
    values = _field(record, "DS", path, name, people)
    if values.shape[1] != 1:
        raise InputError(f"{path}: variant {name} has more than one dosage (DS) for a person")
    calls = _calls(record)
    sexual = record.CHROM.removeprefix("chr").upper() in _HAPLOID
    if sexual if calls is None else bool((calls[:, 1:-1] == _ABSENT).any() or calls.shape[1] == 2):
        raise InputError(
            f"{path}: variant {name} may be haploid in some people, and then a dosage (DS) does not say "
            "whether it counts one copy or two",
            argument="vcf_field",
            value="DS",
            remedy=Message.of(
                "read ",
                Argument("vcf_field", "GP"),
                " or GT, or leave such chromosomes out with ",
                Argument("exclude"),
            ),
        )
    return values[:, 0]


def expected_copies(record: Any, path: Path, name: str, people: int) -> Dosage:
    """Return P(0/1) + 2·P(1/1) of the field GP, or 2·P(1) where a person has one copy."""
    values = _field(record, "GP", path, name, people)
    if values.shape[1] not in (2, 3):
        raise InputError(f"{path}: variant {name} has probabilities (GP) of more than two copies")
    if (values > _LARGEST).any():
        raise InputError(
            f"{path}: the field GP of variant {name} holds no probabilities; values on the phred scale "
            "are not read",
            argument="vcf_field",
            value="GP",
        )
    if values.shape[1] == 2:
        return 2 * values[:, 1]
    haploid = np.isnan(values[:, 2]) & ~np.isnan(values[:, 1])
    return np.where(haploid, 2 * values[:, 1], values[:, 1] + 2 * values[:, 2])


def _calls(record: Any) -> NDArray[np.integer[Any]] | None:
    """Return alleles and phase of all people, or None where the record has no GT."""
    try:
        calls: NDArray[np.integer[Any]] | None = record.genotype.array()
    except Exception:  # cyvcf2 raises bare exceptions
        return None
    return calls


def _field(record: Any, field: str, path: Path, name: str, people: int) -> Dosage:
    """Return a field as float32, NaN where it is missing, (people, values)."""
    try:
        values = record.format(field)
    except Exception:  # as above, for a field that is absent or of another type
        values = None
    found = None if values is None else np.asarray(values)
    if found is None or found.dtype.kind not in "if" or found.shape[0] != people:
        raise InputError(f"{path}: variant {name} has no numbers in the field {field}")
    if found.dtype.kind == "i":  # htslib marks missing integers with the smallest ones
        found = np.where(found < 0, np.nan, found)
    numbers: Dosage = found.reshape(people, -1).astype(np.float32)
    numbers[np.isnan(numbers)] = np.nan  # htslib's missing values are NaN that signal in arithmetic
    return numbers
