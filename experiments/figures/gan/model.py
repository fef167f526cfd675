"""The two networks: a generator of SNPs in windows, and critics that see a patch of SNPs each.

Haplotypes are long and their LD is short. So the wide dense layers of the usual GAN are cut into one
small network per window of SNPs, all computed by batched products, and neighbours share latents.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from experiments.figures.gan.sampler import SLOPE, Weights
from experiments.figures.gan.settings import Settings

__all__ = ["Critic", "Generator", "flip", "neighbours", "spread"]


def _normal(*shape: int, scale: float, rng: torch.Generator) -> nn.Parameter:
    return nn.Parameter(scale * torch.randn(*shape, generator=rng))


class Generator(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    """Latents to logits of all SNPs.

    The biases start at the allele frequencies; everything else starts at random, without any LD.
    """

    def __init__(self, frequencies: Tensor, settings: Settings, rng: torch.Generator) -> None:
        super().__init__()
        self.snps = len(frequencies)
        self.windows = math.ceil(self.snps / settings.window)
        self.local, self.shared = settings.local, settings.shared
        inputs, hidden = 3 * self.local + self.shared, settings.hidden
        gain = math.sqrt(2)
        self.mix = _normal(
            self.shared, self.shared, scale=gain / max(self.shared, 1) ** 0.5, rng=rng
        )
        self.mix_bias = nn.Parameter(torch.zeros(self.shared))
        self.first = _normal(self.windows, inputs, hidden, scale=gain / inputs**0.5, rng=rng)
        self.first_bias = _normal(self.windows, 1, hidden, scale=0.3, rng=rng)
        self.second = _normal(self.windows, hidden, hidden, scale=gain / hidden**0.5, rng=rng)
        self.second_bias = nn.Parameter(torch.zeros(self.windows, 1, hidden))
        self.out = _normal(self.windows, hidden, settings.window, scale=2 / hidden**0.5, rng=rng)
        padding = self.windows * settings.window - self.snps
        padded = F.pad(torch.logit(frequencies.clamp(0.01, 0.99)), (0, padding))
        self.out_bias = nn.Parameter(padded.view(self.windows, 1, settings.window))

    def forward(self, rows: int, rng: torch.Generator) -> Tensor:
        """Return the logits of some new rows, (rows, snps)."""
        local = torch.randn(self.windows + 2, rows, self.local, generator=rng)
        return self.logits(local, torch.randn(rows, self.shared, generator=rng))

    def logits(self, local: Tensor, shared: Tensor) -> Tensor:
        """Return the logits of given latents, (windows + 2, rows, local) and (rows, shared)."""
        rows = len(shared)
        shared = F.leaky_relu(shared @ self.mix + self.mix_bias, SLOPE)
        wide = shared.expand(self.windows, rows, self.shared)
        latents = torch.cat([local[:-2], local[1:-1], local[2:], wide], dim=2)
        hidden = F.leaky_relu(torch.baddbmm(self.first_bias, latents, self.first), SLOPE)
        hidden = F.leaky_relu(torch.baddbmm(self.second_bias, hidden, self.second), SLOPE)
        logits = torch.baddbmm(self.out_bias, hidden, self.out)
        return logits.permute(1, 0, 2).reshape(rows, -1)[:, : self.snps]

    def arrays(self) -> Weights:
        """Return a copy of the weights for a `Sampler`."""
        return {
            name: value.detach().numpy().astype(np.float32, copy=True)
            for name, value in self.named_parameters()
        }


def flip(logits: Tensor, temperature: float, rng: torch.Generator) -> Tensor:
    """Return 0 or 1 with the logits' probabilities, with the gradient of the relaxed coin.

    A critic must not recognise generated rows by values between 0 and 1, so these are 0 or 1.
    """
    uniform = torch.rand(logits.shape, generator=rng).clamp(1e-6, 1 - 1e-6)
    soft = torch.sigmoid((logits + torch.logit(uniform)) / temperature)
    return (soft > 0.5).float() + (soft - soft.detach())


class Critic(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    """Independent critics, each of its own patch: (patches, rows, width) to (patches, rows)."""

    def __init__(
        self, count: int, width: int, hidden: tuple[int, int], rng: torch.Generator
    ) -> None:
        super().__init__()
        gain = math.sqrt(2)
        h, k = hidden
        self.first = _normal(count, width, h, scale=gain / width**0.5, rng=rng)
        self.first_bias = nn.Parameter(torch.zeros(count, 1, h))
        self.second = _normal(count, h, k, scale=gain / h**0.5, rng=rng)
        self.second_bias = nn.Parameter(torch.zeros(count, 1, k))
        self.out = _normal(count, k, 1, scale=1 / k**0.5, rng=rng)

    def forward(self, seen: Tensor) -> Tensor:
        """Return how real the rows look; only differences mean anything."""
        hidden = F.leaky_relu(torch.baddbmm(self.first_bias, seen, self.first), SLOPE)
        hidden = F.leaky_relu(torch.baddbmm(self.second_bias, hidden, self.second), SLOPE)
        return torch.bmm(hidden, self.out)[..., 0]


def neighbours(rows: Tensor, width: int, stride: int) -> Tensor:
    """Return overlapping patches of SNPs, (patches, rows, width), padded at the end by zeros."""
    snps = rows.shape[1]
    count = max(0, math.ceil((snps - width) / stride)) + 1
    padded = F.pad(rows, (0, (count - 1) * stride + width - snps))
    return padded.unfold(1, width, stride).permute(1, 0, 2)


def spread(rows: Tensor, width: int) -> Tensor:
    """Return patches of SNPs at equal distances over the whole row, (patches, rows, width).

    Patch k is the SNPs k, k + count, k + 2·count ...: what has no LD in the data, and populations.
    """
    snps = rows.shape[1]
    count = math.ceil(snps / width)
    padded = F.pad(rows, (0, count * width - snps))
    return padded.view(len(rows), width, count).permute(2, 0, 1)
