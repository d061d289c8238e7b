"""The locks in constraints/ hold a fitting version of each dependency of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS_OF_LOCK = {"core": [], "dev": ["dev"], "bench": ["bench"]}
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)
REMEDY = "run `make lock` and commit constraints/"


def lock_text(lock: str) -> str:
    return (ROOT / "constraints" / f"{lock}.txt").read_text(encoding="utf-8")


def pinned_versions(text: str) -> dict[str, list[str]]:
    """Returns each package's versions; markers may give one package several of them."""
    versions: dict[str, list[str]] = {}
    for name, version in PINNED.findall(text):
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


def requirements_of_extra(extra: str) -> Iterator[Requirement]:
    """Yields what the extra requires, including the extras of QNS that it refers to."""
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if requirement.name == PROJECT["name"]:
            for referred in requirement.extras:
                yield from requirements_of_extra(referred)
        else:
            yield requirement


def requirements_of_lock(lock: str) -> Iterator[Requirement]:
    yield from map(Requirement, PROJECT["dependencies"])
    yield from map(Requirement, PYPROJECT["dependency-groups"]["build"])
    for extra in EXTRAS_OF_LOCK[lock]:
        yield from requirements_of_extra(extra)


@pytest.mark.parametrize("lock", EXTRAS_OF_LOCK)
def test_lock_has_a_fitting_version_of_every_dependency(lock: str) -> None:
    pinned = pinned_versions(lock_text(lock))
    for requirement in requirements_of_lock(lock):
        versions = pinned.get(canonicalize_name(requirement.name))
        assert versions, f"{requirement.name} is missing in the lock {lock}: {REMEDY}"
        for version in versions:
            assert requirement.specifier.contains(version), (
                f"the lock {lock} has {requirement.name} {version}, which does not satisfy "
                f"{requirement.specifier}: {REMEDY}"
            )


def test_every_extra_is_in_a_lock() -> None:
    locked = {name for lock in EXTRAS_OF_LOCK for name in pinned_versions(lock_text(lock))}
    for extra in PROJECT["optional-dependencies"]:
        for requirement in requirements_of_extra(extra):
            assert canonicalize_name(requirement.name) in locked, f"{requirement.name}: {REMEDY}"


def test_build_backend_of_the_lock_is_the_one_that_the_build_requires() -> None:
    locked = set(PYPROJECT["dependency-groups"]["build"])
    assert set(PYPROJECT["build-system"]["requires"]) <= locked


def test_locks_agree_on_every_version() -> None:
    versions: dict[str, set[tuple[str, ...]]] = {}
    for lock in EXTRAS_OF_LOCK:
        for name, pinned in pinned_versions(lock_text(lock)).items():
            versions.setdefault(name, set()).add(tuple(sorted(pinned)))
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("lock", EXTRAS_OF_LOCK)
def test_lock_has_hashes_and_no_address_of_a_package_index(lock: str) -> None:
    text = lock_text(lock)
    pins = [entry for entry in text.split("\n") if PINNED.match(entry)]
    assert pins
    assert all(entry.endswith("\\") for entry in pins), "a pinned version has no hash"
    assert "://" not in text


def test_missing_and_unfitting_pins_are_noticed() -> None:
    pinned = pinned_versions("a-b==1.0 ; python_full_version < '3.12' \\\na_b==2.0 \\\n")
    assert pinned == {"a-b": ["1.0", "2.0"]}
    assert not Requirement("a-b>=2").specifier.contains("1.0")
