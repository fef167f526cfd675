"""Coefficients in the formats of other programs."""
