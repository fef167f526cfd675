"""A person and values that nobody may ever see, and a watch for them."""

import logging
import re
import traceback
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd

from primo.privacy.bounds import Bounds
from primo.wall.noise import RandomBits
from primo.workflow.fit import Settings, prepare, release_rows

WHO = "SENTINEL-PERSON-77"
SENTINELS = (WHO, "SENTINEL", "7654.321", "7654", "SENTI")


def without_digests(text):
    """Leave out random ids and digests: one in a few hundred holds the four digits by chance."""
    return re.sub(r"\b[0-9a-f]{32,}\b", "", text)


N = 40
PEOPLE = [f"p{i:02d}" for i in range(N)]
PEOPLE[17] = WHO


def values(columns=3):
    rng = np.random.default_rng(9)
    found = np.round(rng.uniform(-1, 1, size=(N, columns)), 3)
    found[17] = 7654.321
    return found


class Watch:
    """Everything that somebody could see while a block ran."""

    def __init__(self, capfd, caplog):
        self.capfd, self.caplog = capfd, caplog
        self.texts, self.errors = [], []

    @contextmanager
    def looking(self):
        self.caplog.set_level(logging.DEBUG)
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            try:
                yield self
            except (Exception, KeyboardInterrupt) as error:
                self.errors.append(error)
                self.texts.append("".join(traceback.format_exception(error)))
        self.texts += [str(warning.message) for warning in noticed]
        self.texts += [record.getMessage() for record in self.caplog.records]
        self.texts += [record.exc_text or "" for record in self.caplog.records]
        self.texts += list(self.capfd.readouterr())
        for text in self.texts:
            for word in SENTINELS:
                assert word not in without_digests(text), f"{word!r} leaked:\n{text}"


BOUNDS = {
    "feature_bounds": Bounds(lower=-1.0, upper=1.0),
    "outcome_bounds": Bounds(lower=-1.0, upper=1.0),
}


def fit(source):
    """Do all that is done with rows: look, charge by people, read, release; return what was made."""
    prepared = prepare(source, Settings(epsilon=1.0, delta=1e-6, **BOUNDS))
    return release_rows(source, prepared, bits=RandomBits.fresh())


def frame(cell=None):
    table = pd.DataFrame(values(), columns=["x0", "x1", "y"])
    if cell is not None:
        table["x1"] = table["x1"].astype(object)
        table.loc[17, "x1"] = cell
    table.insert(0, "id", PEOPLE)
    return table
