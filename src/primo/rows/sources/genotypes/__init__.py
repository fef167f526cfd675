"""Genotype files, phenotypes and lists of people and variants."""
