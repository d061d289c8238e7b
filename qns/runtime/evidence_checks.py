"""Evidence checks: whether the timestamping authority of a configuration answers."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import aiohttp

from qns.edl.merkle import HASH_BYTES
from qns.errors import QnsError
from qns.evidence.timestamps import Request
from qns.runtime.causes import cause_of
from qns.runtime.configuration import Configuration
from qns.runtime.evidence_settings import SECTION
from qns.runtime.findings import Finding, Verdict
from qns.runtime.timestamper import ask_authority


async def check_evidence(configuration: Configuration) -> AsyncIterator[Finding]:
    """Yields how long evidence is kept, and whether a timestamp of random bytes can be had."""
    settings = configuration.evidence
    if settings is None:
        return
    yield Finding(Verdict.OK, SECTION, f"evidence is kept for {settings.keep_days:g} days")
    authority = settings.timestamps
    if authority is None:
        return
    request = Request(secrets.token_bytes(HASH_BYTES))
    try:
        response = await ask_authority(authority.url, request.as_bytes())
        request.check(response, authority.authority)
    except QnsError as error:
        yield Finding(Verdict.WARN, SECTION, error.problem, error.remedy or _REMEDY)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        yield Finding(Verdict.WARN, SECTION, f"{authority.url}: {cause_of(error)}", _REMEDY)
    else:
        yield Finding(Verdict.OK, SECTION, f"{authority.url} gives timestamps")


_REMEDY = "see to its address in [evidence]; evidence waits for its timestamps meanwhile"
