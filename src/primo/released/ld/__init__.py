"""Linkage (LD) from public reference panels: where blocks end, and correlations inside them."""
