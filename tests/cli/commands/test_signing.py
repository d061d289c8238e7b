"""Tests of `qns federation key`, `init`, `rotate`, `sign` and `verify`: signers with files only."""

from __future__ import annotations

from pathlib import Path

import pytest

from qns.federation.document_xml import read_federation
from tests.cli.conftest import Cli


@pytest.fixture
def keys(cli: Cli, tmp_path: Path) -> list[Path]:
    """Makes three root keys; the last is encrypted."""
    (tmp_path / "words").write_text("open sesame\n", "utf-8")
    found = [tmp_path / f"{name}.key" for name in "abc"]
    for path in found:
        encrypted = ["--passphrase-file", tmp_path / "words"] if path.name == "c.key" else []
        outcome = cli("federation", "key", "make", path, *encrypted)
        assert outcome.status == 0, outcome.err
    return found


@pytest.fixture
def document(cli: Cli, keys: list[Path], tmp_path: Path) -> Path:
    """Begins a document that two of the three keys have to sign, and writes its anchor."""
    path = tmp_path / "f.xml"
    outcome = cli(
        *("federation", "init", "--schema", "agencies", "-o", path, "--threshold", 2),
        *root_keys(*keys),
        *("--anchor", tmp_path / "agencies.anchor"),
    )
    assert outcome.status == 0, outcome.err
    assert outcome.err.startswith("it needs 2 of the root keys: qns federation sign\n")
    outcome = cli("federation", "add", path, "INPS", "--hosts", "Enterprise", "-o", path)
    assert outcome.status == 0, outcome.err
    return path


def root_keys(*keys: Path) -> list[object]:
    return [word for path in keys for word in ("--root-key", f"{path}.pub")]


def sign(cli: Cli, document: Path, *keys: Path) -> None:
    for key in keys:
        outcome = cli("federation", "sign", document, "--key", key)
        assert outcome.status == 0, outcome.err


def accepted(cli: Cli, document: Path, *words: object) -> bool:
    anchor = document.parent / "agencies.anchor"
    outcome = cli("federation", "verify", document, "--anchor", anchor, *words)
    assert outcome.status in (0, 1), outcome.err
    assert ("refused: " in outcome.out) is (outcome.status == 1)
    return outcome.status == 0


def test_two_signers_sign_one_after_the_other(cli: Cli, document: Path, keys: list[Path]) -> None:
    assert not accepted(cli, document)
    first = cli("federation", "sign", document, "--key", keys[0])
    assert "needs 2 keys of root set 1: 1 missing" in first.out
    assert not accepted(cli, document)
    words = ("--passphrase-file", document.parent / "words")
    second = cli("federation", "sign", document, "--key", keys[2], *words)
    assert "needs 2 keys of root set 1: complete" in second.out
    assert accepted(cli, document)
    found = cli("federation", "verify", document, "--json")
    assert found.json["accepted"] is True
    assert found.json["signatures"][0]["missing"] == 0
    assert cli("federation", document).out.splitlines()[1].endswith("signed by 2 of 2 keys")


def test_altered_document_is_refused(cli: Cli, document: Path, keys: list[Path]) -> None:
    sign(cli, document, *keys[:2])
    text = document.read_text("utf-8")
    document.write_text(text.replace('capability="4"', 'capability="5"'), "utf-8")
    assert not accepted(cli, document)
    found = cli("federation", "verify", document, "--anchor", document.parent / "agencies.anchor")
    assert "it is not the signature of this content" in found.out


def test_change_of_a_signed_document_drops_its_signatures_and_says_so(
    cli: Cli, document: Path, keys: list[Path]
) -> None:
    sign(cli, document, *keys[:2])
    outcome = cli("federation", "capability", document, "INPS", 8, "-o", document)
    assert outcome.err == (
        "the signatures are dropped; it needs 2 of the root keys: qns federation sign\n"
    )
    assert read_federation(document.read_bytes()).signatures == ()
    assert not accepted(cli, document)


def test_root_keys_rotate_with_signatures_of_both_sets(
    cli: Cli, document: Path, keys: list[Path]
) -> None:
    sign(cli, document, *keys[:2])
    new, later = document.with_name("d.key"), document.with_name("next.xml")
    cli("federation", "key", "make", new)
    outcome = cli(
        *("federation", "rotate", document, *root_keys(keys[1], new), "-o", later),
        *("--anchor", document.with_name("2.anchor")),
    )
    assert outcome.out.splitlines()[1] == "  root set 2 signs from now on: 2 of 2 keys"
    sign(cli, later, new, keys[1])
    assert not accepted(cli, later)
    sign(cli, later, keys[0])
    assert accepted(cli, later)
    assert accepted(cli, later, "--in-force", document)
    other = cli("federation", "verify", document, "--anchor", document.with_name("2.anchor"))
    assert "goes back to root set 1; the anchor has root set 2" in other.out


def test_expired_document_is_refused_and_renewed(
    cli: Cli, document: Path, keys: list[Path]
) -> None:
    sign(cli, document, *keys[:2])
    assert not accepted(cli, document, "--at", "2999-01-01T00:00:00Z")
    when = "2999-12-31T00:00:00+02:00"
    renewed = cli("federation", "renew", document, "--expires", when, "-o", document)
    assert "becomes 2999-12-30T22:00:00Z" in renewed.out
    sign(cli, document, *keys[:2])
    assert accepted(cli, document, "--at", "2999-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "when", ["yesterday", "0d", "9999999d", "2001-01-01T00:00:00Z", "2030-01-01T00:00:00"]
)
def test_expiry_has_to_be_a_time_to_come_with_a_zone(cli: Cli, document: Path, when: str) -> None:
    before = document.read_bytes()
    outcome = cli("federation", "renew", document, "--expires", when, "-o", document)
    assert outcome.status == 2
    assert "--expires: " in outcome.err
    assert document.read_bytes() == before


def test_private_key_is_never_overwritten_and_only_the_owner_can_read_it(
    cli: Cli, keys: list[Path]
) -> None:
    before = keys[0].read_bytes()
    assert keys[0].stat().st_mode & 0o777 == 0o600
    outcome = cli("federation", "key", "make", keys[0])
    assert outcome.status == 2
    assert "the file exists, and a key is never overwritten" in outcome.err
    keys[0].unlink()
    outcome = cli("federation", "key", "make", keys[0])  # its public half is still there
    assert outcome.status == 2
    assert not keys[0].exists()
    assert before.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert keys[2].read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")


def test_fingerprints_of_public_keys_are_shown(cli: Cli, keys: list[Path]) -> None:
    names = [f"{path}.pub" for path in keys]
    shown = cli("federation", "key", "show", *names).out.splitlines()
    assert [line.split()[1] for line in shown] == names
    assert cli("federation", "key", "show", *names, "--json").json[names[0]] == shown[0].split()[0]


def test_wrong_key_is_refused_and_the_document_stays(
    cli: Cli, document: Path, keys: list[Path], tmp_path: Path
) -> None:
    before = document.read_bytes()
    stranger, wrong, empty = tmp_path / "x.key", tmp_path / "wrong", tmp_path / "empty"
    cli("federation", "key", "make", stranger)
    wrong.write_text("close sesame\n", "utf-8")
    empty.write_text("\n", "utf-8")
    for words, said in (
        ([stranger], "is no key of root set 1 (sign with one of: "),
        ([f"{keys[0]}.pub"], "it is not a private key in PEM"),
        ([keys[2]], "the private key is encrypted (name its passphrase file as well)"),
        ([keys[2], "--passphrase-file", wrong], "the passphrase does not fit"),
        ([keys[2], "--passphrase-file", empty], "the passphrase is empty"),
        ([tmp_path / "none"], "cannot be read: No such file"),
    ):
        outcome = cli("federation", "sign", document, "--key", *words)
        assert (outcome.status, outcome.out) == (2, "")
        assert said in outcome.err
    assert document.read_bytes() == before


def test_private_key_that_others_can_read_is_refused(
    cli: Cli, document: Path, keys: list[Path]
) -> None:
    keys[0].chmod(0o640)
    outcome = cli("federation", "sign", document, "--key", keys[0])
    assert outcome.status == 2
    assert "other users can read the private key (run chmod 600" in outcome.err
    assert read_federation(document.read_bytes()).signatures == ()


def test_private_key_in_the_place_of_a_public_one_is_refused(cli: Cli, keys: list[Path]) -> None:
    outcome = cli("federation", "rotate", "agencies", "--root-key", keys[0])
    assert outcome.status == 2
    assert "a private key in the place of a public one" in outcome.err
