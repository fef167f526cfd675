"""One page about one release: for the steward who files it and the scientist who reads it.

Everything on it is computed from a `Release`, so writing it costs no privacy.
"""

from primo.report.page import write_report

__all__ = ["write_report"]
