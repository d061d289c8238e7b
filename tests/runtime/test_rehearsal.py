"""The rehearsal works with every federation that is shipped."""

from __future__ import annotations

import pytest

from qns.federation.shipped import FEDERATIONS
from qns.runtime.rehearsal import rehearse
from qns.soap.endpoint import Endpoint


@pytest.mark.parametrize("name", FEDERATIONS)
def test_rehearsal_makes_one_delivery(name: str) -> None:
    federation = FEDERATIONS[name]
    assert rehearse(federation, Endpoint(federation.schema)) == 1
