"""`qns peer`: runs the peer of one organisation, checks what it needs, or commands it.

The commands that a running peer obeys are in `qns/cli/operator`.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from pathlib import Path

from qns.cli.findings import show_findings
from qns.cli.operator.registry import OPERATOR_COMMANDS
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.screen import Screen
from qns.errors import QnsError
from qns.runtime.admin.running import find_running
from qns.runtime.configuration import read_configuration
from qns.runtime.findings import Finding, Verdict
from qns.runtime.logs import configure_logs

_DESCRIPTION = """
Runs the peer of one organisation, checks what it needs, or gives a command to the running peer.
CONFIG.toml names the organisation and the federation document; docs/peer.md describes all
settings, docs/operations.md the tasks of an operator.
"""
_EXAMPLES = (
    "qns peer check services/peer/inps.toml",
    "qns peer run --help",
)
_RUN = """
Runs a peer until it is stopped with Ctrl-C or SIGTERM. It prints one line with its addresses
to standard output when it is ready, and logs to standard error.
"""
_RUN_EXAMPLES = ("qns peer run services/peer/inps.toml",)
_CHECK = """
Checks what a peer needs: the configuration, the federation document and its schema, the store
and its disk, the port, the other peers and their clocks. Changes nothing, and can be used
while the peer runs. Exit status: 0, or 1 if the peer could not work.
"""
_CHECK_EXAMPLES = ("qns peer check services/peer/inps.toml",)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(commands, "peer", "run, check or operate a peer", _DESCRIPTION, _EXAMPLES)
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    running = new_command(actions, "run", "run a peer until it is stopped", _RUN, _RUN_EXAMPLES)
    running.add_argument("configuration", metavar="CONFIG.toml", type=Path)
    running.set_defaults(run=run)
    checking = new_command(actions, "check", "check what a peer needs", _CHECK, _CHECK_EXAMPLES)
    checking.add_argument("configuration", metavar="CONFIG.toml", type=Path)
    add_json_option(checking, "one JSON object per finding")
    checking.set_defaults(run=check)
    for command in OPERATOR_COMMANDS:
        command.add(actions)
    return parser


def run(args: Namespace, _: Screen) -> int:
    from qns.runtime import process

    configuration = read_configuration(args.configuration)
    configure_logs(configuration.log_level, configuration.log_format)
    process.run(configuration, args.configuration)
    return 0


def check(args: Namespace, screen: Screen) -> int:
    from qns.runtime import checks

    try:
        configuration = read_configuration(args.configuration)
    except QnsError as error:
        place = f"{error.place}: " if error.place else ""
        message = f"{place}{error.problem}"
        findings = [Finding(Verdict.FAIL, "configuration", message, error.remedy)]
    else:
        findings = asyncio.run(checks.check(configuration, find_running(configuration)))
    show_findings(screen, findings)
    return int(any(finding.verdict is Verdict.FAIL for finding in findings))
