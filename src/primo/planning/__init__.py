"""Everything that is fixed before the first row is read."""
