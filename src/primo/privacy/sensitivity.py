r"""How far one row can move the moments: closed forms of mathematics.md section 2.

A row :math:`(x, y)` with :math:`\|x\| \le b_x`, :math:`\|y\| \le b_y` enters the release as
:math:`\Phi(x, y) = (\mathrm{svec}(xx^T)/\sigma_1,\; xy^T/\sigma_2,\; \mathrm{svec}(yy^T)/\sigma_3)`.
Replacing it by :math:`(x', y')` moves the noise-scaled release by
:math:`\|\Phi(x, y) - \Phi(x', y')\|`; the release is mu-GDP exactly when that is at most mu for
every pair. With

- ``p`` = b_x⁴/σ₁², ``q`` = b_x²b_y²/σ₂², ``s`` = b_y⁴/σ₃²,
- ``a`` = cos(x, x'), ``b`` = cos(y, y'),

the squared distance of two rows *at* the bound is 2p(1-a²) + 2q(1-ab) + 2s(1-b²), and rows inside
the balls never beat rows at the bound (proof in docs/guarantee.md).

The paper charges b_x² for the covariance and b_x·b_y for the association; under replace-one the
truth is √2·b_x² and 2·b_x·b_y. Both are special cases of `joint_distance`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

__all__ = ["joint_distance"]

Number = TypeVar("Number", float, Fraction)


def joint_distance(p: Number, q: Number, s: Number) -> Number:
    """Return the largest squared, noise-scaled distance between two neighbours.

    Parameters
    ----------
    p, q, s
        Squared bound over squared noise scale of covariance, association and outcome moments.
        Zero means "not released". Fractions give the exact rational answer.

    Notes
    -----
    Guarantee: the joint release is mu-GDP under replace-one iff ``joint_distance(p, q, s) <= mu**2``.
    Exact for rows of at least two features and two outcomes, an upper bound otherwise.

    The form is 2p + 2q + 2s where 4ps ≥ q² (the quadratic 2pa² + 2qab + 2sb² is then never
    negative, so a = b = 0 is worst); otherwise the worst case has |a| = 1 or |b| = 1, which leaves
    one of the two-block problems.
    """
    if 4 * p * s >= q * q and p > 0 and s > 0:
        return 2 * p + 2 * q + 2 * s
    return max(_two_blocks(p, q), _two_blocks(s, q))


def _two_blocks(p: Number, q: Number) -> Number:
    """Maximum over a in [0, 1] of 2p(1-a²) + 2q(1+a): a Gram block and the association."""
    if q >= 2 * p:
        return 4 * q
    return 2 * p + 2 * q + q * q / (2 * p)
