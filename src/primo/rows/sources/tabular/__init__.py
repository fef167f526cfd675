"""Tables: text, Parquet, Arrow, frames."""
