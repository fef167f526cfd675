"""Was this person in the study? Membership inference against published regressions.

`python -m experiments.membership` prints the tables of docs/membership.md, `--write` puts them there and
draws the figure, `--quick` does less of it.
"""
