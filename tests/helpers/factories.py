"""What several test files make: sources of arrays, quantisers, and whole reads of columns."""

from functools import cache

import numpy as np

from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.quantise import feature_quantiser
from primo.rows.sources.arrays.memory import ArraySource


def array_source(features, outcomes, *, outcome="y"):
    """Arrays as a source, with columns x0, x1, ... and y0, y1, ..."""
    return ArraySource(
        features=features,
        outcomes=outcomes,
        feature_names=tuple(f"x{i}" for i in range(features.shape[1])),
        outcome_names=tuple(f"{outcome}{j}" for j in range(outcomes.shape[1])),
    )


def planned(*, n, d, l, make=make_plan, **settings):
    """Make the plan of n rows, d features and l outcomes; the other options are settings."""
    return make(Settings(**settings), n=n, d=d, l=l)


@cache
def quantiser(bounds, width, *, intercept=False, missing="error"):
    """Return the quantiser of features under these bounds, and its plan."""
    plan = planned(
        n=100,
        d=width,
        l=1,
        epsilon=1.0,
        delta=1e-6,
        feature_bounds=bounds,
        outcome_bounds=Bounds(norm=1.0),
        fit_intercept=intercept,
        missing=missing,
    )
    return feature_quantiser(plan), plan


def read_columns(columns, order=None, rows=10):
    """All rows of columns, or those of `order`, read in blocks."""
    return np.vstack(list(columns.blocks(range(columns.n) if order is None else order, rows)))


def bed_properties(fid, iid, d, alleles="AC"):
    """What bed-reader writes beside the genotypes of d variants on chromosome 1."""
    return {
        "fid": fid,
        "iid": iid,
        "sid": [f"rs{j}" for j in range(d)],
        "chromosome": ["1"] * d,
        "bp_position": list(range(1, d + 1)),
        "allele_1": [alleles[0]] * d,
        "allele_2": [alleles[1]] * d,
    }
