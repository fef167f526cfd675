"""What a mutant is, and how it is put into a copy of the source."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "OutOfDateError", "Patch"]


class OutOfDateError(Exception):
    """A mutant does not fit the source any more."""


@dataclass(frozen=True)
class Patch:
    """One replacement of text in a file of src/primo."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A mistake and the tests that notice it."""

    name: str
    patches: tuple[Patch, ...]
    killers: tuple[str, ...]  # arguments of pytest; the first that fails kills
    needs: str | None = None  # a module without which the mistake cannot happen
    slow: bool = False  # not part of --quick

    @property
    def files(self) -> str:
        """The files that are changed."""
        return ", ".join(dict.fromkeys(patch.file for patch in self.patches))

    def apply(self, package: Path) -> None:
        """Write the mistake into a copy of the package."""
        for patch in self.patches:
            path = package / patch.file
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            found = text.count(patch.old)
            if found != 1:
                raise OutOfDateError(
                    f"mutant out of date: {self.name!r} looks for a text that is {found} times in "
                    f"{patch.file}, instead of once:\n{patch.old}"
                )
            changed = text.replace(patch.old, patch.new)
            compile(changed, patch.file, "exec")  # a mistake, not a typing error
            path.write_text(changed, encoding="utf-8")
