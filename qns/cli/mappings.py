"""The mappings of the shipped federations, by schema and name."""

from __future__ import annotations

from typing import Final

from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import QnsError, shorten
from qns.federation.mapping import SchemaMapping
from qns.federation.shipped import AGENCIES_MAPPING, WEATHER_FULL, WEATHER_PARTIAL

MAPPINGS: Final = ("partial", "full")


def mappings_of(schema: Schema) -> dict[str, SchemaMapping]:
    """`partial` and `full`; in the agencies' federation everybody hosts everything."""
    if schema == AGENCIES:
        return {"partial": AGENCIES_MAPPING, "full": AGENCIES_MAPPING}
    if schema == WEATHER:
        return {"partial": WEATHER_PARTIAL, "full": WEATHER_FULL}
    raise QnsError(
        f"no mapping comes with the schema {shorten(schema.name)}",
        remedy=f"producers are known for {AGENCIES.name} and {WEATHER.name}",
    )
