"""R² of polygenic scores at genome scale, by exact simulation of moments (docs/genome-scale.md)."""
