"""Put the page together and write it: one file that makes no network request."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from primo._util.atomic import refuse_existing, whole_file
from primo.forecast.assumptions import Signal
from primo.released.coefficients import Coefficients
from primo.released.estimation import Estimation
from primo.released.moments import ReleasedMoments, expect_release
from primo.report.accuracy import accuracy_words
from primo.report.contents import (
    Chosen,
    Findings,
    choose,
    coefficient_numbers,
    feature_numbers,
    find,
    outcome_numbers,
    shrunk_only,
    threshold,
)
from primo.report.norms import norms_section
from primo.report.outlook import Outlook, outlook_of
from primo.report.placing import place
from primo.report.privacy import banners, noise_section, privacy_section
from primo.report.prose import count
from primo.report.results import (
    about_section,
    brief_section,
    coefficient_words,
    doubts_of,
    doubts_section,
    plan_section,
)
from primo.report.strength import blocks_of, directions_of
from primo.report.templating import asset, render
from primo.report.variants import variants_section
from primo.variants import Variants

__all__ = ["report_html", "write_report"]

LEVEL = 0.95
FDR = 0.05
SCRIPTS = ("basics.js", "table.js", "charts.js", "heatmap.js", "app.js")


def write_report(
    release: ReleasedMoments,
    path: str | os.PathLike[str],
    *,
    variants: Variants | None = None,
    title: str | None = None,
    release_id: str | None = None,
    date: str | None = None,
    notes: Sequence[str] = (),
    signal: Signal | None = None,
    estimation: Estimation | None = None,
    fitted: Coefficients | None = None,
    replace: bool = True,
) -> Path:
    """Write one self-contained HTML page about a release, whole or not at all; return its path.

    Parameters
    ----------
    release
        All that is read; the data may be gone.
    path
        Of the page, for example ``report.html``.
    variants
        Where the features lie on the genome, for Manhattan plots.
    title, release_id, date
        Words for the head and the foot of the page.
    notes
        Sentences for its last section.
    signal
        What the plan assumed of the data, if not the default.
    estimation
        How the published coefficients were estimated, if not the default: what they explain of new
        rows is estimated for them.
    fitted
        The published coefficients, if they are not those that the release alone gives: estimated with
        the correlations of a public panel.
    replace
        Whether a file that is there already may be replaced.

    Notes
    -----
    Guarantee: post-processing of the release; costs no privacy. The same release and words give the
    same page. Cost: O(d²·l), and a few seconds for the forecast.
    """
    target = Path(path)
    if not replace:
        refuse_existing(target)  # before the work
    html = report_html(
        release,
        variants=variants,
        title=title,
        release_id=release_id,
        date=date,
        notes=notes,
        signal=signal,
        estimation=estimation,
        fitted=fitted,
    )
    with whole_file(target, replace=replace) as file:
        file.write(html.encode())
    return target


def report_html(
    release: ReleasedMoments,
    *,
    variants: Variants | None = None,
    title: str | None = None,
    release_id: str | None = None,
    date: str | None = None,
    notes: Sequence[str] = (),
    signal: Signal | None = None,
    estimation: Estimation | None = None,
    fitted: Coefficients | None = None,
) -> str:
    """Return the page that `write_report` writes."""
    expect_release(release)
    plan = release.plan
    made = _Page.of(release, variants, signal, estimation, fitted)
    doubts = doubts_of(release, made.found)
    heading = title or "Private regressions"
    about = [count(plan.n, "row"), count(plan.d, "feature"), count(plan.l, "outcome")]
    extra = [f"release {release_id}"] if release_id else []
    extra += [date] if date else []
    script = Markup("(() => {{\n'use strict';\n{}\n}})();").format(
        Markup("\n").join(asset(name) for name in SCRIPTS)
    )
    found = made.found if isinstance(made.found, Findings) else None
    page = render(
        "page.html",
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        title=heading,
        style=asset("style.css"),
        subtitle=[*about, *extra],
        banners=banners(release),
        brief=brief_section(release, found, doubts),
        privacy=privacy_section(release),
        noise=noise_section(blocks_of(release), directions_of(release)) + norms_section(release),
        accuracy=accuracy_words(release, made.found, made.outlook),
        coefficients=coefficient_words(
            release, made.chosen, made.found, known=found is not None or made.shrunk is not None
        )
        + variants_section(release, variants, slopes=made.shrunk, level=LEVEL),
        plan=plan_section(made.outlook),
        doubts=doubts_section(release, doubts),
        about=about_section(release, notes),
        data=made.numbers(),
        script=script,
    )
    # Names may hold characters that UTF-8 cannot encode: they are written as escapes.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Page:
    """Everything computed for one page."""

    release: ReleasedMoments
    variants: Variants | None
    found: Findings | str
    outlook: Outlook | str
    chosen: Chosen
    shrunk: np.ndarray[Any, np.dtype[np.float64]] | None  # (d, l) where nothing else is known

    @classmethod
    def of(
        cls,
        release: ReleasedMoments,
        variants: Variants | None,
        signal: Signal | None,
        estimation: Estimation | None,
        fitted: Coefficients | None,
    ) -> _Page:
        found = find(release, level=LEVEL, fdr=FDR, estimation=estimation)
        shrunk = None
        plan = release.plan
        if isinstance(found, Findings):
            chosen = choose(found.fit.statistic, -found.tests.feature_p)
        else:
            shrunk = shrunk_only(release, fitted)
            sizes = np.zeros((plan.d, plan.l)) if shrunk is None else shrunk**2
            chosen = choose(sizes.sum(axis=0), sizes.sum(axis=1))
        return cls(
            release=release,
            variants=variants,
            found=found,
            outlook=outlook_of(plan, signal),
            chosen=chosen,
            shrunk=shrunk,
        )

    def numbers(self) -> dict[str, Any]:
        """Return what the scripts of the page work with."""
        release, chosen = self.release, self.chosen
        plan = release.plan
        axis = place(release.feature_names, self.variants)
        found = self.found if isinstance(self.found, Findings) else None
        cells: dict[str, Any] | None = None
        if found is not None:
            cells = coefficient_numbers(release, chosen, found, level=LEVEL)
        elif self.shrunk is not None:
            part = self.shrunk[np.ix_(chosen.features, chosen.detailed)].T.ravel()
            cells = {"shrunk": [float(f"{x:.5g}") for x in part.tolist()]}
        predicted = None
        if isinstance(self.outlook, Outlook):
            predicted = {"r2": self.outlook.chosen.r2, "ols": self.outlook.chosen.no_privacy_r2}
        return {
            "n": plan.n,
            "d": plan.d,
            "l": plan.l,
            "level": LEVEL,
            "fdr": FDR,
            "tested": found is not None,
            "detailed": len(chosen.detailed),
            "threshold": None if found is None else threshold(found, FDR),
            "predicted": predicted,
            "genomic": axis.genomic,
            "stretches": [
                {"label": s.label, "start": s.start, "end": s.end, "first": s.first, "last": s.last}
                for s in axis.stretches
            ],
            "outcomes": outcome_numbers(release, chosen, found),
            "features": feature_numbers(release, chosen, axis, _alleles(self.variants)),
            "cells": cells,
        }


def _alleles(variants: Variants | None) -> dict[str, str]:
    """Describe each variant: where it lies and which allele is counted."""
    if variants is None:
        return {}
    parts = zip(
        variants.names,
        variants.chromosome,
        variants.position.tolist(),
        variants.counted,
        variants.other,
        strict=True,
    )
    return {
        name: f"{chromosome}:{position}, copies of {counted} (other {other})"
        for name, chromosome, position, counted, other in parts
    }
