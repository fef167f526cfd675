"""A stress suite: the default is never much worse than the simplest estimator (`make stress`)."""
