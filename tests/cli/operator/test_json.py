"""Every command of an operator prints JSON with `--json`, and nothing else."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qns.cli.main import new_parser
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from tests.cli.conftest import Cli
from tests.cli.operator.test_dead_letters import letters, make_dead_letter, subscribed
from tests.runtime.peers import (
    PeerProcess,
    agencies_on_loopback,
    eventually,
    peer_in,
    running,
)

__all__ = ["subscribed"]

CASES: dict[str, tuple[str, set[str]]] = {
    "check": ("{config}", {"verdict", "what", "words"}),
    "status": ("{config}", {"status", "reasons", "details", "pid"}),
    "tables": ("{config}", {"merge", "views", "external"}),
    "connections": ("{config}", {"verdict", "what", "words"}),
    "dead-letters list": ("{config}", {"rows", "total"}),
    "document install": ("{config} {folder}/next.xml", {"version", "before", "changes"}),
    "drain": ("{config}", {"owed", "custody"}),
    "resume": ("{config}", {"organisation"}),
    "report": ("{config} {folder}/report.zip", {"file", "bytes"}),
    "backup": ("{config} {folder}/copy.db", {"file", "bytes", "encrypted"}),
    "backup-key": ("{folder}/a.key", {"file", "key"}),
    "restore": ("{config} {folder}/copy.db --overwrite", {"file"}),
}
"""The commands in an order in which they succeed; `restore` runs when the peer has stopped."""
OF_LETTERS = ("dead-letters show", "dead-letters redeliver", "dead-letters drop")


def commands(parser: ArgumentParser, name: str = "") -> Iterator[str]:
    """Yields the commands below a parser that have the option --json."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for word, each in action.choices.items():
                yield from commands(each, f"{name} {word}".strip())
        elif "--json" in action.option_strings:
            yield name


def test_every_command_of_an_operator_has_the_option_and_is_tried_here() -> None:
    found = [
        each.removeprefix("peer ") for each in commands(new_parser()) if each.startswith("peer ")
    ]
    assert sorted(found) == sorted((*CASES, *OF_LETTERS))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PeerProcess, Path]]:
    folder = tmp_path_factory.mktemp("json")
    first: Federation = agencies_on_loopback()
    (folder / "next.xml").write_bytes(write_federation(first.hosting("CoC", ["Enterprise"])))
    peer = peer_in(folder, first, "INPS")
    with running([peer]):
        yield peer, folder


@pytest.mark.parametrize("command", CASES)
def test_command_prints_json_lines(
    outcomes: tuple[PeerProcess, Path], cli: Cli, command: str
) -> None:
    peer, folder = outcomes
    copy = folder / "copy.db"
    if command == "restore":
        if not copy.exists():  # this test alone was chosen
            assert cli("peer", "backup", peer.configuration, copy).status == 0
        assert peer.stop() == 0
    words, keys = CASES[command]
    given = words.format(config=peer.configuration, folder=folder).split()
    outcome = cli("peer", *command.split(), *given, "--json")
    assert not outcome.err
    lines: list[Any] = outcome.json_lines
    assert lines
    assert all(keys <= line.keys() for line in lines), lines


def test_commands_for_dead_letters_print_json(subscribed: dict[str, PeerProcess], cli: Cli) -> None:
    coc = subscribed["CoC"]
    number = make_dead_letter(cli, subscribed, "j1")["number"]
    of = (coc.configuration, number, "--json")
    shown = cli("peer", "dead-letters", "show", *of).json
    assert (shown["number"], "payload" in shown) == (number, False)
    assert "data" in cli("peer", "dead-letters", "show", *of, "--payload").json["payload"]
    missing = cli("peer", "dead-letters", "redeliver", coc.configuration, 999, "--json")
    assert (missing.status, missing.json["done"]) == (1, [])
    assert cli("peer", "dead-letters", "redeliver", *of).json == {"done": [number], "refused": []}
    eventually(lambda: letters(cli, coc) != [], "INPS has rejected it again")
    again = make_dead_letter(cli, subscribed, "j2")["number"]
    dropped = cli("peer", "dead-letters", "drop", coc.configuration, again, "--yes", "--json")
    assert dropped.json == {"done": [again], "refused": []}
    assert again not in [each["number"] for each in letters(cli, coc)]
