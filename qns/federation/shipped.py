"""The federations that come with QNS, with their schema mappings (semantics §12)."""

from __future__ import annotations

from qns.d2q.shipped import AGENCIES, WEATHER
from qns.federation.document import Federation
from qns.federation.mapping import SchemaMapping


def _stations(first: int, last: int) -> list[str]:
    return [f"Met{number:02}" for number in range(first, last + 1)]


AGENCIES_MAPPING = SchemaMapping.of(
    AGENCIES, dict.fromkeys(("INPS", "INAIL", "CoC"), AGENCIES.classes)
)

WEATHER_FULL = SchemaMapping.of(WEATHER, dict.fromkeys(_stations(1, 10), WEATHER.classes))

_WEATHER_HOSTS = {
    "Report": _stations(1, 10),
    "Report/Temperature": _stations(1, 5),
    "Report/Wind": _stations(3, 7),
    "Report/Wind/Gust": _stations(3, 4),
    "Report/Precipitation": _stations(6, 10),
    "Report/Pressure": ["Met01", "Met06"],
    "Report/Visibility": _stations(9, 10),
}

WEATHER_PARTIAL = SchemaMapping.of(
    WEATHER,
    {
        station: [path for path, hosts in _WEATHER_HOSTS.items() if station in hosts]
        for station in _stations(1, 10)
    },
)

AGENCIES_FEDERATION = Federation.of("agencies", AGENCIES, AGENCIES_MAPPING.hosts)
WEATHER_FEDERATION = Federation.of("weather", WEATHER, WEATHER_FULL.hosts)
WEATHER_PARTIAL_FEDERATION = Federation.of("weather-partial", WEATHER, WEATHER_PARTIAL.hosts)

FEDERATIONS = {
    federation.name: federation
    for federation in (AGENCIES_FEDERATION, WEATHER_FEDERATION, WEATHER_PARTIAL_FEDERATION)
}
