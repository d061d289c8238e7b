"""`qns peer connections`: tests the connections of a running peer to every other one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.findings import show_findings
from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.screen import Screen
from qns.runtime.findings import Finding, Verdict

_DESCRIPTION = """
Lets a running peer call every other peer once, and prints for each what it found, with a remedy:
whether it answers, how fast, for which organisation and with which federation document, how much
its clock differs, why it refuses the requests of this peer, and whether it can reach this peer.
Exit status: 0, or 1 if something is not in order.
"""
_EXAMPLES = ("qns peer connections services/peer/inps.toml",)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "connections", "test the connections to other peers", _DESCRIPTION, _EXAMPLES
    )
    add_peer_arguments(parser, "one JSON object per finding")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    answer = ask_peer(args, "connections")
    findings = [
        Finding(Verdict(each["verdict"]), each["what"], each["words"], each["remedy"])
        for each in answer["findings"]
    ]
    show_findings(screen, findings)
    if not findings and not screen.as_json:
        screen.line("there is no other member")
    return int(any(finding.verdict is not Verdict.OK for finding in findings))
