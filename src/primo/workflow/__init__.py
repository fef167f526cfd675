"""The order of things: plan, charge, read, release, publish. Sees both sides of the wall."""
