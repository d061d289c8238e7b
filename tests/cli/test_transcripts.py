"""Tests of the documentation: transcripts equal the output, every command has one."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

import pytest

from qns.cli.main import COMMANDS, new_parser
from tests.cli.conftest import ROOT, Cli
from tests.cli.transcripts import PAGES, Step, output_of, steps

ALL_STEPS = [
    pytest.param(step, id=f"{page}: {step.command[:60]}") for page in PAGES for step in steps(page)
]


def commands() -> list[str]:
    (sub,) = (a for a in new_parser()._actions if isinstance(a, _SubParsersAction))
    return list(sub.choices)


def help_examples(text: str) -> list[str]:
    """Returns the examples at the end of a help text, each on one line."""
    _, found, examples = text.partition("examples:\n")
    assert found, "the help ends with examples"
    return [line.strip() for line in re.sub(r"\\\n\s*", "", examples).splitlines() if line.strip()]


@pytest.mark.parametrize("step", ALL_STEPS)
def test_transcript_equals_the_output_of_the_command(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert output_of(step.command) == step.printed


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    shown = " ".join(step.command for step in steps("docs/cli.md"))
    for command in commands():
        assert f"\n## qns {command}\n" in page
        assert f"qns {command}" in shown
    assert len(commands()) == len(COMMANDS)


def parsers(parser: ArgumentParser) -> Iterator[ArgumentParser]:
    """Yields the parsers of all commands below this one, at every depth."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for each in action.choices.values():
                yield each
                yield from parsers(each)


def test_every_option_is_documented_in_the_section_of_its_command() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    general = page.partition("\n## ")[0]
    for parser in parsers(new_parser()):
        name = parser.prog.split()[1]
        section = page.partition(f"\n## qns {name}\n")[2].partition("\n## ")[0]
        for action in parser._actions:
            for option in action.option_strings:
                is_shown = option in section or option in general
                assert is_shown or option in ("-h", "--help"), f"{parser.prog} {option}"


def test_help_of_every_command_of_an_operator_is_documented() -> None:
    printed = {step.command: step.printed for step in steps("docs/cli.md")}
    for parser in parsers(new_parser()):
        if parser.prog.startswith("qns peer "):
            assert f"{parser.prog} --help" in printed


# Their examples need a running peer; test_users.py runs them.
OF_USERS = {
    *("subscribe", "unsubscribe", "subscriptions", "pause", "resume", "renew"),
    *("publish", "pull", "watch"),
}
# Their examples take minutes. Here they are only parsed; their own tests run small ones.
EVALUATIONS = {"savings", "pipeline", "lab"}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["", *(each for each in commands() if each not in OF_USERS)])
def test_examples_of_every_help_text_work(
    command: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = cli(*command.split(), "--help")
    assert outcome.status == 0
    for example in help_examples(outcome.out):
        assert "qns" in example.split()
        if command in EVALUATIONS:
            new_parser().parse_args(shlex.split(example)[1:])
            continue
        printed = output_of(example)
        assert printed
        assert "error:" not in printed


def test_example_files_have_the_documented_sizes() -> None:
    for federation, number in (("agencies", (4, 2)), ("weather", (10, 10))):
        folder = Path(ROOT / "examples" / federation)
        lines = (folder / "subscriptions.tsv").read_text(encoding="utf-8").splitlines()
        events = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
        assert (sum("\t" in line for line in lines), len(events)) == number
