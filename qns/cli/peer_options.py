"""Which peer a command talks to, and for whom: options that the users' commands share."""

from __future__ import annotations

import getpass
import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Final

from qns.client import Client
from qns.client.address import DEFAULT_PEER
from qns.d2q.shipped import SHIPPED
from qns.errors import QnsError

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])\Z")


def add_peer_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--peer", metavar="URL", help=f"the peer; otherwise $QNS_PEER, else {DEFAULT_PEER}"
    )
    parser.add_argument(
        "--owner", metavar="NAME", help="whose subscriptions; otherwise $QNS_OWNER, else your login"
    )


def add_reading_schema_option(parser: ArgumentParser) -> None:
    """Optional, unlike elsewhere: without a schema an event can be shown, as the texts it has."""
    parser.add_argument(
        "--schema",
        metavar="SCHEMA",
        help=f"{' or '.join(SHIPPED)}, or a .dtd or .xml file: values in --json get their types",
    )


def client_of(args: Namespace, *, patience_s: float = 0.0) -> Client:
    """The client that the options ask for; a command that cannot reach its peer says so at once."""
    peer = args.peer or os.environ.get("QNS_PEER") or DEFAULT_PEER
    owner = args.owner or os.environ.get("QNS_OWNER") or _login()
    schema = getattr(args, "schema", None)
    return Client(peer, owner, schema=schema, patience_s=patience_s)


def duration(text: str) -> float:
    """Seconds, from `30d`, `12h`, `90s`."""
    found = _DURATION.match(text)
    if found is None or float(found[1]) == 0:
        raise ArgumentTypeError(f"{text!r} is no duration: write it as 90s, 45m, 12h, 30d or 2w")
    return float(found[1]) * _UNITS[found[2]]


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without an entry, as in some containers
        raise QnsError(
            "nobody is logged in here", remedy="say who asks: --owner NAME, or set QNS_OWNER"
        ) from None
