"""THE PRIVATE SIDE: rows, and sums of rows without noise."""
