"""The schemas that come with QNS, by name (semantics §12)."""

from __future__ import annotations

from qns.d2q.schema import Schema

_LABELS = {"low": 0.3, "medium": 0.6, "high": 0.9}

AGENCIES = Schema(
    "agencies",
    {
        "Enterprise": {"Code": "string", "EntName": "string"},
        "Enterprise/Holder": {"Name": "string", "Address": "string", "FiscalCode": "string"},
    },
    _LABELS,
)

WEATHER = Schema(
    "weather",
    {
        "Report": {"Station": "string", "Region": "string", "Observed": "dateTime"},
        "Report/Temperature": {"Celsius": "decimal"},
        "Report/Wind": {"Speed": "decimal", "Direction": "integer"},
        "Report/Wind/Gust": {"Peak": "decimal", "Dangerous": "boolean"},
        "Report/Precipitation": {"Kind": "string", "Millimetres": "decimal"},
        "Report/Pressure": {"Hectopascal": "decimal"},
        "Report/Visibility": {"Metres": "integer"},
    },
    _LABELS,
)

SHIPPED = {schema.name: schema for schema in (AGENCIES, WEATHER)}
