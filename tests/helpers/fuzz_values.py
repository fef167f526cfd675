"""Rows, and other values to put into files, for fuzzing."""

import numpy as np
from hypothesis import strategies as st

from factories import array_source


def rows(n=30, d=3, l=2):
    rng = np.random.default_rng(2)
    return array_source(rng.uniform(-1, 1, size=(n, d)), rng.uniform(-1, 1, size=(n, l)))


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**400), 10**400),
        st.integers(-3, 3),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["both", "primo release 1", "../x", "a" * 10_000]),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def replaced(tree, path, value):
    """Put `value` at a place in nested dictionaries and lists, chosen by the numbers in `path`."""
    if not path or not isinstance(tree, dict | list) or not tree:
        return value
    keys = sorted(tree) if isinstance(tree, dict) else range(len(tree))
    key = keys[path[0] % len(keys)]
    copy = tree.copy()
    copy[key] = replaced(tree[key], path[1:], value)
    return copy


PATH = st.lists(st.integers(0, 50), min_size=1, max_size=3)
