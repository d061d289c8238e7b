"""Transports of zeep for TLS: the certificate of the peer is pinned, and host names do not matter.

The folder has the certificate of the peer, INPS.tls.pem, and those of the caller, if it has any.
"""

from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from zeep.transports import Transport


class _Pinned(HTTPAdapter):
    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        super().cert_verify(conn, url, verify, cert)
        conn.assert_hostname = False


def transport(folder: str, caller: str = "") -> Transport:
    """Returns a transport to INPS; with `caller`, in the name of this organisation."""
    session = requests.Session()
    session.mount("https://", _Pinned())
    session.trust_env = False
    session.verify = str(Path(folder, "INPS.tls.pem"))
    if caller:
        session.cert = (
            str(Path(folder, f"{caller}.tls.pem")),
            str(Path(folder, f"{caller}.tls.key")),
        )
    return Transport(session=session)
