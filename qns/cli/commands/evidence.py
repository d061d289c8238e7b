"""`qns evidence`: exports what proves that an event was sent, and verifies it anywhere."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from qns.cli.inputs import Input
from qns.cli.operator.port import ask_peer
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.outputs import save
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.errors import QnsError
from qns.evidence.evidence import Evidence
from qns.evidence.evidence_file import MAX_EVIDENCE_BYTES, read_evidence, write_evidence
from qns.evidence.gathering import gather
from qns.evidence.timestamps import MAX_AUTHORITY_BYTES, read_authority, require_library
from qns.evidence.verification import Outcome, Trust, moment, verify
from qns.federation.document_xml import MAX_FEDERATION_BYTES, read_federation
from qns.federation.roots_xml import MAX_ANCHOR_BYTES, read_anchor
from qns.store.backup_key import read_key
from qns.store.encryption import decrypt, is_encrypted
from qns.store.reading import StoreReader

Content = TypeVar("Content")

_DESCRIPTION = """
Exports the evidence that an organisation has sent an event to this one, and verifies such evidence
on any machine, without a peer. The file is JSON; docs/evidence.md describes it.
"""
_EXAMPLES = (
    "qns evidence export --help",
    "qns evidence verify examples/evidence/gust-1.json --anchor examples/evidence/weather.anchor",
)
_EXPORT = """
Writes the evidence of an event that this organisation has accepted: the event, what its producer
has sealed, the signature, the certificate, the federation document and the timestamp, if there is
one. The peer must have kept it: see [evidence] in docs/peer.md. Give the configuration of the
running peer, or with --store its store when it is stopped, or a backup.
"""
_EXPORT_EXAMPLES = (
    "qns evidence export e1 --config services/peer/inps.toml -o e1.json",
    "qns evidence export e1 --store inps-monday.qns --key inps.key -o e1.json",
)
_VERIFY = """
Verifies evidence: each link from the event to the anchor of the federation is checked and printed
with its outcome. A link that is open is neither proved nor broken, and the line says why. Exit
status: 0 if the chain reaches the anchor, 1 if a link is broken or open. Without --tsa a timestamp
is not needed; with it, there must be one.
"""
_VERIFY_EXAMPLES = (
    "qns evidence verify e1.json --anchor federation.anchor",
    "qns evidence verify e1.json --anchor federation.anchor --tsa tsa.pem",
)
_STYLES: Final = {
    Outcome.HOLDS: "green",
    Outcome.BROKEN: "bold red",
    Outcome.OPEN: "yellow",
}


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "evidence", "prove that an event was sent", _DESCRIPTION, _EXAMPLES
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_export(actions)
    _add_verify(actions)
    return parser


def _add_export(actions: Commands) -> None:
    parser = new_command(
        actions, "export", "write the evidence of an event", _EXPORT, _EXPORT_EXAMPLES
    )
    parser.add_argument("event", metavar="EVENT", help="the id of the event")
    parser.add_argument(
        "--config",
        dest="configuration",
        metavar="CONFIG.toml",
        type=Path,
        help="the configuration of the running peer (default: $QNS_CONFIG)",
    )
    parser.add_argument("--store", metavar="STORE", type=Path, help="a store, or a backup")
    parser.add_argument("--key", metavar="KEYFILE", type=Path, help="the key of the backup")
    parser.add_argument("--source", metavar="NAME", help="the organisation that published it")
    parser.add_argument("-o", "--out", metavar="FILE", required=True, help="write to this file")
    parser.set_defaults(run=export)


def _add_verify(actions: Commands) -> None:
    parser = new_command(actions, "verify", "verify evidence", _VERIFY, _VERIFY_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the evidence, or - for standard input")
    parser.add_argument("--anchor", metavar="ANCHOR", help="the anchor of the federation")
    parser.add_argument(
        "--document",
        metavar="FILE",
        help="a newer federation document, if the anchor is newer than the evidence",
    )
    parser.add_argument(
        "--tsa", metavar="FILE", help="the root certificate of the timestamping authority"
    )
    add_json_option(parser, "one JSON object")
    parser.set_defaults(run=run_verify)


def _read(name: str, limit: int, reader: Callable[[bytes], Content]) -> Content:
    """Returns what the reader makes of a file; errors name the file."""
    with Input(name) as source:
        try:
            return reader(source.read(limit))
        except QnsError as error:
            raise error.at(source.name) from None


# --- export ---------------------------------------------------------------------------------------


def export(args: Namespace, screen: Screen) -> int:
    content = _from_peer(args) if args.store is None else _from_store(args)
    save(args.out, content)
    evidence = read_evidence(content)
    screen.line(visible(f"{args.out}: {_summary(evidence)}"))
    return 0


def _from_peer(args: Namespace) -> bytes:
    if args.configuration is None:
        path = os.environ.get("QNS_CONFIG")
        if not path:
            raise QnsError(
                "the configuration of the peer is missing",
                remedy="give --config CONFIG.toml, set QNS_CONFIG, or give --store",
            )
        args.configuration = Path(path)
    found: str = ask_peer(args, "evidence", event=args.event, source=args.source)["file"]
    return found.encode()


def _from_store(args: Namespace) -> bytes:
    with _readable(args.store, args.key, Path(args.out)) as path, StoreReader(path) as reader:
        return write_evidence(gather(reader, args.event, args.source or ""))


@contextmanager
def _readable(store: Path, key: Path | None, beside: Path) -> Iterator[Path]:
    """Yields the store itself, or a decrypted copy that only this user can read."""
    if not store.is_file():
        raise QnsError("there is no such file", place=str(store), remedy="check the path")
    if not is_encrypted(store):
        yield store
        return
    if key is None:
        raise QnsError("is encrypted", place=str(store), remedy="give its key with --key")
    with TemporaryDirectory(dir=beside.absolute().parent, prefix=".evidence-") as folder:
        plain = Path(folder) / "store"
        decrypt(store, plain, read_key(key), lambda *_: None)
        yield plain


# --- verify ---------------------------------------------------------------------------------------


def run_verify(args: Namespace, screen: Screen) -> int:
    if args.tsa:
        require_library()
    evidence = _read(args.file, MAX_EVIDENCE_BYTES, read_evidence)
    trust = Trust(
        _read(args.anchor, MAX_ANCHOR_BYTES, read_anchor) if args.anchor else None,
        _read(args.document, MAX_FEDERATION_BYTES, read_federation) if args.document else None,
        _read(args.tsa, MAX_AUTHORITY_BYTES, read_authority) if args.tsa else None,
    )
    verdict = verify(evidence, trust)
    if screen.as_json:
        screen.json(
            {
                "event": evidence.leaf.event,
                "source": evidence.leaf.source,
                "receiver": evidence.leaf.entry.receiver,
                "proved": verdict.is_proved,
                "links": [
                    {"link": link.name, "outcome": link.outcome.value, "words": link.words}
                    for link in verdict.links
                ],
            }
        )
        return int(not verdict.is_proved)
    screen.line(visible(_summary(evidence)))
    width = max(len(link.name) for link in verdict.links)
    for link in verdict.links:
        outcome = (f"  {link.outcome.value:<6}  ", _STYLES[link.outcome])
        screen.line(outcome, visible(f"{link.name:<{width}}  {link.words}"))
    if verdict.is_proved:
        screen.line(("proved", "green"), ": the chain reaches the anchor")
    elif verdict.broken:
        names = ", ".join(link.name for link in verdict.broken)
        screen.line(("not proved", "bold red"), f": broken at {names}")
    else:
        screen.line(("not proved", "yellow"), ": nothing is broken, and a link is open")
    return int(not verdict.is_proved)


def _summary(evidence: Evidence) -> str:
    leaf, entry = evidence.leaf, evidence.leaf.entry
    return (
        f"event {leaf.event} of {leaf.source}, number {entry.number:,} of its stream to "
        f"{entry.receiver}, accepted {moment(evidence.accepted_at)}"
    )
