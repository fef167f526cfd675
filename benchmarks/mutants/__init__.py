"""Mutants: primo with one mistake put in, each of which the tests have to notice (`make mutants`)."""
