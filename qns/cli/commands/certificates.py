"""`qns certificates`: makes keys and certificates of an organisation, and shows certificates."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path
from time import time

from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.errors import QnsError, ValueRefused, shorten
from qns.federation.certificate import Certificate, read_certificate
from qns.federation.new_certificate import (
    ALGORITHMS,
    DEFAULT_DAYS,
    MOST_DAYS,
    NewCertificate,
    new_certificate,
)

_DESCRIPTION = """
Makes keys and self-signed certificates of an organisation, or shows certificates. Peers trust
exactly the certificates that the federation document names, so that no authority is needed;
certificates that an authority has issued work as well.
"""
_EXAMPLES = ("qns certificates make --help", "qns certificates show --help")
_MAKE = """
Makes a key and a certificate for TLS between peers (NAME.tls.key, NAME.tls.pem), and the same for
the seal (NAME.seal.key, NAME.seal.pem). Existing files are never overwritten. Only this user can
read the keys; the certificates belong into the federation document.
"""
_MAKE_EXAMPLES = (
    "qns certificates make INPS --folder /etc/qns",
    "qns certificates make INPS --only tls --algorithm ecdsa-p256 --days 90",
)
_SHOW = """
Shows the subject, the fingerprint (SHA-256) and the validity of a certificate in PEM. Exit status:
0, or 1 if it is not valid now.
"""
_SHOW_EXAMPLES = ("qns certificates show INPS.tls.pem",)
_KINDS = ("tls", "seal")
_MOST_BYTES = 100_000
_END = "-----END CERTIFICATE-----"


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "certificates", "make and show certificates", _DESCRIPTION, _EXAMPLES
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    making = new_command(actions, "make", "make keys and certificates", _MAKE, _MAKE_EXAMPLES)
    making.add_argument("name", metavar="NAME", help="the organisation, as in the document")
    making.add_argument(
        "--folder", metavar="DIR", type=Path, default=Path(), help="where to (default: here)"
    )
    making.add_argument("--only", choices=_KINDS, help="make only these (default: both)")
    making.add_argument(
        "--algorithm", choices=ALGORITHMS, default=ALGORITHMS[0], help="default: %(default)s"
    )
    making.add_argument(
        "--days",
        metavar="DAYS",
        type=int,
        default=DEFAULT_DAYS,
        help=f"validity, at most {MOST_DAYS} (default: %(default)s)",
    )
    add_json_option(making, "one JSON object per certificate")
    making.set_defaults(run=make)
    showing = new_command(actions, "show", "show a certificate", _SHOW, _SHOW_EXAMPLES)
    showing.add_argument("file", metavar="FILE", type=Path)
    add_json_option(showing, "one JSON object")
    showing.set_defaults(run=show)
    return parser


def make(args: Namespace, screen: Screen) -> int:
    if not 1 <= args.days <= MOST_DAYS:
        raise ValueRefused(f"{args.days:,} days", remedy=f"give 1 to {MOST_DAYS:,}")
    if Path(args.name).name != args.name:
        raise ValueRefused(
            f"{shorten(args.name)} cannot be the name of a file",
            remedy="make the certificate with another name, and rename the files",
        )
    kinds = [args.only] if args.only else list(_KINDS)
    targets = {
        kind: tuple(args.folder / f"{args.name}.{kind}.{end}" for end in ("key", "pem"))
        for kind in kinds
    }
    for path in (path for pair in targets.values() for path in pair):
        if path.exists():
            raise QnsError(
                "this file exists already, and nothing was made",
                place=str(path),
                remedy="move it away, or give another --folder",
            )
    now = time()
    for kind, (key, pem) in targets.items():
        new = new_certificate(
            args.name, now, days=args.days, algorithm=args.algorithm, is_tls=kind == "tls"
        )
        _save(new, key, pem)
        certificate = read_certificate(new.certificate)
        if screen.as_json:
            screen.json({"kind": kind, "key": str(key), "file": str(pem), **_fields(certificate)})
        else:
            screen.line((visible(str(pem)), "bold"), f" valid until {_day(certificate.ends)}")
            screen.line(f"  SHA-256 {certificate.fingerprint}")
            screen.line("  the key, which stays secret: ", visible(str(key)))
    return 0


def show(args: Namespace, screen: Screen) -> int:
    try:
        with args.file.open("rb") as file:
            content = file.read(_MOST_BYTES).decode("ascii", "replace")
    except OSError as problem:
        raise QnsError(
            f"cannot be read: {problem.strerror or problem}", place=str(args.file)
        ) from None
    try:
        certificate = read_certificate(content.partition(_END)[0] + _END)
    except QnsError as problem:
        raise problem.at(str(args.file)) from None
    is_valid = certificate.begins <= time() <= certificate.ends
    if screen.as_json:
        screen.json({**_fields(certificate), "valid": is_valid})
    else:
        screen.line((visible(certificate.subject), "bold"))
        screen.line(f"  SHA-256 {certificate.fingerprint}")
        words = "" if is_valid else ": it is not valid now"
        days = f"{_day(certificate.begins)} to {_day(certificate.ends)}"
        screen.line(f"  valid from {days}{words}")
    return int(not is_valid)


def _save(new: NewCertificate, key: Path, pem: Path) -> None:
    for path, content, mode in ((key, new.key, 0o600), (pem, new.certificate.encode(), 0o644)):
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with open(number, "wb") as file:
                file.write(content)
        except OSError as problem:
            raise QnsError(
                f"cannot be written: {problem.strerror or problem}",
                place=str(path),
                remedy="create the folder, or give another --folder",
            ) from None


def _fields(certificate: Certificate) -> dict[str, object]:
    return {
        "subject": certificate.subject,
        "fingerprint": certificate.fingerprint,
        "begins": _moment(certificate.begins),
        "ends": _moment(certificate.ends),
    }


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
