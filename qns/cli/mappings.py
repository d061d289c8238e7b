"""Mappings: the schema mappings of the shipped federations."""

from __future__ import annotations

from typing import Final

from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import QnsError, shorten
from qns.federation.mapping import SchemaMapping
from qns.federation.shipped import AGENCIES_MAPPING, WEATHER_FULL, WEATHER_PARTIAL

MAPPINGS: Final = ("partial", "full")


def mappings_of(schema: Schema) -> dict[str, SchemaMapping]:
    """Returns the mappings `partial` and `full`. In `agencies` they are the same."""
    if schema == AGENCIES:
        return {"partial": AGENCIES_MAPPING, "full": AGENCIES_MAPPING}
    if schema == WEATHER:
        return {"partial": WEATHER_PARTIAL, "full": WEATHER_FULL}
    raise QnsError(
        f"no mapping is shipped for the schema {shorten(schema.name)}",
        remedy=f"use {AGENCIES.name} or {WEATHER.name}",
    )
