"""THE PUBLIC SIDE: what a release holds and all that follows from it; imports neither rows nor wall."""
