"""The table of mutants is applicable, and the page docs/mutants.md shows it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants import __main__ as command
from tests.mutants.mutant import Mutant
from tests.mutants.page import PAGE, known_results, page_text
from tests.mutants.table import MUTANTS, STATIC, concerned_tests
from tests.mutants.trial import ROOT, Verdict

_FEWEST = 124


def test_table_has_enough_mutants_with_different_names() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= _FEWEST


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_replaces_a_text_that_occurs_once_by_valid_code(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    mutated = mutant.mutated(source)
    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))


def test_text_that_does_not_occur_once_is_rejected() -> None:
    mutant = Mutant("m", "f.py", "k", "It breaks.", old="a", new="b")
    assert mutant.mutated("xay") == "xby"
    for source in ("x", "aa"):
        with pytest.raises(ValueError, match="occurs"):
            mutant.mutated(source)


def test_tests_of_every_mutant_exist() -> None:
    stages = {stage for mutant in MUTANTS for stage in concerned_tests(mutant)}
    for path in {*STATIC, *(path for stage in stages for path in stage)}:
        assert Path(ROOT, path).exists(), path


def test_page_lists_every_mutant_with_its_result() -> None:
    results = known_results()
    assert PAGE.read_text(encoding="utf-8") == page_text(results), (
        "run python -m tests.mutants --page"
    )


def test_page_shows_no_survivor_without_an_explanation() -> None:
    results = known_results()
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    surprises = [
        name for name, caught_by in results.items() if not caught_by and not by_name[name].survives
    ]
    assert not surprises


def test_results_are_read_back_from_the_page(tmp_path: Path) -> None:
    results = {MUTANTS[0].name: "tests/x.py::test_y[a]", MUTANTS[1].name: ""}
    page = tmp_path / "page.md"
    page.write_text(page_text(results), encoding="utf-8")
    assert known_results(page) == results


def test_untried_mutants_are_tried_and_each_result_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    results = {mutant.name: "tests/x.py::test_y" for mutant in MUTANTS[2:]}
    page.write_text(page_text(results), encoding="utf-8")
    written: list[int] = []

    def attempt(mutant: Mutant, copy: Path, before: str, seeds: int) -> Verdict:
        assert (before, seeds) == ("", 7)
        return Verdict(mutant, "tests/z.py::test_z", 1.0)

    def known() -> dict[str, str]:
        written.append(len(known_results(page)))
        return known_results(page)

    monkeypatch.setattr(command, "PAGE", page)
    monkeypatch.setattr(command, "known_results", known)
    monkeypatch.setattr(command, "make_copy", lambda folder: folder)
    monkeypatch.setattr(command, "try_mutant", attempt)
    assert command.main(["--untried", "--seeds", "7", "--write"]) == 0
    assert written == [len(MUTANTS) - 2, len(MUTANTS) - 2, len(MUTANTS) - 1]
    assert len(known_results(page)) == len(MUTANTS)
    assert command.main(["--untried", "--write"]) == 0  # nothing is left
    assert known_results(page)[MUTANTS[0].name] == "tests/z.py::test_z"
