"""One HTML page about one release, for the data steward and for the scientist.

Everything on it is computed from a `Release`, so writing it costs no privacy.
"""

from primo.report.page import write_report

__all__ = ["write_report"]
