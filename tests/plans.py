"""Plans for tests, from one dictionary of options."""

from primo.planning.make import make_plan
from primo.planning.settings import Settings

__all__ = ["planned"]


def planned(*, n, d, l, make=make_plan, **settings):
    """Make the plan of n rows, d features and l outcomes; the other options are settings."""
    return make(Settings(**settings), n=n, d=d, l=l)
