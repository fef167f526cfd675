import pytest

import replay as recorder


@pytest.fixture(scope="session")
def replay():
    """The recorder of calls for noise, tests/helpers/replay.py."""
    return recorder
