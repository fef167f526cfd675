"""Arrays: in memory, .npy, Zarr, Dask."""
