"""Makes the evidence in examples/evidence anew: `python -m tests.evidence.example`.

Met01 publishes an event, Met02 accepts it and gets a timestamp, all by the time of today.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import time

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.evidence.evidence_file import write_evidence
from qns.evidence.stamping import keep_timestamp, next_batch
from qns.evidence.timestamps import Request
from qns.federation.new_certificate import new_certificate
from qns.federation.roots_xml import write_anchor
from qns.iil.requests import Publish
from tests.edl.peers import federation
from tests.evidence.authority import authority_in_temporary_folder
from tests.evidence.stage import (
    FOR_EVER,
    ROOT_KEYS,
    anchor,
    evidence_at,
    with_seals,
    world_with_evidence,
)
from tests.federation.signing import root_set, sign

FOLDER = Path(__file__).parents[2] / "examples/evidence"
_EVENT = {
    "id": "gust-1",
    "class": "Report/Wind",
    "source": "Met01",
    "data": {"Station": "Roma Urbe", "Region": "Lazio", "Speed": 31.5},
    "quality": {"Speed.Accuracy": "low"},
}


def write_example(folder: Path) -> None:
    now = time() - 60.0
    names = ("Met01", "Met02", "Met03")
    seals = {name: new_certificate(name, now, days=3_650, is_tls=False) for name in names}
    document = federation(*names)
    for name, seal in seals.items():
        document = with_seals(document, name, seal)
    roots = (root_set(1, 2, 1, 2, 3),)
    document = sign(replace(document, version=1, roots=roots, expires=FOR_EVER), *ROOT_KEYS)
    world = world_with_evidence(document, now=now, seals=seals)
    world.do("Met01", Publish(EventReader(WEATHER).from_fields(_EVENT)))
    world.run_for(5.0)
    gateway = world.nodes["Met02"].gateway
    assert gateway is not None
    batch = next_batch(gateway.store)
    assert batch is not None
    with authority_in_temporary_folder() as authority:
        keep_timestamp(gateway.store, batch, authority.answer(Request(batch.root).as_bytes()))
        tsa = authority.certificate.read_bytes()
    folder.mkdir(exist_ok=True)
    (folder / "gust-1.json").write_bytes(write_evidence(evidence_at(world, "Met02", "gust-1")))
    (folder / "weather.anchor").write_bytes(write_anchor(anchor(document)))
    (folder / "tsa.pem").write_bytes(tsa)


if __name__ == "__main__":
    write_example(FOLDER)
