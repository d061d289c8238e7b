"""`qns certificates`: makes keys and certificates that TLS accepts, and never overwrites."""

from __future__ import annotations

import ssl
from pathlib import Path
from time import time

import pytest

from qns.federation.new_certificate import ALGORITHMS
from qns.runtime.key_files import KeyFiles
from qns.runtime.own_certificate import OwnCertificate
from tests.certificates import expired
from tests.cli.conftest import Cli


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_key_and_certificate_fit_and_only_this_user_reads_the_key(
    cli: Cli, tmp_path: Path, algorithm: str
) -> None:
    cli("certificates", "make", "INPS", "--folder", str(tmp_path), "--algorithm", algorithm)
    for kind in ("tls", "seal"):
        key, pem = (tmp_path / f"INPS.{kind}.{end}" for end in ("key", "pem"))
        assert key.stat().st_mode & 0o777 == 0o600
        own = OwnCertificate.read(KeyFiles(pem, key))
        assert own.certificate.subject == "CN=INPS"
        assert 364 * 86_400 < own.certificate.ends - time() < 366 * 86_400
        own.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))


def test_existing_file_is_not_overwritten_and_nothing_is_made(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "INPS.seal.pem").write_text("mine")
    failed = cli("certificates", "make", "INPS", "--folder", str(tmp_path))
    assert failed.status != 0
    assert "exists already" in failed.err
    assert [each.name for each in tmp_path.iterdir()] == ["INPS.seal.pem"]
    assert (tmp_path / "INPS.seal.pem").read_text() == "mine"


def test_show_prints_what_make_has_made(cli: Cli, tmp_path: Path) -> None:
    made = cli(
        *("certificates", "make", "INPS", "--folder", str(tmp_path)),
        *("--only", "tls", "--days", "30", "--json"),
    ).json
    assert made["kind"] == "tls"
    shown = cli("certificates", "show", made["file"], "--json").json
    assert shown["fingerprint"] == made["fingerprint"]
    assert shown["subject"] == "CN=INPS"
    assert shown["valid"] is True
    words = cli("certificates", "show", made["file"]).out
    assert made["fingerprint"] in words


def test_show_fails_for_a_certificate_that_is_not_valid(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.pem").write_text(expired("INPS").certificate)
    shown = cli("certificates", "show", tmp_path / "old.pem")
    assert shown.status == 1
    assert "not valid now" in shown.out


@pytest.mark.parametrize(
    "arguments", [["a/b"], ["INPS", "--days", "0"], ["INPS", "--days", "9999"]]
)
def test_bad_argument_is_refused_and_nothing_is_made(
    cli: Cli, tmp_path: Path, arguments: list[str]
) -> None:
    failed = cli("certificates", "make", *arguments, "--folder", str(tmp_path))
    assert failed.status != 0
    assert failed.err
    assert not list(tmp_path.iterdir())
