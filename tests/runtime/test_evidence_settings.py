"""The section [evidence] of a configuration, and what `qns peer check` says of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from qns.errors import QnsError
from qns.evidence import timestamps
from qns.runtime.configuration import read_configuration
from qns.runtime.evidence_checks import check_evidence
from qns.runtime.findings import Finding, Verdict
from tests.certificates import certificate
from tests.evidence.authority import needs_openssl, new_authority, serving
from tests.runtime.peers import agencies_on_loopback, configure, free_ports


def configured(folder: Path, section: str) -> Path:
    (folder / "tsa.pem").write_text(certificate("CoC").certificate)
    return configure(folder, agencies_on_loopback(), "INPS", f"[evidence]\n{section}\n")


def test_without_the_section_no_evidence_is_kept(tmp_path: Path) -> None:
    path = configure(tmp_path, agencies_on_loopback(), "INPS", "")
    assert read_configuration(path).evidence is None


def test_days_become_seconds_and_timestamps_are_optional(tmp_path: Path) -> None:
    settings = read_configuration(configured(tmp_path, "keep_days = 0.5")).evidence
    assert settings is not None
    assert (settings.keep_s, settings.timestamps) == (43_200.0, None)


def test_authority_is_read_from_the_folder_of_the_configuration(tmp_path: Path) -> None:
    section = 'keep_days = 1\ntimestamps = "http://tsa/"\ntimestamp_authority = "tsa.pem"'
    settings = read_configuration(configured(tmp_path, section)).evidence
    assert settings is not None
    assert settings.timestamps is not None
    assert settings.timestamps.every_s == 60.0
    assert settings.timestamps.authority.certificates == (certificate("CoC").certificate,)


_AUTHORITY = 'timestamp_authority = "tsa.pem"'
WRONG = {
    "": "keep_days is missing",
    "keep_days = 0": "is not in range",
    "keep_days = true": "is not in range",
    "keep_days = nan": "is not in range",
    'keep_days = "long"': "is not in range",
    "keep_days = 40000": "at most 36,525",
    "keep_days = 1\nmore = 1": "unknown key of [evidence]",
    f"keep_days = 1\n{_AUTHORITY}": "timestamps is missing",
    'keep_days = 1\ntimestamps = "http://tsa/"': "timestamp_authority is missing",
    f'keep_days = 1\ntimestamps = "ftp://tsa/"\n{_AUTHORITY}': "no URL of a timestamping authority",
    f'keep_days = 1\ntimestamps = "http://u:p@tsa/"\n{_AUTHORITY}': "no URL of a timestamping",
    'keep_days = 1\ntimestamps = "http://tsa/"\ntimestamp_authority = "none.pem"': (
        "the certificate cannot be read"
    ),
    'keep_days = 1\ntimestamps = "http://tsa/"\ntimestamp_authority = "INPS.toml"': (
        "this is no file of certificates"
    ),
    f'keep_days = 1\ntimestamps = "http://tsa/"\n{_AUTHORITY}\ntimestamp_every_s = 0': (
        "is not in range"
    ),
}


@pytest.mark.parametrize("section", WRONG)
def test_wrong_section_is_refused_with_its_key(tmp_path: Path, section: str) -> None:
    with pytest.raises(QnsError) as refused:
        read_configuration(configured(tmp_path, section))
    assert WRONG[section] in str(refused.value)
    assert "evidence" in refused.value.place


def test_missing_library_is_named_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timestamps, "find_spec", lambda _: None)
    section = f'keep_days = 1\ntimestamps = "http://tsa/"\n{_AUTHORITY}'
    with pytest.raises(QnsError, match=r"qns\[evidence\]"):
        read_configuration(configured(tmp_path, section))


def findings(path: Path) -> list[Finding]:
    async def found() -> list[Finding]:
        return [each async for each in check_evidence(read_configuration(path))]

    return asyncio.run(found())


@needs_openssl
def test_check_gets_a_timestamp_from_the_authority(tmp_path: Path) -> None:
    with serving(new_authority(tmp_path / "tsa")) as authority:
        section = f'keep_days = 1\ntimestamps = "{authority.url}"\ntimestamp_authority = '
        path = configured(tmp_path, f'{section}"tsa/root.pem"')
        assert [each.verdict for each in findings(path)] == [Verdict.OK, Verdict.OK]
        path = configured(tmp_path, f"{section}'tsa.pem'")  # of somebody else
        assert [each.verdict for each in findings(path)] == [Verdict.OK, Verdict.WARN]


def test_check_warns_of_an_authority_that_does_not_answer(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    section = f'keep_days = 1\ntimestamps = "http://127.0.0.1:{port}/"\n{_AUTHORITY}'
    _, warned = findings(configured(tmp_path, section))
    assert warned.verdict is Verdict.WARN
    assert "nobody listens there" in warned.words
