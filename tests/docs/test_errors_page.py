"""docs/errors.md quotes messages that the program prints."""

import ast
import errno
import os
import re
from pathlib import Path

import pytest

import primo
from primo.cli.render import ADVICE, OPTIONS

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
PACKAGE = Path(primo.__file__).parent
FIELD = "\0"  # stands for what is filled in when a message is made


def quotes():
    """Return what the first column of the table quotes; … stands for anything."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"][2:]
    return [quote for row in rows for quote in re.findall("`([^`]+)`", row.split(" | ")[0])]


def text(node):
    """Return a message as it stands in the code, with options as the command line spells them."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text(left) + text(right)
        case (
            ast.JoinedStr(values=parts)
            | ast.Call(func=ast.Attribute(value=ast.Name(id="Message"), attr="of"), args=parts)
        ):
            return "".join(map(text, parts))
        case ast.Call(func=ast.Name(id="Advice"), args=[ast.Constant(value=name), *_]):
            return ADVICE[name]
        case ast.Call(func=ast.Name(id="Argument"), args=[ast.Constant(value=name), *value]):
            return OPTIONS.get(name, name) + "".join(f" {text(each)}" for each in value)
    return FIELD


def messages():
    """Return the messages of all errors, and texts that functions return or modules keep for them."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name.endswith(
                    "Error"
                ) or name in ("fail", "leave"):
                    remedy = [word.value for word in node.keywords if word.arg == "remedy"]
                    yield "".join(map(text, node.args)) + "".join(f"; {text(r)}" for r in remedy)
                case ast.Return(value=ast.expr() as value):
                    yield text(value)
                case (
                    ast.Assign(value=ast.Dict(values=values))
                    | ast.AnnAssign(value=ast.Dict(values=values))
                ):
                    yield from map(text, values)
                case ast.Assign(value=value):
                    yield text(value)
    yield os.strerror(errno.ENOSPC)


@pytest.fixture(scope="module")
def printed():
    return [message for message in messages() if message.strip(FIELD)]


def test_the_page_quotes_something():
    assert len(quotes()) > 30


def is_printed(quote, printed):
    pattern = ".*".join(re.escape(piece.strip()) for piece in quote.split("…"))
    return any(re.search(pattern, message, re.DOTALL) for message in printed)


@pytest.mark.parametrize("quote", quotes())
def test_a_quoted_message_is_in_the_code(printed, quote):
    assert is_printed(quote, printed)


def test_a_message_that_nobody_prints_is_noticed(printed):
    assert not is_printed("the ledger … is locked", printed)
