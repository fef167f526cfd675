"""NumPy files: what is refused, and how little of them is held."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from primo.errors import InputError, NotNumericError
from primo.rows.sources.arrays import chunked
from primo.rows.sources.arrays.npy import open_npy


@pytest.fixture
def save(tmp_path):
    def save(values, name="table.npy"):
        np.save(tmp_path / name, values, allow_pickle=True)
        return tmp_path / name

    return save


def test_names_come_from_the_file_unless_given(save):
    path = save(np.zeros((3, 2)), "cohort.npy")
    assert open_npy(path).names == ("cohort_0", "cohort_1")
    assert open_npy(str(path), names=["age", "sex"]).names == ("age", "sex")


def test_a_stretch_in_stored_order(save):
    values = np.arange(40.0).reshape(20, 2)
    block = next(open_npy(save(values)).blocks(range(3, 20), 5))
    np.testing.assert_array_equal(block, values[3:8])


@pytest.mark.parametrize("order", ["C", "F"])
def test_narrow_numbers_stay_narrow(save, order):
    columns = open_npy(save(np.ones((50, 3), dtype=np.int8, order=order)))
    for rows in (range(50), np.arange(50)[::-1]):
        assert {block.dtype for block in columns.blocks(rows, 7)} == {np.dtype(np.int8)}


def test_long_tables_by_columns_are_read_in_stretches(save, monkeypatch):
    monkeypatch.setattr(chunked, "STRETCH_BYTES", 100)
    values = np.asfortranarray(np.random.default_rng(0).normal(size=(57, 3)))
    found = list(open_npy(save(values)).blocks(range(57), 10))
    assert [len(block) for block in found] == [10, 10, 10, 10, 10, 7]
    np.testing.assert_array_equal(np.vstack(found), values)


def test_of_a_part_only_the_part_is_read(save, monkeypatch):
    monkeypatch.setattr(chunked, "STRETCH_BYTES", 10 * 16)
    columns = open_npy(save(np.asfortranarray(np.arange(200.0).reshape(100, 2))))
    asked, picked = [], type(columns)._picked
    monkeypatch.setattr(
        type(columns), "_picked", lambda self, rows: asked.append(rows) or picked(self, rows)
    )
    (block,) = columns.blocks(range(35, 55), 20)
    assert block[:, 0].tolist() == list(range(70, 110, 2))
    assert asked == [slice(30, 40), slice(40, 50), slice(50, 60)]


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (np.array([["a", 1.0]], dtype=object), InputError, "type object"),
        (np.zeros((2, 2), dtype=complex), NotNumericError, "complex"),
        (np.array([["a", "b"]]), NotNumericError, "type <U1"),
        (np.zeros(3, dtype=[("a", float)]), NotNumericError, "type"),
        (np.zeros(3), InputError, r"1 axes.*reshape\(-1, 1\)"),
        (np.zeros((3, 2, 2)), InputError, "3 axes"),
        (np.zeros((0, 2)), InputError, "empty"),
        (np.zeros((2, 0)), InputError, "empty"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(save, values, kind, message):
    with pytest.raises(kind, match=message):
        open_npy(save(values))


def test_missing_foreign_and_damaged_files(save, tmp_path):
    with pytest.raises(InputError, match=r"no file .*absent\.npy"):
        open_npy(tmp_path / "absent.npy")
    np.savez(tmp_path / "several.npz", a=np.zeros((2, 2)))
    (tmp_path / "text.npy").write_text("1,2,3")
    (tmp_path / "empty.npy").touch()
    for name in ("several.npz", "text.npy", "empty.npy"):
        with pytest.raises(InputError, match=r"not a \.npy file"):
            open_npy(tmp_path / name)
    path = save(np.zeros((30, 4)))
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(InputError, match="cut off"):
        open_npy(path)
    path.write_bytes(content[:20])
    with pytest.raises(InputError, match="damaged"):
        open_npy(path)


@pytest.mark.parametrize("order", [range(30), range(29, -1, -1)])
def test_a_file_that_shrinks_after_it_was_opened(save, order):
    path = save(np.zeros((30, 4)))
    columns = open_npy(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="was changed while it was being read"):
        list(columns.blocks(order, 30))


def test_names_and_ids_that_do_not_fit(save):
    path = save(np.zeros((3, 2)))
    with pytest.raises(InputError, match="2 columns but 1 names"):
        open_npy(path, names=["a"])
    with pytest.raises(InputError, match="'a' was given twice"):
        open_npy(path, names=["a", "a"])
    with pytest.raises(InputError, match="ids") as caught:
        open_npy(path, ids=["secret1", "secret2"])
    assert "secret" not in str(caught.value)


_WALK = """
import resource, sys
import numpy as np
from primo.rows.sources.arrays.npy import open_npy
columns = open_npy(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = sum(int(block.sum()) for block in columns.blocks(range(columns.n), 4096))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux only")
def test_pages_leave_with_their_blocks(save):
    path = save(np.ones((2**18, 256), dtype=np.int8))  # 64 MB
    done = subprocess.run(
        [sys.executable, "-c", _WALK, path], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 16 * 1024
    assert resource.getpagesize() <= 2**16
