"""The rehearsal does what a peer does, on every schema that comes along."""

from __future__ import annotations

import pytest

from qns.federation.shipped import FEDERATIONS
from qns.runtime.rehearsal import rehearse
from qns.soap.endpoint import Endpoint


@pytest.mark.parametrize("name", FEDERATIONS)
def test_everything_is_done_once(name: str) -> None:
    federation = FEDERATIONS[name]
    assert rehearse(federation, Endpoint(federation.schema)) == 1
