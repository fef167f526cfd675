"""Which genotypes do these people have? Recovery of genotypes from published association statistics.

`python -m experiments.recovery` prints the tables of docs/recovery.md, `--write` puts them there and
draws the figure, `--quick` does less of it.
"""
