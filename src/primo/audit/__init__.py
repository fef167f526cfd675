"""Attack the real program and see how much of the stated ε can be proved.

`audit_release` plays the distinguishing game of the definition on worst-case neighbours, thousands of
times; `audit_in_one_run` guesses thousands of canaries in one full-size release. An audit proves
a lower bound on ε: it can refute a guarantee and never prove one. docs/audit.md says what that is worth.
"""

from primo.audit.game import (
    CONFIDENCE,
    REACHED,
    Audit,
    audit_release,
    canaries_for,
    enough_canaries,
)
from primo.audit.one_run import OneRun, audit_in_one_run
from primo.audit.settings import Setting

__all__ = [
    "CONFIDENCE",
    "REACHED",
    "Audit",
    "OneRun",
    "Setting",
    "audit_in_one_run",
    "audit_release",
    "canaries_for",
    "enough_canaries",
]
