"""`docs/reproduction.md` from the result files: claims, true budgets, the summary, times."""

from experiments.figures.page.write import read_scores, write_page

__all__ = ["read_scores", "write_page"]
