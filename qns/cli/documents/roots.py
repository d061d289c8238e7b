"""`qns federation init`, `rotate`, `renew`, `key`: begin a federation and change its root keys."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Final

from qns.cli.documents.files import (
    add_action,
    add_document,
    add_expires,
    add_output,
    expiry,
    read_document,
    read_passphrase,
    read_root_keys,
    write_anchor_file,
    write_document,
)
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.screen import Screen
from qns.d2q.schema_files import load_schema
from qns.errors import FederationError, QnsError
from qns.federation.document import Federation
from qns.federation.ed25519 import SigningKey, write_public_key
from qns.federation.roots import RootSet

_INIT: Final = """
Prints the first version of a new document, without members. With --root-key, once for each key,
the document is to be signed, and --anchor writes the file that every peer needs to trust it.
"""
_INIT_EXAMPLES = (
    "qns federation init --schema weather --name storms",
    "qns federation init --schema mine.xml --root-key alice.key.pub --root-key bob.key.pub "
    "--anchor mine.anchor -o federation.xml",
)
_ROTATE: Final = """
Prints the next version of a document with another set of root keys. It has to be signed by enough
keys of the former set and of the new one. A document without root keys gets its first set. Peers
follow the change by themselves; --anchor writes the anchor of the new set, for new peers.
"""
_RENEW: Final = """
Prints the next version of a signed document, which differs only in the time when it expires.
"""
_KEY: Final = """
Makes root keys, with which federation documents are signed, and shows their fingerprints.
"""
_MAKE: Final = """
Makes a root key: FILE is the private key, which only you can read and which is never overwritten;
FILE.pub is the public key, for qns federation init and rotate. With --passphrase-file the private
key is encrypted with the passphrase in the first line of that file.
"""
_MAKE_EXAMPLES = (
    "qns federation key make alice.key",
    "qns federation key make alice.key --passphrase-file passphrase.txt",
)
_SHOW: Final = "Shows the fingerprints of public keys.\n"
_DEFAULT_DAYS: Final = "365d"


def add(actions: Commands) -> None:
    beginning = add_action(actions, "init", "begin a document", _INIT, _INIT_EXAMPLES, init)
    beginning.add_argument(
        "--schema", metavar="SCHEMA", required=True, help="a shipped schema, a .dtd or .xml file"
    )
    beginning.add_argument("--name", help="the federation's name (default: that of the schema)")
    _add_root_set(beginning)
    beginning.add_argument("-o", dest="output", metavar="FILE", help="write the XML to this file")
    rotating = add_action(
        actions,
        "rotate",
        "replace the root keys",
        _ROTATE,
        (
            "qns federation rotate federation.xml --root-key carol.key.pub --root-key bob.key.pub "
            "--threshold 2 -o next.xml",
        ),
        rotate,
    )
    add_document(rotating)
    _add_root_set(rotating)
    add_output(rotating)
    renewing = add_action(
        actions,
        "renew",
        "set when a document expires",
        _RENEW,
        ("qns federation renew federation.xml --expires 90d -o next.xml",),
        renew,
    )
    add_document(renewing)
    add_expires(renewing, f"the new time (default: {_DEFAULT_DAYS})")
    add_output(renewing)
    keys = new_command(actions, "key", "make and show root keys", _KEY, _MAKE_EXAMPLES)
    verbs = keys.add_subparsers(title="commands", metavar="COMMAND", required=True)
    making = add_action(verbs, "make", "make a root key", _MAKE, _MAKE_EXAMPLES, make_key)
    making.add_argument("file", metavar="FILE", type=Path, help="the private key")
    making.add_argument("--passphrase-file", metavar="P", help="the file with the passphrase")
    showing = add_action(
        verbs,
        "show",
        "show fingerprints",
        _SHOW,
        ("qns federation key show alice.key.pub bob.key.pub",),
        show_keys,
    )
    showing.add_argument("files", metavar="FILE.pub", nargs="+", help="a public key")
    add_json_option(showing, "one JSON object")


def _add_root_set(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--root-key", metavar="FILE.pub", action="append", help="a public key; can be repeated"
    )
    parser.add_argument(
        "--threshold", metavar="N", type=int, help="how many keys have to sign (default: all)"
    )
    add_expires(parser, f"when the document expires (default: {_DEFAULT_DAYS})")
    parser.add_argument("--anchor", metavar="FILE", help="write the anchor to this file")


def init(args: Namespace, screen: Screen) -> int:
    schema = load_schema(args.schema)
    document = Federation(args.name or schema.name, schema, {})
    if args.root_key:
        if args.anchor is None:
            raise QnsError(
                "no file for the anchor", remedy="every peer needs it: give --anchor FILE"
            )
        rooted = document.with_roots(_root_set(args, 1), expiry(_expires(args), time()))
        document = replace(rooted, version=1)
    elif args.threshold is not None or args.anchor is not None or args.expires is not None:
        raise QnsError(
            "a document without root keys has no threshold, anchor or expiry",
            remedy="give --root-key FILE.pub, once for each key",
        )
    write_document(None, document, args.output, screen)
    if args.anchor is not None:
        write_anchor_file(args.anchor, document, screen)
    return 0


def rotate(args: Namespace, screen: Screen) -> int:
    if not args.root_key:
        raise QnsError("no root key is given", remedy="give --root-key FILE.pub for each key")
    document = read_document(args.document)
    roots = _root_set(args, len(document.roots) + 1)
    former = document.root_set
    if former is not None and (former.keys, former.threshold) == (roots.keys, roots.threshold):
        raise FederationError(
            "the document has these root keys already", remedy="qns federation renew extends it"
        )
    if args.expires is None and document.expires is not None:
        expires = document.expires
    else:
        expires = expiry(_expires(args), time())
    new = document.with_roots(roots, expires)
    write_document(document, new, args.output, screen)
    if args.anchor is not None:
        write_anchor_file(args.anchor, new, screen)
    return 0


def renew(args: Namespace, screen: Screen) -> int:
    document = read_document(args.document)
    if not document.roots:
        raise FederationError(
            "only a signed document expires", remedy="qns federation rotate adds root keys"
        )
    new = document.expiring(expiry(_expires(args), time()))
    write_document(document, new, args.output, screen)
    return 0


def make_key(args: Namespace, screen: Screen) -> int:
    passphrase = read_passphrase(args.passphrase_file)
    key = SigningKey.make()
    public = args.file.with_name(f"{args.file.name}.pub")
    _write_new(args.file, key.write(passphrase), 0o600)
    try:
        _write_new(public, write_public_key(key.public), 0o644)
    except QnsError:
        with suppress(OSError):
            args.file.unlink()
        raise
    screen.line(f"{args.file} is the private key: keep it, and give it to nobody")
    screen.line(f"{public} is the public key, {key.public.fingerprint}")
    return 0


def show_keys(args: Namespace, screen: Screen) -> int:
    found = dict(zip(args.files, read_root_keys(args.files), strict=True))
    if screen.as_json:
        screen.json({name: key.fingerprint for name, key in found.items()})
        return 0
    for name, key in found.items():
        screen.line(f"{key.fingerprint}  {name}")
    return 0


def _expires(args: Namespace) -> str:
    text: str = _DEFAULT_DAYS if args.expires is None else args.expires
    return text


def _root_set(args: Namespace, number: int) -> RootSet:
    keys = read_root_keys(args.root_key)
    return RootSet(number, len(keys) if args.threshold is None else args.threshold, keys)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Writes a file that does not exist yet, and makes it survive a power cut."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise QnsError(
            "the file exists, and a key is never overwritten",
            place=str(path),
            remedy="choose another name, or move the old key away",
        ) from None
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise QnsError(f"cannot be written: {reason}", place=str(path)) from None
