"""publiccode.yml has every mandatory key and agrees with pyproject.toml and CHANGELOG.md."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from qns import __version__

ROOT = Path(__file__).parents[1]
LINES = (ROOT / "publiccode.yml").read_text(encoding="utf-8").splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

MANDATORY = (
    "publiccodeYmlVersion",
    "name",
    "url",
    "softwareVersion",
    "releaseDate",
    "platforms",
    "categories",
    "developmentStatus",
    "softwareType",
    "description",
    "legal",
    "maintenance",
    "localisation",
)


def value(key: str) -> str:
    """Returns the value of the only line that has the key, at any depth, without quotes."""
    (line,) = [line for line in LINES if line.strip().startswith(f"{key}:")]
    return line.partition(":")[2].strip().strip('"')


@pytest.mark.parametrize("key", MANDATORY)
def test_publiccode_has_the_mandatory_key(key: str) -> None:
    assert any(line.startswith(f"{key}:") for line in LINES)


def test_publiccode_version_is_the_version_of_the_project() -> None:
    assert value("softwareVersion") == PROJECT["version"]


def test_publiccode_release_is_dated_as_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert f"## {value('softwareVersion')} — {value('releaseDate')}" in changelog


def test_package_version_is_the_version_of_the_project() -> None:
    assert __version__ == PROJECT["version"]


def test_publiccode_licence_is_the_licence_of_the_project() -> None:
    assert value("license") == PROJECT["license"]


def test_publiccode_short_description_has_at_most_150_characters() -> None:
    assert 0 < len(value("shortDescription")) <= 150
