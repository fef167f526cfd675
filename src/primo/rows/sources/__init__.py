"""Where rows come from; knows nothing of privacy."""
