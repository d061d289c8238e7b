"""The README's examples work as printed, and the links of all pages lead to files."""

import re
from pathlib import Path

import pytest

from qns.cli.main import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(
    path.relative_to(ROOT)
    for folder in (".", "docs", "examples/**", "services/**")
    for path in ROOT.glob(f"{folder}/*.md")
    if "node_modules" not in path.parts  # what npm installs has pages of its own
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_relative_links_lead_to_files(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path = target.partition("#")[0]
        if path and "://" not in path:
            assert (ROOT / page).parent.joinpath(path).exists(), f"{page} links to {target}"


def test_python_example_of_the_readme_runs() -> None:
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})


def test_first_screen_of_the_readme_shows_what_qns_match_prints(tmp_path: Path, capsys) -> None:
    subscription, event, transcript = blocks("")[0], blocks("json")[0], blocks("console")[0]
    subscriptions, events = tmp_path / "subscriptions.tsv", tmp_path / "events.jsonl"
    subscriptions.write_text(f"U22\t{subscription.strip()}\n", encoding="utf-8")
    events.write_text(event.replace("\n", " ").strip() + "\n", encoding="utf-8")
    command, printed = transcript.split("\n", 1)
    words = command.removeprefix("$ qns ").split()
    words = [
        {"subscriptions.tsv": str(subscriptions), "events.jsonl": str(events)}.get(w, w)
        for w in words
    ]
    assert main(words) == 0
    assert capsys.readouterr().out == printed
