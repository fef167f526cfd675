"""The part of JSON Schema that the manifest's schema uses.

Enough to refuse a damaged manifest without a further dependency; tests hold it against `jsonschema`.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["check"]

_KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
#: Keywords that only describe.
_WORDS = {"$schema", "$id", "title", "description"}
_KNOWN = _WORDS | {
    "type",
    "const",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "properties",
    "required",
    "additionalProperties",
}


def check(value: Any, schema: dict[str, Any], where: str = "manifest") -> None:
    """Raise ValueError, naming the place, if `value` does not fit `schema`."""
    assert _KNOWN.issuperset(schema), "the schema uses a keyword that this module does not know"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        raise ValueError(f"{where} is not of type {' or '.join(kinds)}")
    if "const" in schema and not (
        value == schema["const"] and type(value) is type(schema["const"])
    ):
        raise ValueError(f"{where} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"{where} is not one of {schema['enum']}")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        raise ValueError(f"{where} does not look like {schema['pattern']}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(value, schema, where)
    if isinstance(value, dict):
        _check_object(value, schema, where)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS[kind])


def _check_number(value: float, schema: dict[str, Any], where: str) -> None:
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    if not low <= value <= high or not value > schema.get("exclusiveMinimum", -float("inf")):
        raise ValueError(f"{where} is out of range")


def _check_object(value: dict[str, Any], schema: dict[str, Any], where: str) -> None:
    known = schema.get("properties", {})
    for key in schema.get("required", []):
        if key not in value:
            raise ValueError(f"{where} has no {key!r}")
    for key, item in value.items():
        if key in known:
            check(item, known[key], f"{where}.{key}")
        elif schema.get("additionalProperties") is False:
            raise ValueError(f"{where} has an unknown {key!r}")
