"""Which covariance a release holds: the whole matrix, that inside public blocks, or its diagonal."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.privacy.bounds import Bounds
from primo.privacy.budget import is_whole
from primo.privacy.clip import Clip
from primo.privacy.protection import Protection

if TYPE_CHECKING:
    from primo.planning.plan import Plan
    from primo.planning.settings import Settings

__all__ = [
    "COVARIANCES",
    "MOST_WHOLE",
    "block_shares",
    "block_starts",
    "check_blocks",
    "chosen_covariance",
    "public_block_starts",
]

#: What `covariance` may be; "auto" chooses from public numbers.
COVARIANCES = ("full", "blocks", "panel", "none", "auto")

#: Features up to which "auto" releases the whole matrix.
MOST_WHOLE = 4096

#: A block's norm over the length that its share of the columns has, at least, where there are no ranges:
#: blocks of few or of linked features vary more than rows.
_BLOCK_FACTOR = 1.5


def chosen_covariance(settings: Settings, *, n: int, d: int) -> str:
    """Return what "auto" stands for: a function of public numbers.

    Of private features blocks, if they are given: their noise is less than that of the whole matrix.
    Otherwise the whole matrix up to `MOST_WHOLE` features, or rows where public features outnumber them;
    beyond, blocks if they are given, else none.
    """
    if settings.covariance != "auto":
        return settings.covariance
    private = Protection.parse(settings.protection).features_private
    wanted = "none" if settings.blocks is None else "blocks"
    large = (d if private else min(d, n)) > MOST_WHOLE
    less_noise = private and wanted == "blocks"
    return wanted if (large or less_noise) and not _refused(settings, wanted) else "full"


def _refused(settings: Settings, covariance: str) -> Message | None:
    """Say what does not go with blocks; None if nothing.

    With noise on the outcomes themselves, public features are summed inside blocks at no cost.
    """
    exact = covariance == "blocks" and settings.association == "perturbed"
    others: tuple[tuple[bool, Argument], ...] = (
        (settings.calibration != "exact", Argument("calibration", settings.calibration)),
        (
            settings.association not in ("gauss", "auto") and not exact,
            Argument("association", settings.association),
        ),
        (
            settings.covariance_rows is not None,
            Argument("covariance_rows", settings.covariance_rows),
        ),
        (settings.public_covariance is not None, Argument("public_covariance")),
        (exact and settings.block_norms is not None, Argument("block_norms")),
    )
    return next((Message.of(argument) for holds, argument in others if holds), None)


def check_blocks(settings: Settings) -> None:
    """Refuse unknown words, blocks that nothing uses, and what does not go with blocks."""
    covariance = settings.covariance
    if covariance not in COVARIANCES:
        raise InputError(
            Argument("covariance", covariance),
            " is unknown",
            remedy=f"choose one of {', '.join(COVARIANCES)}",
        )
    if covariance == "blocks" and settings.blocks is None:
        raise InputError(
            Argument("covariance", "blocks"),
            " needs the borders of the blocks, from public knowledge",
            remedy=Message.of(
                "give ", Argument("blocks"), ", or use ", Argument("covariance", "none")
            ),
        )
    if covariance not in ("blocks", "auto") and settings.blocks is not None:
        raise InputError(
            Argument("blocks"),
            " goes with ",
            Argument("covariance", "blocks"),
            remedy="ask for that covariance, or leave the blocks out",
        )
    if settings.block_norms is not None and settings.blocks is None:
        raise InputError(
            Argument("block_norms"), " needs blocks", remedy=Message.of("give ", Argument("blocks"))
        )
    other = _refused(settings, covariance)
    if covariance in ("panel", "none") and settings.association == "perturbed":
        raise InputError(
            Argument("covariance", covariance),
            " does not go with ",
            Argument("association", "perturbed"),
            ": such a release holds what the effects of all features one by one need, whatever the "
            "covariance",
            remedy=Message.of(
                "leave ",
                Argument("covariance"),
                " out, or give blocks of features and ",
                Argument("covariance", "blocks"),
            ),
        )
    if covariance in ("blocks", "panel", "none") and other is not None:
        raise InputError(
            Argument("covariance", covariance),
            " does not go with ",
            other,
            remedy=Message.of("leave one of the two out"),
        )
    bounds = settings.feature_bounds
    if (
        covariance in ("blocks", "panel", "none")
        and isinstance(bounds, Bounds)
        and bounds.auto_norm
    ):
        raise InputError(
            "the features have ",
            Argument("bounds.norm", "auto"),
            ", which does not go with ",
            Argument("covariance", covariance),
            ": the norm of a block cannot be known before that of the row",
            remedy="state the norm of the features, or their ranges or frequencies",
        )


def block_starts(blocks: Any, d: int, covariance: str) -> NDArray[np.int64]:
    """Return the borders of the blocks, (m + 1,): those stated, or one block for every feature."""
    if covariance != "blocks":
        return np.arange(d + 1)
    try:
        given = list(blocks)
    except TypeError:
        given = []
    if len(given) < 2 or not all(is_whole(border) for border in given):
        raise InputError(
            Argument("blocks"),
            " must be borders by feature position: whole numbers from 0 to the number of features",
            remedy=f"for two blocks of equal size: [0, {d // 2}, {d}]",
        )
    if given[0] != 0 or given[-1] != d:
        raise InputError(
            Argument("blocks"),
            f" must begin with 0 and end with {d}, the number of features",
            remedy="a feature outside all blocks is a block of its own",
        )
    bad = next((pair for pair in pairwise(given) if pair[1] <= pair[0]), None)
    if bad is not None:
        raise InputError(
            Argument("blocks"),
            f" are not in order, or overlap: {bad[0]} is followed by {bad[1]}",
            remedy="give every border once, from left to right",
        )
    return np.array(given, dtype=np.int64)


def public_block_starts(settings: Settings, plan: Plan) -> NDArray[np.int64] | None:
    """Return borders of blocks inside which public features are summed after noise on the outcomes.

    None unless the plan has that noise, and blocks were asked for or chosen.
    """
    if plan.perturbation is None or settings.blocks is None:
        return None
    settings = replace(settings, association="perturbed")
    if chosen_covariance(settings, n=plan.n, d=plan.d) != "blocks":
        return None
    return block_starts(settings.blocks, plan.d, "blocks")


def block_shares(clip: Clip, starts: NDArray[np.int64], norms: Any) -> NDArray[np.float64]:
    """Return b_B²/b_x² of every block, (m,), from public numbers.

    As stated in `norms`, in scaled units; otherwise the longest that a block can be with its values cut
    to their ranges; otherwise `_BLOCK_FACTOR`, or 1 + 2/√w if that is more, times the block's share of
    the row's norm, b_x·√(w/d). Never more than the row's own norm.
    """
    widths = np.diff(starts)
    if norms is not None:
        stated = np.asarray(norms, dtype=np.float64)
        if stated.shape not in ((), widths.shape) or not (
            np.isfinite(stated).all() and (stated > 0).all()
        ):
            raise InputError(
                Argument("block_norms"),
                f" must be one positive number, or one for each of the {len(widths)} blocks",
            )
        squares = np.broadcast_to(stated, widths.shape) ** 2
    elif clip.box:
        reach = np.maximum(*map(np.abs, clip.ends))
        squares = np.add.reduceat(reach * reach, starts[:-1])
    else:
        factor = np.maximum(_BLOCK_FACTOR, 1 + 2 / np.sqrt(widths))
        squares = (factor * clip.norm) ** 2 * widths / math.fsum(widths)
    shares: NDArray[np.float64] = np.minimum(squares / clip.norm**2, 1.0)
    return shares
