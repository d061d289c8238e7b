"""`qns schemas`: lists the shipped schemas (semantics §12)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.mappings import mappings_of
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.screen import Screen
from qns.d2q.shipped import SHIPPED

_DESCRIPTION = """
Lists the schemas that are shipped with QNS. Their names are accepted wherever a schema is
needed.
"""
_EXAMPLES = ("qns schemas", "qns schemas --json")


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(commands, "schemas", "list the shipped schemas", _DESCRIPTION, _EXAMPLES)
    add_json_option(parser, "the list as one JSON array")
    parser.set_defaults(run=run)
    return parser


def run(_: Namespace, screen: Screen) -> int:
    rows = []
    for name, schema in SHIPPED.items():
        organisations = mappings_of(schema)["full"].organisations
        rows.append(
            {
                "name": name,
                "classes": len(schema.classes),
                "properties": sum(map(len, schema.properties.values())),
                "organisations": list(organisations),
            }
        )
    if screen.as_json:
        screen.json(rows)
        return 0
    for row in rows:
        screen.line(
            (f"{row['name']:<10}", "bold cyan"),
            f"{row['classes']} classes, {row['properties']} properties; "
            f"hosted by {_range(row['organisations'])}",
        )
    return 0


def _range(names: object) -> str:
    assert isinstance(names, list)
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]}"
