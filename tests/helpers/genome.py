"""Moments of features in linked blocks, drawn from their law, with noise of stated scales."""

import numpy as np

from primo.released.estimate.blocks import BlockMoments


def linked(width, r):
    """Correlations that fall off with distance."""
    at = np.arange(width)
    return r ** np.abs(at[:, None] - at)


def symmetric(rng, width, sigma):
    """Noise of variance σ² on the diagonal and σ²/2 off it."""
    square = rng.standard_normal((width, width))
    return (square + square.T) / 2 * sigma


def simulate(rng, *, n, blocks, width, r=0.9, explained=0.5, causal=1.0, sigma=0.0, noise=0.0, l=1):
    """Return block moments of n rows, the true coefficients (d, l) and the correlations of a block."""
    d, linkage = blocks * width, linked(width, r)
    root = np.linalg.cholesky(linkage)
    truth = rng.standard_normal((blocks, width, l)) * (rng.random((blocks, width, l)) < causal)
    size = np.einsum("kil,ij,kjl->l", truth, linkage, truth)
    truth *= np.sqrt(explained / np.maximum(size, 1e-300))
    association = n * linkage @ truth
    association += np.sqrt(n) * root @ rng.standard_normal(truth.shape)
    association += noise * rng.standard_normal(truth.shape)
    moments = BlockMoments(
        n=n,
        starts=np.arange(0, d + 1, width),
        covariance=tuple(n * linkage + symmetric(rng, width, sigma) for _ in range(blocks)),
        sigma=np.full(blocks, float(sigma)),
        association=association.reshape(d, l),
        noise_variance=np.full(l, float(noise) ** 2),
        variation=np.full(l, float(n)),
    )
    return moments, truth.reshape(d, l), linkage


def r_squared(found, truth, linkage):
    """Share of an outcome of variance 1 that coefficients explain on new rows, (l,)."""
    shape = (-1, len(linkage), truth.shape[1])
    whole, left = truth.reshape(shape), (truth - found).reshape(shape)

    def size(w):
        return np.einsum("kil,ij,kjl->l", w, linkage, w)

    return size(whole) - size(left)
