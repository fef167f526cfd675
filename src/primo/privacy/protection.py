"""Which block of a row is secret."""

from __future__ import annotations

from enum import StrEnum

from primo.errors import InputError

__all__ = ["Protection"]


class Protection(StrEnum):
    """Who may change between two neighbouring data sets (mathematics.md section 1).

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
        """Return the protection called `value`, or an error that lists the choices."""
        try:
            return cls(value)
        except ValueError:
            choices = ", ".join(repr(str(member)) for member in cls)
            raise InputError(f"protection={value!r} is unknown; choose one of {choices}") from None

    @property
    def features_private(self) -> bool:
        """Whether a neighbour may change a row's features."""
        return self is not Protection.OUTCOMES

    @property
    def outcomes_private(self) -> bool:
        """Whether a neighbour may change a row's outcomes."""
        return self is not Protection.FEATURES

    @property
    def sentence(self) -> str:
        """Plain words for the privacy statement."""
        return {
            Protection.BOTH: "the features and the outcomes of every row (full DP)",
            Protection.FEATURES: "the features of every row (feature DP); the outcomes are public",
            Protection.OUTCOMES: "the outcomes of every row (label DP); the features are public",
        }[self]
