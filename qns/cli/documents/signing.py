"""`qns federation sign` and `verify`: add a signature to a document, and check all of them."""

from __future__ import annotations

import os
from argparse import Namespace
from time import time
from typing import Any, Final

from qns.cli.documents.files import (
    BadFile,
    add_action,
    add_document,
    read_anchor_file,
    read_document,
    read_passphrase,
    read_secret,
)
from qns.cli.inputs import STDIN
from qns.cli.options import Commands, add_json_option
from qns.cli.outputs import save
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.wording import counted
from qns.errors import QnsError
from qns.federation.acceptance import may_accept
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.ed25519 import SigningKey
from qns.federation.roots_xml import read_expires, write_expires
from qns.federation.shipped import FEDERATIONS
from qns.federation.signatures import Missing, Verdict, progress, shown_key, signed

_SIGN: Final = """
Adds the signature of a root key to a document, in its file or in that of -o, and says which are
missing. Signers on several machines sign one after the other and send the file on. During a change
of the root keys, the key also signs the new root set.
"""
_OTHERS: Final = 0o077  # permissions of the group and of all
_VERIFY: Final = """
Says who has signed a document, until when it holds, and whether a peer with the anchor takes it.
With --in-force, whether it may replace that document. Exit status: 0 if it is taken, 1 if not.
"""


def add(actions: Commands) -> None:
    signing = add_action(
        actions,
        "sign",
        "sign a document",
        _SIGN,
        ("qns federation sign next.xml --key alice.key",),
        sign,
    )
    signing.add_argument("document", metavar="FILE", help="the document")
    signing.add_argument("--key", metavar="K", required=True, help="the private root key")
    signing.add_argument("--passphrase-file", metavar="P", help="the file with its passphrase")
    signing.add_argument("-o", dest="output", metavar="FILE", help="write to this file instead")
    add_json_option(signing, "what is signed and missing, as one JSON object")
    verifying = add_action(
        actions,
        "verify",
        "check the signatures of a document",
        _VERIFY,
        (
            "qns federation verify agencies",
            "qns federation verify next.xml --anchor agencies.anchor --in-force federation.xml",
        ),
        verify,
    )
    add_document(verifying)
    verifying.add_argument("--anchor", metavar="A", help="the anchor of the federation")
    verifying.add_argument("--in-force", metavar="OLD", help="the document that it would replace")
    verifying.add_argument("--at", metavar="TIME", help="check for this time instead of now")
    add_json_option(verifying, "one JSON object")


def sign(args: Namespace, screen: Screen) -> int:
    output = args.document if args.output is None else args.output
    if output == STDIN or (args.output is None and args.document.casefold() in FEDERATIONS):
        raise QnsError("a signature needs a file", remedy="name one with -o")
    document = read_document(args.document)
    key = _private_key(args)
    new = signed(document, key)
    save(output, write_federation(new))
    found = progress(new)
    if screen.as_json:
        screen.json({"signer": key.public.fingerprint, "signatures": _as_json(found)})
        return 0
    by = shown_key(key.public.fingerprint)
    screen.line(f"version {new.version} of {visible(new.name)} is signed by {by} in {output}")
    _show(found, screen)
    return 0


def verify(args: Namespace, screen: Screen) -> int:
    if STDIN == args.document == args.in_force:
        raise QnsError("standard input cannot be both documents", remedy="name a file for one")
    document = read_document(args.document)
    anchor = None if args.anchor is None else read_anchor_file(args.anchor)
    in_force = None if args.in_force is None else read_document(args.in_force)
    now = time() if args.at is None else read_expires(args.at).timestamp()
    refusal = ""
    try:
        may_accept(document, in_force, now=now, anchor=anchor)
    except QnsError as error:
        refusal = str(error)
    found = progress(document)
    expires = None if document.expires is None else write_expires(document.expires)
    if screen.as_json:
        screen.json(
            {
                "name": document.name,
                "version": document.version,
                "expires": expires,
                "signatures": _as_json(found),
                "accepted": not refusal,
                "reason": refusal or None,
            }
        )
        return 1 if refusal else 0
    screen.line(f"version {document.version} of {visible(document.name)}", _until(document))
    _show(found, screen)
    if refusal:
        screen.line(("refused", "red"), f": {visible(refusal)}")
    elif anchor is None:
        screen.line("a peer without an anchor takes it; with --anchor the root keys are checked")
    else:
        screen.line(("accepted", "green"), f" from root set {anchor.roots.number} of the anchor")
    return 1 if refusal else 0


def _until(document: Federation) -> str:
    if document.expires is None:
        return " is not signed and does not expire"
    return f" expires at {write_expires(document.expires)}"


def _private_key(args: Namespace) -> SigningKey:
    passphrase = read_passphrase(args.passphrase_file)
    try:
        key = SigningKey.read(read_secret(args.key), passphrase)
    except BadFile:
        raise
    except QnsError as error:
        raise error.at(args.key) from None
    if args.key != STDIN and os.stat(args.key).st_mode & _OTHERS:
        raise QnsError(
            "other users can read the private key",
            place=args.key,
            remedy=f"run chmod 600 {args.key}, and replace the key if somebody may have read it",
        )
    return key


def _show(found: list[Missing], screen: Screen) -> None:
    for each in found:
        keys = counted(each.roots.threshold, "key")
        need = f"needs {keys} of root set {each.roots.number}"
        left = f"{each.missing} missing" if each.missing else "complete"
        screen.line(f"  {each.what} {need}: {left}")
        for signer in each.signers:
            word = "signed" if signer.verdict is Verdict.VALID else signer.verdict.value
            screen.line(f"    {shown_key(signer.fingerprint)}  {word}")


def _as_json(found: list[Missing]) -> list[dict[str, Any]]:
    return [
        {
            "what": each.what,
            "root_set": each.roots.number,
            "threshold": each.roots.threshold,
            "missing": each.missing,
            "signers": {each.fingerprint: each.verdict.value for each in each.signers},
        }
        for each in found
    ]
