"""A stress suite: the default is never much worse than the plainest estimator (`make stress`)."""
