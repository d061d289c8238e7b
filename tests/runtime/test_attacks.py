"""Attacks over real TLS on a real process: each ends in a fault or a closed connection.

Each leaves every row of the store as it was. The table of bad input in docs/threat-model.md has the
test of each line; many are in `test_tls.py` and `test_quota_floods.py`.
"""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import pytest

from qns.d2q.event_xml import write_event
from qns.d2q.shipped import AGENCIES
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    ChangeSub,
    Done,
    Entry,
    Envelope,
    Fault,
    Gossip,
    Notification,
    Notified,
    Notify,
    OfferDocument,
    Request,
    SendAll,
)
from qns.edl.seals import Sealer
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.federation.roots_xml import write_anchor
from qns.federation.seal_keys import FileSigner
from qns.iil.requests import Subscribe
from qns.runtime.http import MOST_OF_MEMBER
from qns.runtime.tls_listener import HANDSHAKES_PER_S
from qns.soap.parts import in_parts
from qns.soap.peer_client import read_reply, write_call
from qns.store.sqlite import SqliteStore
from tests.certificates import certificate
from tests.federation.signing import anchor_of, at, root_set, rooted, sign
from tests.runtime.peers import QUICK, change, eventually, running, tls_peer_in
from tests.runtime.test_seals import SEALS, seal_files, sealed_agencies
from tests.runtime.tls_stage import (
    ENDED,
    address_of,
    call,
    connected,
    context_of,
    fetch_once,
)
from tests.store.rows import content

pytestmark = pytest.mark.slow

FORMER = new_certificate("INAIL", time(), is_tls=False)
"""A seal key of INAIL that the document does not name any more."""


class Stage:
    """INPS is a process. The tests play CoC, a member gone bad, and INAIL, an honest producer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plain = replace(sealed_agencies(), version=3)
        self.plain: Federation = plain
        self.federation = sign(rooted(plain, root_set(1, 2, 1, 2, 3), time() + 1e6), 1, 2)
        home = folder / "INPS"
        home.mkdir()
        (home / "agencies.anchor").write_bytes(write_anchor(anchor_of(self.federation)))
        seal_files(home, "INPS", SEALS["INPS"])
        seal = '\n[seal]\ncertificate = "INPS.seal.pem"\nkey = "INPS.seal.key"\n'
        more = f'anchor = "agencies.anchor"\n{QUICK}{seal}'
        self.inps = tls_peer_in(home, self.federation, "INPS", more)
        self.number = 0

    def call(self, sender: str, request: Request) -> Envelope:
        context = context_of(self.folder, certificate(sender))
        with connected(address_of(self.federation, "INPS"), context) as connection:
            connection.timeout = 60.0
            return call(connection, Envelope(sender, self.federation.version, (), request))

    def rows(self) -> dict[str, list[Any]]:
        """Returns every row on the disk. It reads a copy, because the peer locks its file."""
        store = self.inps.configuration.parent / "INPS.db"
        copy = store.with_name("copy.db")
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copy(f"{store}{end}", f"{copy}{end}")
        with SqliteStore(copy) as opened:
            return content(opened)

    def event(self, number: int, *, by: NewCertificate = SEALS["INAIL"], **fields: Any) -> Any:
        """Returns a sealed event of INAIL for INPS, which CoC may bring."""
        xml = write_event(change(f"e{number}", "INAIL").event, AGENCIES)
        item = Notification(
            "INAIL",
            1,
            1,
            number,
            f"e{number}",
            xml,
            0.0,
            Entry("CoC", 1, 1, number, 0, (), (Entry("INPS", 1, 1, number, 0),)),
            ("INAIL", "CoC"),
        )._replace(**fields)
        signer = FileSigner.read(by.certificate, by.key)
        (sealed,) = Sealer("INAIL", signer).seal("agencies", [(item, "CoC")])
        assert isinstance(sealed, Notification)
        (below,) = sealed.entry.children
        return sealed._replace(entry=below)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    found = Stage(tmp_path_factory.mktemp("attacks"))
    with running([found.inps]):
        found.inps.ask(Subscribe("ada", "Enterprise/Holder", id="1"))
        yield found


# --- events ---------------------------------------------------------------------------------------


def false_fingerprint(item: Notification) -> Notification:
    """Returns the item as CoC seals it, with the fingerprint of the certificate of INAIL."""
    signer = FileSigner.read(SEALS["CoC"].certificate, SEALS["CoC"].key)
    real = FileSigner.read(SEALS["INAIL"].certificate, SEALS["INAIL"].key)
    forger = Sealer("INAIL", replace(signer, fingerprint=real.fingerprint))
    (forged,) = forger.seal("agencies", [(item, "INPS")])
    assert isinstance(forged, Notification)
    return forged


Forge = Callable[[Stage, Any], Any]
FORGERIES: dict[str, Forge] = {
    "forged leaf": lambda _, item: false_fingerprint(
        item._replace(entry=item.entry._replace(proof=b""), seal=b"")
    ),
    "altered bytes": lambda _, item: item._replace(xml=item.xml.replace(b"Mecalla", b"Rossini!")),
    "altered number": lambda _, item: item._replace(entry=item.entry._replace(number=9)),
    "path of another root": lambda stage, item: item._replace(
        entry=item.entry._replace(proof=stage.event(77).entry.proof), seal=stage.event(77).seal
    ),
    "replayed in a later epoch": lambda _, item: item._replace(entry=item.entry._replace(epoch=9)),
    "stripped seal": lambda _, item: item._replace(seal=b""),
    "stripped proof": lambda _, item: item._replace(entry=item.entry._replace(proof=b"")),
    "seal of a former key": lambda stage, item: stage.event(item.entry.number, by=FORMER),
    "seal of another member": lambda stage, item: stage.event(item.entry.number, by=SEALS["CoC"]),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_event_changes_nothing_and_the_genuine_one_is_taken(stage: Stage, what: str) -> None:
    stage.number += 1
    genuine = stage.event(stage.number)
    before = stage.rows()
    answer = stage.call("CoC", Notify((FORGERIES[what](stage, genuine),)))
    assert isinstance(answer.body, Notified), answer
    (outcome,) = answer.body.outcomes
    assert not outcome.taken
    assert not outcome.permanent
    assert stage.rows() == before
    answer = stage.call("CoC", Notify((genuine,)))
    assert isinstance(answer.body, Notified), answer
    assert answer.body.outcomes[0].taken, answer
    assert stage.rows() != before


# --- documents ------------------------------------------------------------------------------------


def later(stage: Stage) -> Federation:
    return stage.federation.hosting("CoC", ["Enterprise"])


FALSE_DOCUMENTS: dict[str, Callable[[Stage], Federation]] = {
    "unsigned": lambda stage: replace(stage.plain, version=4),
    "signatures removed": later,
    "under-signed": lambda stage: sign(later(stage), 1),
    "rolled back": lambda stage: sign(replace(later(stage), version=2), 1, 2),
    "frozen": lambda stage: sign(later(stage).expiring(at(1.0)), 1, 2),
    "of another federation": lambda stage: sign(replace(later(stage), name="others"), 1, 2),
    "signed by other keys": lambda stage: sign(
        rooted(replace(stage.plain, version=4), root_set(1, 2, 7, 8, 9), time() + 1e6), 7, 8
    ),
}


@pytest.mark.parametrize("what", FALSE_DOCUMENTS)
def test_false_document_of_a_member_changes_nothing(stage: Stage, what: str) -> None:
    before, health = stage.rows(), stage.inps.health()
    false = write_federation(FALSE_DOCUMENTS[what](stage))
    answer = stage.call("CoC", OfferDocument(false))
    is_ignored = what == "rolled back"  # nothing is asked of a member with an older document
    assert isinstance(answer.body, Done if is_ignored else Fault)
    assert stage.rows() == before
    after = stage.inps.health()
    for name in ("document", "federation", "status"):
        assert after[name] == health[name]


def test_request_of_16_mib_is_ended_before_it_is_read(stage: Stage) -> None:
    before = stage.rows()
    context = context_of(stage.folder, certificate("CoC"))
    with connected(address_of(stage.federation, "INPS"), context) as connection:
        body, action = write_call(Envelope("CoC", 3, (), OfferDocument(b"x" * 16 * 2**20)))
        with suppress(*ENDED):  # the peer may close the connection before all is sent
            connection.request("POST", "/peer", body, {"SOAPAction": action})
        with suppress(*ENDED):
            assert connection.getresponse().status == 413
    assert fetch_once(stage.federation, stage.folder, certificate("CoC")).sender == "INPS"
    assert stage.rows() == before


# --- views ----------------------------------------------------------------------------------------


def test_view_beyond_the_limit_is_refused_and_others_are_served(stage: Stage) -> None:
    before = stage.rows()
    texts = tuple(f'<subscription number="{number}"/>' for number in range(100_001))
    whole = ChangeSub(1, 1, 1, None, 1, texts, (), str(Digest(texts)))
    context = context_of(stage.folder, certificate("CoC"))
    with connected(address_of(stage.federation, "INPS"), context) as connection:
        connection.timeout = 60.0
        for envelope in in_parts(Envelope("CoC", 3, (), whole)):
            answer = call(connection, envelope)
            begun = monotonic()
            served = stage.call("INAIL", Gossip())
            assert not isinstance(served.body, Fault)
            assert monotonic() - begun < 5.0
    assert isinstance(answer.body, Fault)
    assert answer.body.permanent
    assert "most_view_elements" in answer.body.reason
    assert stage.rows() == before


def test_view_with_a_false_digest_is_never_in_force(stage: Stage) -> None:
    before = stage.rows()
    text = "<subscription xmlns='urn:qns:d2q:1'/>"
    change_sub = ChangeSub(1, 1, 1, None, 1, (text,), (), str(Digest(("other",))))
    answer = stage.call("CoC", change_sub)
    assert isinstance(answer.body, Fault | SendAll)
    assert stage.rows() == before


# --- connections ----------------------------------------------------------------------------------


def test_idle_connections_of_one_member_take_no_place_of_others(stage: Stage) -> None:
    context = context_of(stage.folder, certificate("CoC"))
    address = address_of(stage.federation, "INPS")
    with ExitStack() as stack:
        idle: list[Any] = []
        for _ in range(3 * MOST_OF_MEMBER):
            connection = stack.enter_context(connected(address, context))
            with suppress(*ENDED):
                connection.connect()
                idle.append(connection.sock)
        sleep(0.5)
        assert sum(not is_refused(each) for each in idle) == MOST_OF_MEMBER
        assert not isinstance(stage.call("INAIL", Gossip()).body, Fault)
    eventually(lambda: is_served(stage, "CoC"), "the places of the member are free again")


def is_refused(connection: ssl.SSLSocket) -> bool:
    """True if the peer has closed the connection, or has answered it without a request."""
    connection.settimeout(0.01)
    with suppress(TimeoutError):
        try:
            connection.recv(1)
        except OSError as error:
            return not isinstance(error, TimeoutError)
        return True
    return False


def is_served(stage: Stage, sender: str) -> bool:
    with suppress(*ENDED, AssertionError):
        return not isinstance(stage.call(sender, Gossip()).body, Fault)
    return False


def test_address_that_connects_without_end_is_refused_before_the_handshake(stage: Stage) -> None:
    def flooded() -> bool:
        for _ in range(3 * HANDSHAKES_PER_S):
            with suppress(OSError), closing(from_other_address(stage)):
                pass  # the handshake begins, and ends when the connection does
        return any(
            str(each.get("reason")).startswith(f"{HANDSHAKES_PER_S} handshakes of this address")
            for each in stage.inps.records()
        )

    eventually(flooded, "further connections are refused")
    assert fetch_once(stage.federation, stage.folder, certificate("CoC")).sender == "INPS"


def from_other_address(stage: Stage) -> socket.socket:
    """Connects from another address than that of the other tests."""
    address = address_of(stage.federation, "INPS")
    return socket.create_connection(address, 5.0, source_address=("127.0.0.8", 0))


def test_member_that_uses_its_places_again_and_again_is_served(stage: Stage) -> None:
    """An idle connection that has served a request gives way to a new one of the same member."""
    context = context_of(stage.folder, certificate("CoC"))
    with ExitStack() as stack:
        for _ in range(2 * MOST_OF_MEMBER):
            connection = stack.enter_context(
                connected(address_of(stage.federation, "INPS"), context)
            )
            answer = call(connection, Envelope("CoC", 3, (), Gossip()))
            assert not isinstance(answer.body, Fault)


# --- quotas ---------------------------------------------------------------------------------------


def test_request_beyond_a_quota_is_refused_before_its_body_is_read(tmp_path: Path) -> None:
    federation = sealed_agencies()
    more = QUICK.replace("[tuning]\n", "[tuning]\nrequests_per_s = 1\n")
    seal_files(tmp_path / "INPS", "INPS", SEALS["INPS"])
    seal = '\n[seal]\ncertificate = "INPS.seal.pem"\nkey = "INPS.seal.key"\n'
    inps = tls_peer_in(tmp_path / "INPS", federation, "INPS", more + seal)
    context = context_of(tmp_path, certificate("CoC"))
    with running([inps]), connected(address_of(federation, "INPS"), context) as connection:
        for _ in range(10):
            connection.request("POST", "/peer", b"this is no XML", {"SOAPAction": '"gossip"'})
            response = connection.getresponse()
            body = response.read()
            if response.status == 429:
                break
        assert response.status == 429
        assert int(response.headers["Retry-After"]) >= 1
        answer = read_reply(Envelope("CoC", 1, (), Gossip()), response.status, body)
        assert isinstance(answer, Envelope)
        assert isinstance(answer.body, Fault)
        assert not answer.body.permanent
        assert "requests_per_s" in answer.body.reason
        lines = [each for each in inps.records() if "may be repeated" in each["message"]]
        assert {(each["caller"], each["member"]) for each in lines} == {("CoC", "CoC")}
