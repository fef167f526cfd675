"""The templates of the page, filled by Jinja2, which escapes every value that is not markup."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["asset", "render"]


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("primo.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def render(template: str, **values: Any) -> Markup:
    """Fill a template; only values of type Markup are put in as they are."""
    return Markup(_environment().get_template(template).render(**values))


def asset(name: str) -> Markup:
    """Return a style sheet or script of the package, which is trusted as it is."""
    return Markup(files("primo.report").joinpath("assets", name).read_text(encoding="utf-8"))
