"""The README's own examples work as printed."""

import re
from pathlib import Path

from qns.cli.main import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_python_example_runs() -> None:
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})


def test_the_first_screen_shows_what_qns_match_prints(tmp_path: Path, capsys) -> None:
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
