"""Train the generator against its critics (WGAN-GP), and keep the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

try:
    import torch
except ImportError as error:
    raise ImportError(
        "the GAN needs PyTorch: pip install 'primo-dp[experiments]'", name="torch"
    ) from error
from torch import Tensor

from experiments.figures.gan.model import Critic, Generator, flip, neighbours, spread
from experiments.figures.gan.sampler import Sampler
from experiments.figures.gan.settings import Settings, checked, digest, split
from primo._util.atomic import whole_file

__all__ = ["checkpoint", "load_or_train", "train", "untrained"]

View = Callable[[Tensor], Tensor]


def load_or_train(
    haplotypes: NDArray[np.int8], settings: Settings, *, cache: Path, progress: bool = False
) -> Sampler:
    """Return the trained sampler of these rows and settings, from the cache if it is there."""
    path = checkpoint(haplotypes, settings, cache=cache)
    if not path.exists():
        _save(train(haplotypes, settings, progress=progress), path)
    stored = torch.load(path, weights_only=True)
    weights = {name: value.numpy() for name, value in stored["weights"].items()}
    return Sampler(snps=int(stored["snps"]), weights=weights)


def checkpoint(haplotypes: NDArray[np.int8], settings: Settings, *, cache: Path) -> Path:
    """Return where the trained generator is kept, or will be."""
    learned = checked(haplotypes, settings)
    return cache / f"gan-{digest(learned, settings, torch.__version__)}.pt"


def untrained(haplotypes: NDArray[np.int8], settings: Settings) -> Sampler:
    """Return the generator that training starts from."""
    rows = _training_rows(haplotypes, settings)
    generator = Generator(rows.float().mean(dim=0), settings, _rng(settings))
    return Sampler(snps=generator.snps, weights=generator.arrays())


def train(haplotypes: NDArray[np.int8], settings: Settings, *, progress: bool = False) -> Sampler:
    """Train on all rows but the held-out fifth.

    The weights are averaged over the last steps, because training oscillates around its equilibrium.
    """
    rows = _training_rows(haplotypes, settings)
    with _threads(settings.threads), _bar(settings.steps, show=progress) as advance:
        game = _Game(rows, settings)
        for step in range(settings.steps):
            game.play(step)
            advance()
    return Sampler(snps=game.generator.snps, weights=game.averaged())


class _Game:
    """The state of training."""

    def __init__(self, rows: Tensor, settings: Settings) -> None:
        self.rng = _rng(settings)
        self.settings = settings
        self.rows = rows
        self.centre = rows.float().mean(dim=0)
        self.generator = Generator(self.centre, settings, self.rng)
        width = min(settings.patch, self.generator.snps)
        self.views: tuple[View, View] = (
            lambda x: neighbours(x, width, settings.stride),
            lambda x: spread(x, width),
        )
        self.critics = [
            Critic(len(seen), seen.shape[2], settings.critic_hidden, self.rng)
            for seen in (view(self.centre[None]) for view in self.views)
        ]
        judged = [parameter for critic in self.critics for parameter in critic.parameters()]
        betas = (0.5, 0.9)
        self.forger = torch.optim.Adam(
            self.generator.parameters(), settings.generator_rate, betas=betas
        )
        self.judge = torch.optim.Adam(judged, settings.critic_rate, betas=betas)
        self.mean = [parameter.detach().clone() for parameter in self.generator.parameters()]

    def play(self, step: int) -> None:
        """Move the critics a few times and the generator once."""
        settings = self.settings
        share = step / settings.steps
        cooling = 1 - 0.95 * max(0.0, 2 * share - 1)  # the second half comes to rest
        _set_rate(self.judge, settings.critic_rate * cooling)
        _set_rate(self.forger, settings.generator_rate * cooling)
        for _ in range(settings.critic_steps):
            with torch.no_grad():
                fake = self._fake()
            self._move(self.judge, self._critics_loss(self._real(), fake))
        fake = self._fake()
        loss = -self._total(fake)
        self._move(self.forger, loss)
        kept = min(settings.average, step / (step + 10))
        for mean, parameter in zip(self.mean, self.generator.parameters(), strict=True):
            mean.lerp_(parameter.detach(), 1 - kept)

    def averaged(self) -> dict[str, NDArray[np.float32]]:
        """Return the generator's averaged weights."""
        names = [name for name, _ in self.generator.named_parameters()]
        return {name: mean.numpy().copy() for name, mean in zip(names, self.mean, strict=True)}

    def _real(self) -> Tensor:
        chosen = torch.randint(len(self.rows), (self.settings.batch,), generator=self.rng)
        return self.rows[chosen].float() - self.centre

    def _fake(self) -> Tensor:
        logits = self.generator(self.settings.batch, self.rng)
        return flip(logits, self.settings.temperature, self.rng) - self.centre

    def _total(self, rows: Tensor) -> Tensor:
        """Sum of all critics' mean judgements: patches are independent and trained at the same time."""
        views = zip(self.critics, self.views, strict=True)
        scores = [critic(view(rows)).mean(dim=1).sum() for critic, view in views]
        return torch.stack(scores).sum()

    def _critics_loss(self, real: Tensor, fake: Tensor) -> Tensor:
        """Wasserstein distance of Gulrajani et al. (2017), with the penalty of each patch's gradient."""
        loss = self._total(fake) - self._total(real)
        share = torch.rand(len(real), 1, generator=self.rng)
        between = share * real + (1 - share) * fake
        for critic, view in zip(self.critics, self.views, strict=True):
            seen = view(between).contiguous().requires_grad_(True)
            (slope,) = torch.autograd.grad(critic(seen).sum(), seen, create_graph=True)
            length = (slope.square().sum(dim=2) + 1e-12).sqrt()
            loss = loss + self.settings.penalty * (length - 1).square().mean(dim=1).sum()
        return loss

    @staticmethod
    def _move(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def _training_rows(haplotypes: NDArray[np.int8], settings: Settings) -> Tensor:
    learned = checked(haplotypes, settings)
    kept, _ = split(len(learned))
    return torch.from_numpy(np.ascontiguousarray(learned[kept]))


def _rng(settings: Settings) -> torch.Generator:
    return torch.Generator().manual_seed(settings.seed)


def _set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _bar(steps: int, *, show: bool) -> Iterator[Callable[[], None]]:
    if not (show and sys.stderr.isatty()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} steps"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training the GAN", total=steps)
        yield lambda: bar.advance(task)


def _save(sampler: Sampler, path: Path) -> None:
    """Write the checkpoint; it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = {name: torch.from_numpy(value) for name, value in sampler.weights.items()}
    with whole_file(path) as file:
        torch.save({"snps": sampler.snps, "weights": weights}, file)
