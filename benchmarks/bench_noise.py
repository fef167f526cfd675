"""How much faster than OpenDP primo draws the integer discrete Gaussian: one run, one thread."""

from __future__ import annotations

import statistics
import time

from primo.wall.noise import RandomBits, discrete_gaussian

VARIANCE_BITS = 80
ROUNDS = 7


def _seconds_per_draw(backend: str, size: int) -> float:
    bits = RandomBits.fresh()
    start = time.perf_counter()
    discrete_gaussian(size, variance_bits=VARIANCE_BITS, bits=bits, label="bench", backend=backend)
    return (time.perf_counter() - start) / size


def noise_ratio() -> float:
    """Measure OpenDP's time per draw over primo's: the median of interleaved rounds.

    Rounds are interleaved so that both have the same load; the first round warms up tables and imports.
    """
    ratios = [
        _seconds_per_draw("opendp", 20_000) / _seconds_per_draw("primo", 2_000_000)
        for _ in range(ROUNDS + 1)
    ]
    return statistics.median(ratios[1:])


def main() -> None:
    print(
        f"noise: primo is {noise_ratio():.0f}x faster than OpenDP "
        f"(integer discrete Gaussian, sigma=2^{VARIANCE_BITS // 2}, one thread)"
    )


if __name__ == "__main__":
    main()
