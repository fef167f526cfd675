"""NumPy files, Zarr arrays, VCF Zarr stores, Dask arrays."""

import numpy as np
import pytest

from primo.rows.sources.arrays.dask import DaskColumns, dask_source
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.arrays.zarr import open_zarr
from primo.rows.sources.genotypes.vcf_zarr import open_vcf_zarr


def numbers(dtype=np.float64, shape=(53, 4)):
    rng = np.random.default_rng(8)
    if np.dtype(dtype).kind == "f":
        values = rng.normal(size=shape).astype(dtype)
        values[5, 1] = np.nan
        return values
    return rng.integers(0, 2 if dtype is bool else 3, size=shape).astype(dtype)


def npy_c_order(folder):
    values = numbers()
    np.save(folder / "table.npy", values)
    return open_npy(folder / "table.npy"), values, None


def npy_fortran_order_with_ids(folder):
    values = np.asfortranarray(numbers(np.int8))
    np.save(folder / "table.npy", values)
    ids = [f"person{i}" for i in range(len(values))]
    return open_npy(folder / "table.npy", names=["a", "b", "c", "d"], ids=ids), values, ids


def npy_big_endian(folder):
    values = numbers(">f4")
    np.save(folder / "table.npy", values)
    return open_npy(folder / "table.npy"), values, None


def npy_flags(folder):
    values = numbers(bool)
    np.save(folder / "table.npy", values)
    return open_npy(folder / "table.npy"), values, None


def zarr_array(folder, values, chunks, **options):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(
        folder / "t.zarr", shape=values.shape, chunks=chunks, dtype=values.dtype, **options
    )
    array[:] = values


def zarr_v3(folder):
    values = numbers(np.float32)
    zarr_array(folder, values, (10, 3))
    return open_zarr(folder / "t.zarr"), values, None


def zarr_v2_columns_first(folder):
    values = numbers(np.int16)
    zarr_array(folder, values.T, (3, 10), zarr_format=2)
    return open_zarr(folder / "t.zarr", columns_first=True), values, None


def zarr_v3_in_shards_with_ids(folder):
    values = numbers(np.uint8)
    zarr_array(folder, values, (5, 2), shards=(20, 4))
    ids = [f"person{i}" for i in range(len(values))]
    return open_zarr(folder / "t.zarr", ids=ids), values, ids


def _vcf_store(folder, calls, zarr_format):
    zarr = pytest.importorskip("zarr")
    variants, samples, _ = calls.shape
    group = zarr.create_group(folder / "c.vcz", zarr_format=zarr_format)
    group.create_array("call_genotype", data=calls, chunks=(4, 7, 2))
    group.create_array("variant_contig", data=np.arange(variants, dtype=np.int8) % 2)
    group.create_array("variant_position", data=np.arange(variants, dtype=np.int32) * 10 + 1)
    ids = [f"HG{i:05}" for i in range(samples)]
    texts = {
        "variant_allele": [["A", "C"]] * variants,
        "variant_id": [f"rs{i}" for i in range(variants)],
        "contig_id": ["1", "2"],
        "sample_id": ids,
    }
    for name, values in texts.items():
        values = np.array(values, dtype=object)
        group.create_array(name, shape=values.shape, dtype=str)[...] = values
    return ids


def vcf_zarr_genotypes(folder):
    calls = numbers(bool, (10, 31, 2)).astype(np.int8)
    calls[3, 4] = calls[7, 8, 1] = -1
    ids = _vcf_store(folder, calls, 2)
    values = calls.sum(axis=2).T.astype(float)
    values[4, 3] = values[8, 7] = np.nan
    return open_vcf_zarr(folder / "c.vcz"), values, ids


def vcf_zarr_haplotypes(folder):
    calls = numbers(bool, (10, 31, 2)).astype(np.int8)
    ids = _vcf_store(folder, calls, 3)
    values = calls.transpose(1, 2, 0).reshape(62, 10)
    columns = open_vcf_zarr(folder / "c.vcz", haplotypes=True)
    return columns, values, np.repeat(ids, 2).tolist()


def vcf_zarr_chosen_variants(folder):
    calls = numbers(bool, (10, 31, 2)).astype(np.int8)
    ids = _vcf_store(folder, calls, 3)
    columns = open_vcf_zarr(folder / "c.vcz").select([9, 2, 3])
    return columns, calls.sum(axis=2).T[:, [9, 2, 3]], ids


def dask_columns(folder):
    dask_array = pytest.importorskip("dask.array")
    values = numbers()
    array = dask_array.from_array(values, chunks=((20, 1, 32), (3, 1)))
    return DaskColumns(array=array, names=("a", "b", "c", "d")), values, None


def two_dask_arrays(folder):
    dask_array = pytest.importorskip("dask.array")
    x, y = numbers(np.int8), numbers(shape=(53, 2))
    source = dask_source(dask_array.from_array(x, chunks=20), dask_array.from_array(y, chunks=11))
    return source, x, y, None


COLUMNS = [
    npy_c_order,
    npy_fortran_order_with_ids,
    npy_big_endian,
    npy_flags,
    zarr_v3,
    zarr_v2_columns_first,
    zarr_v3_in_shards_with_ids,
    vcf_zarr_genotypes,
    vcf_zarr_haplotypes,
    vcf_zarr_chosen_variants,
    dask_columns,
]
SOURCES = [two_dask_arrays]
