"""The configuration of a peer: valid files, and the errors for invalid ones."""

from __future__ import annotations

import logging
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from qns.errors import QnsError
from qns.federation.document_xml import write_federation
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.peer.tuning import Tuning
from qns.runtime.addresses import Listen
from qns.runtime.configuration import read_configuration
from qns.runtime.key_files import KeyFiles
from tests.runtime.peers import agencies_on_loopback, agencies_over_tls, configure

MINIMAL = 'organisation = "INPS"\nfederation = "federation.xml"\n'


def written(folder: Path, text: str) -> Path:
    (folder / "federation.xml").write_bytes(write_federation(agencies_on_loopback()))
    path = folder / "peer.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_configuration_of_two_lines_has_defaults_for_the_rest(tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    configuration = read_configuration(configure(tmp_path, federation, "INPS", ""))
    assert configuration.organisation == "INPS"
    assert configuration.federation.organisations == federation.organisations
    assert configuration.document == (tmp_path / "federation.xml").read_bytes()
    assert configuration.store == tmp_path / "INPS.db"
    assert configuration.lineage_file == tmp_path / "INPS.db.lineage"
    assert configuration.listen.url == federation["INPS"].endpoint
    assert configuration.admin == tmp_path / "INPS.db.admin"
    assert configuration.merging == "containment"
    assert not configuration.history
    assert (configuration.log_level, configuration.log_format) == (logging.INFO, "json")
    assert configuration.tuning == Tuning()


def test_configuration_reads_every_key(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        MINIMAL
        + """
store = "data/inps.db"
listen = "[::1]:0"
admin = "inps.admin"
merging = "exact"
history = true
[log]
level = "debug"
format = "text"
[tuning]
gossip_every_s = 3
notifications_per_call = 10
most_owed = inf
""",
    )
    configuration = read_configuration(path)
    assert configuration.store == tmp_path / "data/inps.db"
    assert configuration.listen == Listen("::1", 0)
    assert configuration.admin == tmp_path / "inps.admin"
    assert configuration.merging == "exact"
    assert configuration.history
    assert (configuration.log_level, configuration.log_format) == (logging.DEBUG, "text")
    expected = replace(Tuning(), gossip_every_s=3, notifications_per_call=10, most_owed=inf)
    assert configuration.tuning == expected


TLS = '[tls]\ncertificate = "INPS.tls.pem"\nkey = "INPS.tls.key"\n'
REFUSED = [
    (MINIMAL + 'merging = "exat"', "unknown merging 'exat'", "did you mean exact?"),
    ("organisation = ", "this is not TOML", "organisation = "),
    ('federation = "federation.xml"', "organisation is missing", 'organisation = "INPS"'),
    ('organisation = ""', "organisation is empty", 'organisation = "INPS"'),
    ("organisation = 3", "3 is not a text", 'in quotes, such as "INPS"'),
    ('organisation = "INPS"', "federation is missing", 'federation = "federation.xml"'),
    (MINIMAL.replace("INPS", "IMPS"), "unknown organisation 'IMPS'", "did you mean INPS"),
    (MINIMAL.replace("INPS", "x"), "unknown organisation 'x'", "known: CoC, INAIL, INPS"),
    (MINIMAL.replace("n.xml", "m.xml"), "cannot be read: No such file", "relative to its folder"),
    (MINIMAL.replace("federation.xml", "peer.toml"), "peer.toml", ""),
    (MINIMAL + 'lisen = "127.0.0.1:1"', "unknown key 'lisen'", "did you mean listen?"),
    (MINIMAL + "colour = 1", "unknown key 'colour'", "known: admin, anchor, evidence, federation"),
    (MINIMAL + 'store = ""', "store is empty", 'store = "inps.db"'),
    (MINIMAL + 'store = "/tmp"', "store: /tmp is a folder", "such as /tmp/INPS.db"),
    (MINIMAL + 'store = "."', "is a folder", "name a file in it"),
    (MINIMAL + 'listen = "8701"', "no address to listen on", "127.0.0.1:8701"),
    (MINIMAL + 'listen = "127.0.0.1"', "no address to listen on", "127.0.0.1:8701"),
    (MINIMAL + 'listen = "127.0.0.1:99999"', "no address to listen on", "127.0.0.1:8701"),
    (MINIMAL + 'listen = "127.0.0.1:1/x"', "no address to listen on", "127.0.0.1:8701"),
    (MINIMAL + 'listen = "a@127.0.0.1:1"', "no address to listen on", "127.0.0.1:8701"),
    (MINIMAL + 'listen = "0.0.0.0:8701"', "not a loopback address", "[tls]"),
    (MINIMAL + 'listen = "inps.example:8701"', "not a loopback address", "[tls]"),
    (MINIMAL + 'local = "127.0.0.1:1"', "local needs a section [tls]", "at one address, listen"),
    (MINIMAL + '[tls]\nkey = "a.key"', "certificate is missing", 'certificate = "INPS.tls.pem"'),
    (MINIMAL + '[tls]\nkeys = "a.key"', "unknown key of [tls] 'keys'", "did you mean key?"),
    (MINIMAL + TLS, "federation: CoC: the endpoint", "give an https URL"),
    (MINIMAL + 'history = "yes"', "'yes' is not yes or no", "true or false"),
    (MINIMAL + 'log = "debug"', "'debug' is not a section", "[log]"),
    (MINIMAL + '[log]\nlevel = "loud"', "unknown log level 'loud'", "debug"),
    (MINIMAL + '[log]\nformat = "jsn"', "unknown log format 'jsn'", "did you mean json?"),
    (MINIMAL + '[log]\nlevl = "info"', "unknown key 'levl'", "did you mean level?"),
    (MINIMAL + "[tuning]\ngosip_every_s = 3", "unknown tuning value", "did you mean gossip_every"),
    (MINIMAL + '[tuning]\nlease_s = "60"', "'60' is not a number", "default is 60"),
    (MINIMAL + "[tuning]\nlease_s = true", "is not a number", "default is 60"),
    (MINIMAL + "[tuning]\nlease_s = nan", "nan is not more than 0", "default is 60"),
    (MINIMAL + "[tuning]\nlease_s = -1", "-1 is not more than 0", "default is 60"),
    (MINIMAL + "[tuning]\nmost_early = 1.5", "1.5 is not a whole number", "default is 1000"),
    (MINIMAL + "[tuning]\nmost_early = 0", "0 is not more than 0", "default is 1000"),
    (MINIMAL + "[tuning]\nfirst_pause_s = 90", "longest_pause_s is 60", "the first to the longest"),
]


@pytest.mark.parametrize(("text", "problem", "remedy"), REFUSED)
def test_error_names_the_problem_and_what_to_write_instead(
    tmp_path: Path, text: str, problem: str, remedy: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(QnsError) as caught:
        read_configuration(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert problem in message
    assert remedy in caught.value.remedy


def test_peer_with_tls_listens_on_any_address_and_serves_users_on_loopback(tmp_path: Path) -> None:
    document = write_federation(agencies_over_tls())
    (tmp_path / "federation.xml").write_bytes(document)
    path = tmp_path / "peer.toml"
    path.write_text(f'{MINIMAL}\nlisten = "0.0.0.0:8443"\n{TLS}', "utf-8")
    found = read_configuration(path)
    assert found.tls == KeyFiles(tmp_path / "INPS.tls.pem", tmp_path / "INPS.tls.key")
    assert (found.url, found.local_url) == ("https://0.0.0.0:8443/", "http://127.0.0.1:8711/")
    path.write_text(f'{MINIMAL}\nlocal = "10.0.0.1:8711"\n{TLS}', "utf-8")
    with pytest.raises(QnsError, match="not a loopback address") as caught:
        read_configuration(path)
    assert "[local_tls]" in caught.value.remedy


def test_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(QnsError, match="cannot be read: No such file"):
        read_configuration(tmp_path / "nothing.toml")


def test_file_that_is_not_utf8_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "peer.toml"
    path.write_bytes(b"organisation = '\xff'")
    with pytest.raises(QnsError, match="byte 17 is not UTF-8"):
        read_configuration(path)


@pytest.mark.parametrize("whose", ["INPS", "CoC"])
@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("http://10.0.0.1:8701/", "not on a loopback address"),
        ("https://127.0.0.1:8701/", "requires TLS"),
    ],
)
def test_endpoint_beyond_loopback_or_with_tls_is_rejected(
    tmp_path: Path, whose: str, endpoint: str, problem: str
) -> None:
    federation = agencies_on_loopback()
    organisations = {
        **federation.organisations,
        whose: replace(federation[whose], endpoint=endpoint),
    }
    path = configure(tmp_path, replace(federation, organisations=organisations), "INPS")
    with pytest.raises(QnsError, match=problem) as caught:
        read_configuration(path)
    assert whose in caught.value.place


def test_listen_is_required_without_an_endpoint(tmp_path: Path) -> None:
    path = configure(tmp_path, AGENCIES_FEDERATION, "INPS", "")
    with pytest.raises(QnsError, match="no endpoint for INPS") as caught:
        read_configuration(path)
    assert "listen = " in caught.value.remedy
    path = configure(tmp_path, AGENCIES_FEDERATION, "INPS", 'listen = "localhost:0"')
    assert read_configuration(path).listen == Listen("localhost", 0)
