"""Which block of a row is secret."""

from __future__ import annotations

from enum import StrEnum

from primo.errors import Argument, InputError

__all__ = ["PROTECTION_SPELLINGS", "Protection"]

#: Other names of a protection, as in the literature.
PROTECTION_SPELLINGS = {"full": "both", "feature": "features", "label": "outcomes"}


class Protection(StrEnum):
    """Which part of a row may change between two neighbouring data sets (mathematics.md section 1).

    Neighbours differ by replacing one row, so the number of rows is public under all three.

    Examples
    --------
    >>> import primo
    >>> primo.Protection.parse("outcomes").features_private
    False
    >>> [str(protection) for protection in primo.Protection]
    ['both', 'features', 'outcomes']
    """

    BOTH = "both"  # the paper's full DP: features and outcomes of a person are secret
    FEATURES = "features"  # feature DP: the outcomes are public
    OUTCOMES = "outcomes"  # label DP: the features are public

    @classmethod
    def parse(cls, value: str) -> Protection:
        """Return the protection called `value`, or an error that lists the choices.

        "full", "feature" and "label" are other spellings of "both", "features" and "outcomes".
        """
        try:
            return cls(PROTECTION_SPELLINGS.get(value, value) if isinstance(value, str) else value)
        except ValueError:
            choices = ", ".join(repr(str(member)) for member in cls)
            raise InputError(
                Argument("protection", value), " is unknown", remedy=f"choose one of {choices}"
            ) from None

    @property
    def features_private(self) -> bool:
        """Whether a neighbour may change a row's features."""
        return self is not Protection.OUTCOMES

    @property
    def outcomes_private(self) -> bool:
        """Whether a neighbour may change a row's outcomes."""
        return self is not Protection.FEATURES

    @property
    def replaced(self) -> str:
        """What of a row differs between neighbouring data sets, in words."""
        return {
            Protection.BOTH: "one row",
            Protection.FEATURES: "the features of one row",
            Protection.OUTCOMES: "the outcomes of one row",
        }[self]

    @property
    def sentence(self) -> str:
        """Plain words for the privacy statement."""
        return {
            Protection.BOTH: "the features and the outcomes of every row (full DP)",
            Protection.FEATURES: "the features of every row (feature DP); the outcomes are public",
            Protection.OUTCOMES: "the outcomes of every row (label DP); the features are public",
        }[self]
