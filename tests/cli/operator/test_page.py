"""Tests of docs/operations.md: every transcript runs, and every operator's command has one."""

from __future__ import annotations

from pathlib import Path

from qns.cli.operator.registry import OPERATOR_COMMANDS
from tests.cli.operator.page import PAGE, operator, shape
from tests.cli.transcripts import steps


def test_transcripts_of_the_operations_page_have_the_shape_of_the_output(tmp_path: Path) -> None:
    with operator(tmp_path) as acting:
        for step in steps(PAGE):
            assert shape(acting.output_of(step.command)) == shape(step.printed), step.command


def test_every_command_of_an_operator_has_a_transcript() -> None:
    shown = "\n".join(step.command for step in steps(PAGE))
    for command in OPERATOR_COMMANDS:
        name = command.__name__.rpartition(".")[2].replace("_", "-")
        assert f"qns peer {name} " in shown, name


def test_every_command_for_dead_letters_has_a_transcript_that_succeeds() -> None:
    shown = [step for step in steps(PAGE) if "dead-letters" in step.command]
    for name in ("list", "show", "redeliver", "drop"):
        of_name = [step for step in shown if f"dead-letters {name} " in step.command]
        assert any("error" not in step.printed for step in of_name), name
