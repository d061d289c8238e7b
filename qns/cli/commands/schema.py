"""`qns schema`: prints one schema as a tree, a DTD, XML or JSON."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.options import Commands, new_command
from qns.cli.screen import Part, Screen
from qns.cli.tree import Branch, tree_lines
from qns.d2q.dtd import write_dtd
from qns.d2q.lexical import write_number
from qns.d2q.schema import Schema, parent
from qns.d2q.schema_files import load_schema
from qns.d2q.schema_xml import write_schema

_DESCRIPTION = """
Prints a schema: its classes and their properties as a tree, the DTD of its documents, or the
schema as an XML file. The output of --dtd and --xml is accepted wherever a schema is needed.
"""
_EXAMPLES = (
    "qns schema weather",
    "qns schema agencies --dtd",
    "qns schema schemas/agencies.dtd --xml",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "schema", "print a schema: tree, DTD or XML", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument(
        "name", metavar="SCHEMA", help="the name of a shipped schema, or a .dtd or .xml file"
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--dtd", action="store_true", help="the DTD of its documents")
    forms.add_argument("--xml", action="store_true", help="the schema as XML")
    forms.add_argument(
        "--json", action="store_true", dest="as_json", help="the schema as one JSON object"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    schema = load_schema(args.name)
    if args.dtd:
        screen.raw(write_dtd(schema))
    elif args.xml:
        screen.raw(write_schema(schema).decode("utf-8"))
    elif screen.as_json:
        screen.json(_as_json(schema))
    else:
        _show(schema, screen)
    return 0


def _as_json(schema: Schema) -> dict[str, object]:
    return {
        "name": schema.name,
        "labels": schema.labels,
        "classes": {
            path: {prop.name: prop.domain.name for prop in properties}
            for path, properties in schema.properties.items()
        },
    }


def _show(schema: Schema, screen: Screen) -> None:
    labels = ", ".join(f"{name} = {write_number(n)}" for name, n in schema.labels.items())
    screen.line((schema.name, "bold"), f"  (labels: {labels or 'none'})")
    branches: dict[str, Branch] = {"": Branch([])}
    for path, properties in schema.properties.items():
        branch = branches[path] = Branch([(path, "bold cyan")])
        branches[parent(path)].below.append(branch)
        width = max((len(prop.name) for prop in properties), default=0)
        for prop in properties:
            leaf: list[Part] = [f"{prop.name:<{width}}  ", (prop.domain.name, "dim")]
            branch.below.append(Branch(leaf))
    for top in branches[""].below:
        for line in tree_lines(top):
            screen.line(*line)
