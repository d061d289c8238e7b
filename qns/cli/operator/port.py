"""Port: the arguments that the commands of an operator share, and calling the peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from qns.cli.options import add_json_option
from qns.runtime.admin.client import OnProgress, call
from qns.runtime.configuration import read_admin_path


def add_peer_arguments(parser: ArgumentParser, json_help: str = "one JSON object") -> None:
    """Adds CONFIG.toml and --json."""
    parser.add_argument(
        "configuration",
        metavar="CONFIG.toml",
        type=Path,
        help="the configuration with which the peer was started",
    )
    add_json_option(parser, json_help)


def ask_peer(
    args: Namespace, operation: str, on_progress: OnProgress = lambda _: None, **arguments: Any
) -> dict[str, Any]:
    """Runs an operation at the peer; arguments that are None are left out."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return call(read_admin_path(args.configuration), operation, given, on_progress)
