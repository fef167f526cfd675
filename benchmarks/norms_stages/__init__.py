"""Further stages that may find bounds, measured by `benchmarks.norms` and not part of the program."""
