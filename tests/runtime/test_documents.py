"""Federation documents that reach only one peer process spread to all others."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.schema import Schema
from qns.federation.document import Federation, Organisation
from qns.iil.requests import Publish
from tests.runtime.peers import (
    PeerProcess,
    agencies_on_loopback,
    change,
    configure,
    eventually,
    free_ports,
    peer_in,
    running,
)
from tests.runtime.test_process import read, subscribe


@pytest.fixture
def federation() -> Federation:
    return agencies_on_loopback()


def with_istat(federation: Federation) -> Federation:
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}/"
    return federation.with_organisation(Organisation("ISTAT", frozenset(), endpoint))


def has_version(peer: PeerProcess, version: int) -> bool:
    return bool(peer.health()["document"] == version)


def test_document_that_only_the_newcomer_has_reaches_every_member(
    tmp_path: Path, federation: Federation
) -> None:
    peers = [peer_in(tmp_path / name, federation, name) for name in federation.organisations]
    newcomer = peer_in(tmp_path / "ISTAT", with_istat(federation), "ISTAT")
    with running([*peers, newcomer]):
        for each in peers:
            eventually(lambda each=each: has_version(each, 2), f"{each.endpoint} has version 2")
        subscribe(newcomer, "S1")
        peers[0].ask(change("e1", next(iter(federation.organisations))))
        assert read(newcomer, "S1", 1) == ["e1"]
        eventually(lambda: newcomer.health()["status"] == "ok", "all is well")


def test_document_that_only_a_moved_member_has_reaches_every_member(
    tmp_path: Path, federation: Federation
) -> None:
    peers = {name: peer_in(tmp_path / name, federation, name) for name in federation.organisations}
    (port,) = free_ports(1)
    moved = replace(federation["CoC"], endpoint=f"http://127.0.0.1:{port}/")
    organisations = {**federation.organisations, "CoC": moved}
    with running(peers.values()):
        subscribe(peers["INPS"], "S1")
        assert peers["CoC"].stop() == 0
        second = replace(federation, organisations=organisations, version=2)
        peers["CoC"] = peer_in(tmp_path / "CoC", second, "CoC")
        with running([peers["CoC"]]):
            for each in peers.values():
                eventually(lambda each=each: has_version(each, 2), "it has version 2")
            peers["CoC"].ask(change("e1", "CoC"))
            assert read(peers["INPS"], "S1", 1) == ["e1"]


def test_newcomer_cannot_change_a_member_and_its_health_shows_the_reason(
    tmp_path: Path, federation: Federation
) -> None:
    peers = [peer_in(tmp_path / name, federation, name) for name in federation.organisations]
    changed = with_istat(federation.hosting("CoC", []))
    newcomer = peer_in(tmp_path / "ISTAT", changed, "ISTAT")
    with running([*peers, newcomer]):
        reasons = eventually(
            lambda: [each for each in newcomer.health()["reasons"] if "INPS refuses" in each],
            "the newcomer reports the refusal",
        )
        assert (
            "ISTAT is not a member in version 1 of agencies and cannot change CoC (give version 3 "
            "to a member" in reasons[0]
        )
        assert all(has_version(each, 1) for each in peers)


def schema_with(schema: Schema, path: str, **properties: str) -> Schema:
    """Returns the schema with a class that has these properties, new or in place of its own."""
    classes = {
        each: {prop.name: prop.domain.name for prop in schema.properties[each]}
        for each in schema.classes
    }
    return Schema(schema.name, {**classes, path: properties}, schema.labels)


def test_grown_schema_is_used_by_running_peers_over_soap(
    tmp_path: Path, federation: Federation
) -> None:
    peers = {name: peer_in(tmp_path / name, federation, name) for name in federation.organisations}
    grown = schema_with(federation.schema, "Enterprise/Branch", City="string", Staff="integer")
    hosts = {*federation["INPS"].hosts, "Enterprise/Branch"}
    document = replace(federation.with_schema(grown).hosting("INPS", hosts), version=2)
    with running(peers.values()):
        subscribe(peers["CoC"], "all", text="Enterprise")
        configure(tmp_path / "INPS", document, "INPS")
        process = peers["INPS"].process
        assert process is not None
        process.send_signal(signal.SIGHUP)
        for each in peers.values():
            eventually(lambda each=each: has_version(each, 2), "it has version 2")
        subscribe(peers["CoC"], "branches", text="Enterprise/Branch where Staff > 10")
        fields = {"id": "b1", "class": "Enterprise/Branch", "source": "INPS"}
        event = EventReader(grown).from_fields({**fields, "data": {"City": "Roma", "Staff": 12}})
        peers["INPS"].ask(Publish(event), schema=grown)
        assert read(peers["CoC"], "branches", 1) == ["b1"]
        assert read(peers["CoC"], "all", 1) == ["b1"]


def test_refused_document_of_another_peer_is_logged_and_shown_in_health(
    tmp_path: Path, federation: Federation
) -> None:
    changed = schema_with(federation.schema, "Enterprise", Code="integer", EntName="string")
    inps = peer_in(tmp_path / "INPS", federation, "INPS")
    coc = peer_in(tmp_path / "CoC", federation.with_schema(changed), "CoC")
    said = "the property Enterprise.Code was string and becomes integer"
    with running([inps, coc]):
        eventually(lambda: said in " ".join(inps.health()["reasons"]), "health has the reason")
        logged = [each for each in inps.records() if said in each.get("reason", "")]
        assert {each["message"] for each in logged} == {
            "the federation document of another peer is not put in force"
        }
        assert len(logged) == 1
        assert has_version(inps, 1)
