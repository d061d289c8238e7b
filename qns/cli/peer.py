"""`qns peer`: runs the peer of one organisation, or checks whether it could run."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from pathlib import Path

from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.errors import QnsError
from qns.runtime.configuration import read_configuration
from qns.runtime.logs import configure_logs

_DESCRIPTION = """
Runs the peer of one organisation: its SOAP ports, its deliveries and what it owes to others.
CONFIG.toml says whose peer it is; docs/peer.md tells the rest.
"""
_EXAMPLES = (
    "qns peer check services/peer/inps.toml",
    "qns peer run --help",
)
_RUN = """
Serves until it is stopped with Ctrl-C or SIGTERM. One line on standard output says when it is
ready and where it listens; logs go to standard error.
"""
_RUN_EXAMPLES = ("qns peer run services/peer/inps.toml",)
_CHECK = """
Tests what a peer needs: the configuration, the federation document and its schema, the store
and its disk, the port, the other peers and their clocks. Changes nothing, and may be asked
while the peer runs. Exit status 1 if it could not work.
"""
_CHECK_EXAMPLES = ("qns peer check services/peer/inps.toml",)
_STYLES = {"OK": "green", "WARN": "yellow", "FAIL": "bold red"}


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "peer", "run the peer of an organisation, or check it", _DESCRIPTION, _EXAMPLES
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    running = new_command(actions, "run", "serve until stopped", _RUN, _RUN_EXAMPLES)
    running.add_argument("configuration", metavar="CONFIG.toml", type=Path)
    running.set_defaults(run=run)
    checking = new_command(actions, "check", "test what it needs", _CHECK, _CHECK_EXAMPLES)
    checking.add_argument("configuration", metavar="CONFIG.toml", type=Path)
    add_json_option(checking, "one JSON object per finding")
    checking.set_defaults(run=check)
    return parser


def run(args: Namespace, _: Screen) -> int:
    from qns.runtime import process

    configuration = read_configuration(args.configuration)
    configure_logs(configuration.log_level, configuration.log_format)
    process.run(configuration)
    return 0


def check(args: Namespace, screen: Screen) -> int:
    from qns.runtime import checks

    try:
        configuration = read_configuration(args.configuration)
    except QnsError as error:
        place = f"{error.place}: " if error.place else ""
        words = f"{place}{error.problem}"
        findings = [checks.Finding(checks.Verdict.FAIL, "configuration", words, error.remedy)]
    else:
        findings = asyncio.run(checks.check(configuration))
    width = max(len(finding.what) for finding in findings)
    for verdict, what, words, remedy in findings:
        if screen.as_json:
            screen.json({"verdict": verdict.value, "what": what, "words": words, "remedy": remedy})
            continue
        screen.line(
            (f"{verdict.value:<5}", _STYLES[verdict.value]),
            visible(f"{what:<{width}}  {words}" + (f" ({remedy})" if remedy else "")),
        )
    return int(any(finding.verdict is checks.Verdict.FAIL for finding in findings))
