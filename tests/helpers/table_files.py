"""Writing, reading and refusing tables."""

import traceback

import numpy as np
import pytest

from experiments.data import SHARED
from primo.errors import InputError

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
pl = pytest.importorskip("polars")


REAL = SHARED / "social_multioutcome"
SECRET = "S3CRET"


def read(columns, order=None, rows=1000):
    order = range(columns.n) if order is None else order
    return np.concatenate(list(columns.blocks(order, rows))).astype(np.float64)


def refused(action, *, kind=InputError, secret=SECRET):
    """Return the message of a refusal, after checking that nothing private is in its traceback."""
    with pytest.raises(kind) as caught:
        action()
    shown = "".join(traceback.format_exception(caught.value))
    assert secret not in shown
    assert "Arrow" not in type(caught.value.__context__).__name__
    return str(caught.value)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
