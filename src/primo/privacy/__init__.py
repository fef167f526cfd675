"""What a guarantee is and what it costs; knows nothing of rows."""
