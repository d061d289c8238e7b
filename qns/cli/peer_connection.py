"""Peer connection: the options of the users' commands, and the client that they describe."""

from __future__ import annotations

import getpass
import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from math import inf
from typing import Final

from qns.cli.options import add_json_option
from qns.client import Client
from qns.client.address import DEFAULT_PEER
from qns.d2q.shipped import SHIPPED
from qns.errors import QnsError

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])\Z")


def add_peer_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--peer", metavar="URL", help=f"the peer (default: $QNS_PEER, or {DEFAULT_PEER})"
    )
    parser.add_argument(
        "--owner",
        metavar="NAME",
        help="the owner of the subscriptions (default: $QNS_OWNER, or your login)",
    )


def add_reading_options(parser: ArgumentParser) -> None:
    """Adds --schema and --json. Without a schema, the values of an event are strings."""
    parser.add_argument(
        "--schema",
        metavar="SCHEMA",
        help=f"{' or '.join(SHIPPED)}, or a .dtd or .xml file; gives values in --json their types",
    )
    add_json_option(
        parser, "one JSON object per delivery: number, cursor, event; per loss: dropped"
    )


def client_of(args: Namespace) -> Client:
    """Returns the client that the options describe. It does not repeat requests."""
    peer = args.peer or os.environ.get("QNS_PEER") or DEFAULT_PEER
    owner = args.owner or os.environ.get("QNS_OWNER") or _login()
    schema = getattr(args, "schema", None)
    return Client(peer, owner, schema=schema, patience_s=0.0)


def add_lifetime_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--for",
        dest="lifetime_s",
        metavar="TIME",
        type=_duration,
        default=inf,
        help="the lifetime: 90s, 45m, 12h, 30d or 2w (default: unlimited)",
    )


def _duration(text: str) -> float:
    """Returns the seconds of a text such as `30d`, `12h` or `90s`."""
    found = _DURATION.match(text)
    if found is None or float(found[1]) == 0:
        raise ArgumentTypeError(f"{text!r} is no duration: write it as 90s, 45m, 12h, 30d or 2w")
    return float(found[1]) * _UNITS[found[2]]


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the user has no entry, as in some containers
        raise QnsError(
            "the login name is unknown", remedy="give --owner NAME, or set QNS_OWNER"
        ) from None
