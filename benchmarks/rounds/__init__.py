"""What several rounds buy: a float emulation of the release in rounds, and the page of evidence."""
