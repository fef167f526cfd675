"""Every figure of the paper, with its baselines: grids → runs → Parquet → figures → a page."""
