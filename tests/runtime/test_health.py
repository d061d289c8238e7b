"""Health: every reason is produced here, and each names a command that exists."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from time import time
from types import SimpleNamespace

import pytest

from qns.cbr.index import DictionaryIndex
from qns.cli.main import main
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import AGENCIES
from qns.edl.claims import CLAIMS_AT_ONCE
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Entry,
    Envelope,
    Fault,
    Fence,
    Gossip,
    Hello,
    Notification,
    Notify,
    SendAll,
    Skip,
    Standing,
)
from qns.edl.requests import Send
from qns.evidence.timestamps import Authority
from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.iil.requests import InstallDocument, ListSubscriptions, Publish, Subscribe
from qns.peer.backoff import Backoff
from qns.peer.gateway import Gateway
from qns.peer.inputs import Answered, Received
from qns.peer.recovery import Settings
from qns.peer.tables import DEAD_LETTERS, SEALED_ROOTS, DeadLetterRow, SealedRootRow
from qns.peer.tuning import Tuning
from qns.peer.turn import Transaction
from qns.runtime import health as health_module
from qns.runtime.addresses import listen_of
from qns.runtime.drain import Drain
from qns.runtime.evidence_settings import TimestampSettings
from qns.runtime.health import Health
from qns.runtime.key_files import KeyFiles
from qns.runtime.own_certificate import OwnCertificate
from qns.runtime.quotas import Quotas
from qns.runtime.reasons import FAILING, REMEDIES, Reason, ReasonKind, overall_status
from qns.runtime.timestamper import Timestamper
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore
from qns.store.sqlite import LOW_WATER_BYTES, SqliteStore
from tests.certificates import certificate, expired
from tests.federation.signing import root_set, rooted, sign
from tests.runtime.driver_stage import FEDERATION, Stage, run, staged
from tests.runtime.peers import free_ports, tls_files

QUICK = Tuning(first_pause_s=0.01, longest_pause_s=0.02, gossip_every_s=0.05)
Situation = Callable[[Path], Awaitable[list[Reason]]]
SITUATIONS: dict[ReasonKind, Situation] = {}


def situation(kind: ReasonKind) -> Callable[[Situation], Situation]:
    """Registers a function that brings a peer into a situation and returns its reasons."""

    def register(function: Situation) -> Situation:
        SITUATIONS[kind] = function
        return function

    return register


def health_of(stage: Stage, started: float | None = None) -> Health:
    return Health(stage.driver, stage.folder / "inps.db", time() if started is None else started)


async def reasons_until(stage: Stage, kind: ReasonKind, health: Health) -> list[Reason]:
    """Waits until the peer has a reason of this kind, and returns all its reasons."""
    await stage.until(lambda: any(each.kind is kind for each in health.reasons()))
    return health.reasons()


# --- situations -----------------------------------------------------------------------------------


@situation(ReasonKind.STOPPING)
async def stopped(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        await stage.driver.stop()
        return health_of(stage).reasons()


async def _failed_once(stage: Stage) -> None:
    assert stage.store is not None
    stage.driver.backoff = Backoff(0.01, 0.02)
    stage.store.fail_next_commit()
    await stage.ask(Subscribe("anna", "Enterprise", id="S1"))


@situation(ReasonKind.STORE_FAILS)
async def store_does_not_open(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        stage.refusals = 1_000_000
        await _failed_once(stage)
        return health_of(stage).reasons()


@situation(ReasonKind.COMMIT_FAILED)
async def store_opens_again(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        await _failed_once(stage)
        await stage.until(lambda: stage.driver.trouble is None)
        return health_of(stage).reasons()


async def _with_free_bytes(folder: Path, free: int) -> list[Reason]:
    with pytest.MonkeyPatch.context() as patch:
        async with staged(folder) as stage:
            disk = SimpleNamespace(f_bavail=free, f_frsize=1)
            patch.setattr(health_module.os, "statvfs", lambda _: disk)
            return health_of(stage).reasons()


@situation(ReasonKind.DISK_FULL)
async def disk_is_full(folder: Path) -> list[Reason]:
    return await _with_free_bytes(folder, LOW_WATER_BYTES - 1)


@situation(ReasonKind.DISK_LOW)
async def disk_is_nearly_full(folder: Path) -> list[Reason]:
    return await _with_free_bytes(folder, LOW_WATER_BYTES)


@situation(ReasonKind.OVERLOADED)
async def too_many_requests_wait(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        asked = [stage.driver.submit(ListSubscriptions("anna")) for _ in range(600)]
        reasons = health_of(stage).reasons()
        await asyncio.gather(*asked)
        return reasons


@situation(ReasonKind.DRAINING)
async def peer_drains(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        drain = Drain(folder / "inps.db.draining")
        drain.begin()
        return Health(stage.driver, folder / "inps.db", 0.0, drain).reasons()


async def with_document_of_age(folder: Path, age_s: float) -> list[Reason]:
    """Returns the reasons of a peer whose document expired `age_s` seconds ago."""
    document = sign(rooted(FEDERATION, root_set(1, 1, 1), 100.0), 1)
    stage = Stage(folder, document=write_federation(document))
    stage.driver.now = lambda: 0.0
    await stage.driver.start()
    stage.driver.now = lambda: 100.0 + age_s
    try:
        return health_of(stage).reasons()
    finally:
        await stage.driver.stop()


@situation(ReasonKind.DOCUMENT_EXPIRES)
async def document_expires(folder: Path) -> list[Reason]:
    return await with_document_of_age(folder, -1.0)


@situation(ReasonKind.DOCUMENT_EXPIRED)
async def document_expired(folder: Path) -> list[Reason]:
    return await with_document_of_age(folder, 1.0)


@situation(ReasonKind.DOCUMENT_CLOSED)
async def document_closed(folder: Path) -> list[Reason]:
    return await with_document_of_age(folder, 7 * 86_400.0)


@situation(ReasonKind.DOCUMENT_REFUSED)
async def configured_document_is_of_another_federation(folder: Path) -> list[Reason]:
    async with staged(folder):
        pass
    other = write_federation(replace(FEDERATION, name="others", version=2))
    async with staged(folder, document=other) as stage:
        return health_of(stage).reasons()


@situation(ReasonKind.NO_CHECKSUMS)
async def store_without_checksums(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        assert stage.store is not None
        stage.store.has_checksums = False
        return health_of(stage).reasons()


@situation(ReasonKind.RESTORED)
async def store_is_an_older_copy(folder: Path) -> list[Reason]:
    async with staged(folder):
        pass
    shutil.copy(folder / "inps.db", folder / "copy.db")
    async with staged(folder):
        pass
    shutil.copy(folder / "copy.db", folder / "inps.db")
    async with staged(folder) as stage:
        return health_of(stage).reasons()


@situation(ReasonKind.LOST_STORE)
async def store_is_new_although_the_peer_has_run_before(folder: Path) -> list[Reason]:
    async with staged(folder):
        pass
    (folder / "inps.db").unlink()
    async with staged(folder) as stage:
        return health_of(stage).reasons()


@situation(ReasonKind.NOT_A_MEMBER)
async def organisation_has_left(folder: Path) -> list[Reason]:
    others = {name: each for name, each in FEDERATION.organisations.items() if name != "INPS"}
    without = replace(FEDERATION, version=2, organisations=others)
    async with staged(folder) as stage:
        await stage.ask(InstallDocument(write_federation(without)))
        return health_of(stage).reasons()


@situation(ReasonKind.MOVED)
async def document_has_another_endpoint_for_this_peer(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        listen = listen_of(FEDERATION["INPS"].endpoint)
        health = Health(stage.driver, folder / "inps.db", time(), listen=listen)
        assert not [each for each in health.reasons() if each.kind is ReasonKind.MOVED]
        moved = FEDERATION.with_endpoints({"INPS": "http://127.0.0.1:9799/"})
        await stage.ask(InstallDocument(write_federation(moved)))
        return health.reasons()


def own_of(folder: Path, new: NewCertificate) -> OwnCertificate:
    tls_files(folder, "INPS", new)
    return OwnCertificate.read(KeyFiles(folder / "INPS.tls.pem", folder / "INPS.tls.key"))


async def reasons_of_certificate(
    folder: Path, new: NewCertificate, spoil: bytes = b""
) -> list[Reason]:
    """Returns the reasons of a peer with a certificate that the document names."""
    async with staged(folder) as stage:
        own = own_of(folder, new)
        named = FEDERATION.with_certificates("INPS", tls=[new.certificate])
        await stage.ask(InstallDocument(write_federation(named)))
        if spoil:
            own.files.key.write_bytes(spoil)
            own.refresh()
        return Health(stage.driver, folder / "inps.db", time(), own=own).reasons()


def test_valid_certificate_that_the_document_names_is_no_reason(tmp_path: Path) -> None:
    async def story() -> None:
        reasons = await reasons_of_certificate(tmp_path, certificate("INPS"))
        assert not {each.kind.value for each in reasons if "certificate" in each.kind.value}
        assert ReasonKind.KEY_UNUSABLE not in {each.kind for each in reasons}

    run(story())


@situation(ReasonKind.KEY_UNUSABLE)
async def key_file_is_spoiled(folder: Path) -> list[Reason]:
    return await reasons_of_certificate(folder, certificate("INPS"), spoil=b"no key")


@situation(ReasonKind.CERTIFICATE_UNNAMED)
async def document_does_not_name_the_certificate(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        own = own_of(folder, certificate("INPS"))
        return Health(stage.driver, folder / "inps.db", time(), own=own).reasons()


@situation(ReasonKind.CERTIFICATE_EXPIRED)
async def certificate_has_expired(folder: Path) -> list[Reason]:
    return await reasons_of_certificate(folder, expired("INPS"))


@situation(ReasonKind.CERTIFICATE_EXPIRES)
async def certificate_expires_soon(folder: Path) -> list[Reason]:
    return await reasons_of_certificate(folder, new_certificate("INPS", time(), days=29))


@situation(ReasonKind.NO_SEAL)
async def document_names_a_seal_and_there_is_none(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        named = FEDERATION.with_certificates("INPS", seals=[certificate("INPS").certificate])
        await stage.ask(InstallDocument(write_federation(named)))
        return health_of(stage).reasons()


@situation(ReasonKind.WRONG_SEALS)
async def member_brings_an_event_without_its_seal(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        named = FEDERATION.with_certificates("CoC", seals=[certificate("CoC").certificate])
        await stage.ask(InstallDocument(write_federation(named)))
        item = Notification("CoC", 1, 1, 1, "e1", b"", 0.0, Entry("INPS", 1, 1, 1, 0), ("CoC",))
        await stage.ask(Received(Envelope("CoC", named.version, (), Notify((item,)))))
        return health_of(stage).reasons()


@situation(ReasonKind.QUOTA_EXCEEDED)
async def member_sends_too_many_requests(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        health = health_of(stage)
        health.quotas = Quotas(Tuning(requests_per_s=1), lambda: ("INAIL",))
        for _ in range(10):
            health.quotas.admit("INAIL", 1)
        return health.reasons()


@situation(ReasonKind.TIMESTAMPS_LATE)
async def timestamping_authority_does_not_answer(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        assert stage.store is not None
        transaction = Transaction()
        transaction.put(SEALED_ROOTS, SealedRootRow(1, "CoC", time() - 7_300.0, b"r", b"s", 1))
        stage.store.commit(transaction)
        (port,) = free_ports(1)
        url = f"http://127.0.0.1:{port}/"
        settings = TimestampSettings(url, Authority((certificate("CoC").certificate,)), 0.01)
        timestamper = Timestamper(stage.driver, settings)
        timestamper.start()
        await stage.until(lambda: bool(timestamper.problem))
        timestamper.stop()
        health = health_of(stage)
        health.timestamper = timestamper
        (reason,) = [each for each in health.reasons() if each.kind is ReasonKind.TIMESTAMPS_LATE]
        assert "nobody listens there" in reason.words
        return [reason]


@situation(ReasonKind.UNREACHABLE)
async def other_peers_do_not_answer(folder: Path) -> list[Reason]:
    async with staged(folder, tuning=QUICK) as stage:
        return await reasons_until(stage, ReasonKind.UNREACHABLE, health_of(stage))


@situation(ReasonKind.REFUSED)
async def hellos_are_refused(folder: Path) -> list[Reason]:
    def refuse(send: Send) -> Envelope:
        reason = "INPS is not a member of the federation"
        fault = Fault(reason, permanent=isinstance(send.envelope.body, Hello))
        return Envelope(send.to, 1, (), fault)

    async with staged(folder, tuning=QUICK, answer=refuse) as stage:
        return await reasons_until(stage, ReasonKind.REFUSED, health_of(stage))


@situation(ReasonKind.FALSE_CLAIMS)
async def member_claims_later_epochs_again_and_again(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        for _ in range(CLAIMS_AT_ONCE + 1):
            standing = Standing(1, 1, 1, stage.driver.status.epoch + 1, 0)
            await stage.ask(Received(Envelope("CoC", 1, (), Acknowledge(standing))))
        reasons = health_of(stage).reasons()
    assert any("CoC" in str(each) for each in reasons if each.kind is ReasonKind.FALSE_CLAIMS)
    return reasons


@situation(ReasonKind.PRODUCER_RESTORED)
async def store_of_a_producer_goes_back(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        await stage.ask(Subscribe("anna", "Enterprise", id="S1"))
        for epoch, last in ((1, 5), (2, 2)):  # the second epoch begins with a number of the first
            first = Entry("INPS", 1, epoch, 1, 0, (Fence(epoch, 1),))
            item = Skip("CoC", 1, first, last, "no longer kept")
            await stage.ask(Received(Envelope("CoC", 1, (), Notify((item,)))))
        reasons = health_of(stage).reasons()
    assert any("CoC" in str(each) for each in reasons)
    return reasons


async def name_later_epochs(stage: Stage, member: str, times: int) -> None:
    """Lets a member name the epoch of the peer and then a later one, `times` times."""
    for _ in range(times):
        for later in (0, 1):
            standing = Standing(1, 1, 1, stage.driver.status.epoch + later, 0)
            await stage.ask(Received(Envelope(member, 1, (), Acknowledge(standing))))


@situation(ReasonKind.TWIN)
async def somebody_else_begins_epochs_of_this_peer(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        await name_later_epochs(stage, "CoC", 1)
        return health_of(stage).reasons()


@situation(ReasonKind.FENCED_OUT)
async def another_peer_runs_as_this_one(folder: Path) -> list[Reason]:
    """Two members go on naming later epochs, longer than a copy takes to give way."""
    async with staged(folder, tuning=QUICK) as stage:
        health = health_of(stage)
        while not [each for each in health.reasons() if each.kind is ReasonKind.FENCED_OUT]:
            await name_later_epochs(stage, "CoC", 1)
            await name_later_epochs(stage, "INAIL", 1)
            await asyncio.sleep(0.2)
        return health.reasons()


def gateway_of_coc() -> Gateway:
    return Gateway.open(
        Settings("CoC", Tuning(), DictionaryIndex),
        MemoryStore(),
        MemoryLineage(),
        document=write_federation(FEDERATION),
        nonce="coc",
        now=time(),
    )


@situation(ReasonKind.LOOPING)
async def every_view_is_asked_for_again(folder: Path) -> list[Reason]:
    coc = gateway_of_coc()

    def answer(send: Send) -> Envelope | str:
        if send.to != "CoC":
            return "only CoC runs"
        if isinstance(send.envelope.body, ChangeSub):
            return Envelope("CoC", 1, (), SendAll())
        (output,) = coc.run([Received(send.envelope)], time()).answers
        assert isinstance(output, Envelope)
        return output

    async with staged(folder, tuning=QUICK, answer=answer) as stage:
        await stage.ask(Subscribe("anna", "Enterprise", id="S1"))
        return await reasons_until(stage, ReasonKind.LOOPING, health_of(stage))


@situation(ReasonKind.OFFER_REFUSED)
async def others_refuse_the_document(folder: Path) -> list[Reason]:
    def refuse(send: Send) -> Envelope:
        return Envelope(send.to, 1, (), Fault("INPS cannot change CoC", permanent=True))

    newer = write_federation(replace(FEDERATION, version=2))
    async with staged(folder, tuning=QUICK, document=newer, answer=refuse) as stage:
        return await reasons_until(stage, ReasonKind.OFFER_REFUSED, health_of(stage))


def event(id: str, **more: object) -> Publish:
    fields = {"id": id, "class": "Enterprise", "source": "INPS", **more}
    return Publish(EventReader(AGENCIES).from_fields(fields))


@situation(ReasonKind.DROPPED_EVENTS)
async def limit_drops_what_is_owed(folder: Path) -> list[Reason]:
    coc = gateway_of_coc()
    sends = [*coc.first.sends, *coc.run([Subscribe("anna", "Enterprise")], time()).sends]
    async with staged(folder, tuning=Tuning(most_owed=1)) as stage:
        while sends:
            send = sends.pop()
            if send.to == "INPS":
                reply = await stage.ask(Received(send.envelope))
                assert isinstance(reply, Envelope)
                sends += coc.run([Answered(send.number, reply)], time()).sends
        for id in ("e1", "e2", "e3"):
            await stage.ask(event(id))
        return health_of(stage).reasons()


@situation(ReasonKind.DROPPED_DELIVERIES)
async def limit_drops_deliveries(folder: Path) -> list[Reason]:
    async with staged(folder, tuning=Tuning(longest_queue=2)) as stage:
        await stage.ask(Subscribe("anna", "Enterprise", id="S1"))
        for id in ("e1", "e2", "e3"):
            await stage.ask(event(id))
        return health_of(stage).reasons()


@situation(ReasonKind.BUFFER_FULL)
async def no_more_subscriptions_are_accepted(folder: Path) -> list[Reason]:
    async with staged(folder, tuning=Tuning(most_subscriptions=1)) as stage:
        await stage.ask(Subscribe("anna", "Enterprise", id="S1"))
        return health_of(stage).reasons()


@situation(ReasonKind.OLD_DOCUMENT)
async def others_have_a_newer_document(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        await stage.ask(Received(Envelope("CoC", 5, (), Gossip())))
        return health_of(stage).reasons()


@situation(ReasonKind.NO_ENDPOINT)
async def member_has_no_endpoint(folder: Path) -> list[Reason]:
    organisations = dict(FEDERATION.organisations)
    organisations["CoC"] = replace(organisations["CoC"], endpoint="")
    newer = replace(FEDERATION, version=2, organisations=organisations)
    async with staged(folder) as stage:
        await stage.ask(InstallDocument(write_federation(newer)))
        return health_of(stage).reasons()


@situation(ReasonKind.DEAD_LETTERS)
async def receiver_rejected_a_notification(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        await stage.ask(event("e1", available="INF"))
    letter = DeadLetterRow(1, 0.0, "CoC", "INPS", "e1", ENTRY, "never")
    transaction = Transaction()
    transaction.put(DEAD_LETTERS, letter)
    with SqliteStore(folder / "inps.db", low_water_bytes=0) as store:
        store.commit(transaction)
    async with staged(folder) as stage:
        return health_of(stage).reasons()


ENTRY = '["CoC",1,1,1,1,0,[]]'


@situation(ReasonKind.PENDING)
async def subscription_stays_pending(folder: Path) -> list[Reason]:
    async with staged(folder) as stage:
        health = health_of(stage)
        for id in ("S1", "S2"):
            await stage.ask(Subscribe("anna", "Enterprise", id=id))
        assert not [each for each in health.reasons() if each.kind is ReasonKind.PENDING]
        now = stage.driver.now
        stage.driver.now = lambda: now() + 200.0
        return health.reasons()


# --- tests ----------------------------------------------------------------------------------------


def found(tmp_path: Path, kind: ReasonKind) -> list[Reason]:
    reasons: list[Reason] = []

    async def story() -> None:
        reasons.extend(await SITUATIONS[kind](tmp_path))

    run(story())
    return reasons


@pytest.mark.parametrize("kind", ReasonKind, ids=lambda kind: kind.value)
def test_situation_gives_its_reason_with_a_remedy(tmp_path: Path, kind: ReasonKind) -> None:
    matching = [each for each in found(tmp_path, kind) if each.kind is kind]
    assert matching
    assert REMEDIES[kind].command in str(matching[0])
    assert str(matching[0]).endswith(matching[0].remedy)
    assert matching[0].as_fields()["kind"] == kind.value


@pytest.mark.parametrize("kind", ReasonKind, ids=lambda kind: kind.value)
def test_kind_of_reason_has_a_remedy_in_words_and_a_command(kind: ReasonKind) -> None:
    words, command = REMEDIES[kind]
    assert command.startswith("qns ")
    assert len(words.replace(command, "").split()) >= 3


@pytest.mark.parametrize("command", sorted({each.command for each in REMEDIES.values()}))
def test_command_of_a_reason_exists(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *words = command.split()
    assert name == "qns"
    assert main([*words, "--help"]) == 0
    assert "usage" in capsys.readouterr().out.lower()


def test_refused_hellos_name_the_peer_and_its_reason(tmp_path: Path) -> None:
    words = [str(each) for each in found(tmp_path, ReasonKind.REFUSED)]
    assert any(
        each.startswith(("CoC has refused", "INAIL has refused"))
        and "INPS is not a member of the federation" in each
        for each in words
    )


def test_pending_subscription_is_named_with_its_producer(tmp_path: Path) -> None:
    words = [str(each) for each in found(tmp_path, ReasonKind.PENDING)]
    assert any(
        "the subscription S1 and 1 more is pending at CoC since 200 s" in each for each in words
    )


def test_pending_time_of_a_restarted_peer_begins_with_its_start(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(Subscribe("anna", "Enterprise", id="S1"))
        async with staged(tmp_path) as stage:
            pending = {each.producer: each for each in stage.driver.status.pending()}
            assert (pending["CoC"].oldest, pending["CoC"].since) == ("S1", 0.0)
            kinds = [each.kind for each in health_of(stage).reasons()]
            assert ReasonKind.PENDING not in kinds
            old = [each.kind for each in health_of(stage, time() - 200.0).reasons()]
            assert ReasonKind.PENDING in old

    run(story())


def test_failing_reasons_come_first_and_decide_the_status(tmp_path: Path) -> None:
    reasons = found(tmp_path, ReasonKind.STORE_FAILS)
    assert overall_status(reasons) == FAILING
    order = [each.status for each in reasons]
    assert order == sorted(order, reverse=True)


def test_healthy_peer_has_no_reason(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path, silent=True) as stage:
            assert health_of(stage).reasons() == []
            assert health_of(stage).state()["status"] == "ok"

    assert os.statvfs(tmp_path).f_bavail
    run(story())
