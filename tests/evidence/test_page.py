"""docs/evidence.md: its program verifies evidence without QNS, and refuses what is altered."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.authority import needs_openssl

pytestmark = needs_openssl

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/evidence"
PAGE = (ROOT / "docs/evidence.md").read_text("utf-8")


def outcome(folder: Path, fields: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Runs the program of the page on evidence, in an empty folder without QNS."""
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "verify.py").write_text(program, "utf-8")
    (folder / "evidence.json").write_text(json.dumps(fields), "utf-8")
    trusted = [EXAMPLE / "weather.anchor", EXAMPLE / "tsa.pem"]
    return subprocess.run(
        [sys.executable, "-I", "verify.py", "evidence.json", *map(str, trusted)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def genuine() -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((EXAMPLE / "gust-1.json").read_text("utf-8"))
    return fields


def test_program_of_the_page_verifies_the_example(tmp_path: Path) -> None:
    done = outcome(tmp_path, genuine())
    assert (done.returncode, done.stdout) == (0, "every link holds\n"), done.stderr
    assert genuine()["proof"]["hashes"]  # otherwise the program would not climb


ALTERED = {
    "event": ("event -> leaf", lambda f: f["event"].update(text=f["event"]["text"] + " ")),
    "leaf": ("leaf -> root", lambda f: f["leaf"].update(number=2)),
    "signature": (
        "pkeyutl",
        lambda f: f["seal"].update(signature="A" * 86 + "=="),
    ),
    "fingerprint": (
        "signature -> certificate",
        lambda f: f["seal"].update(certificate_sha256="0" * 64),
    ),
    "document": (
        "InvalidSignature",
        lambda f: f.update(document=f["document"].replace('value="0.3"', 'value="0.4"')),
    ),
    "timestamp": ("root -> timestamp", lambda f: f["timestamp"].update(root="0" * 64)),
}


@pytest.mark.parametrize("part", ALTERED)
def test_program_of_the_page_refuses_an_altered_part(tmp_path: Path, part: str) -> None:
    words, alter = ALTERED[part]
    fields = genuine()
    alter(fields)
    done = outcome(tmp_path, fields)
    assert done.returncode != 0
    assert words in done.stderr


def test_page_names_every_field_of_the_file() -> None:
    def names(value: object) -> set[str]:
        if not isinstance(value, dict):
            return set()
        return {*value, *(inner for each in value.values() for inner in names(each))}

    for name in names(genuine()):
        assert f"`{name}`" in PAGE, name
