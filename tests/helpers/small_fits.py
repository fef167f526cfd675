"""A small simulated cohort and a model that fits it well."""

import math

import numpy as np

import primo

N, D, L = 4000, 6, 5


def cohort(n=N, d=D, l=L, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    w = rng.normal(size=(d, l)) / np.sqrt(d)
    return x, x @ w + rng.normal(size=(n, l)), w


def model(**changes):
    settings = {
        "epsilon": 5.0,
        "delta": 1e-6,
        "feature_bounds": 1.5 * math.sqrt(D),
        "outcome_bounds": 2.0 * math.sqrt(L),
    }
    return primo.PrimoRegressor(**{**settings, **changes})


def error(fitted, w):
    return np.linalg.norm(fitted.coef_.T - w) / np.linalg.norm(w)
