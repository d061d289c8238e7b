"""The setting `merging` of a peer process."""

from __future__ import annotations

from pathlib import Path

import pytest

from qns.iil.requests import Subscribe
from tests.runtime.peers import PeerProcess, agencies_on_loopback, configure


@pytest.mark.parametrize(("merging", "elements"), [("containment", 2), ("exact", 1)])
def test_setting_decides_how_many_elements_a_producer_gets(
    tmp_path: Path, merging: str, elements: int
) -> None:
    federation = agencies_on_loopback()
    path = configure(tmp_path, federation, "INPS", f'merging = "{merging}"\n')
    peer = PeerProcess(path, federation["INPS"].endpoint)
    peer.start()
    try:
        for code in ("a", "b"):
            peer.ask(Subscribe("anna", f'Enterprise where Code = "{code}"', id=code))
        assert peer.metrics()['qns_view_elements{producer="CoC"}'] == elements
    finally:
        peer.stop()
