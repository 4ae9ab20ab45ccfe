"""A run that is interrupted whenever its state was saved."""

from __future__ import annotations

import pytest

from holdfast.engine import Checkpoint


class Fragile(Checkpoint):
    """The run is interrupted when a state was written."""

    class Interrupted(Exception):
        pass

    def write(self, state):
        super().write(state)
        raise self.Interrupted


@pytest.fixture(scope="session")
def fragile() -> type[Fragile]:
    return Fragile
