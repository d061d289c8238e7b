"""`qns merge`: prints the merge subscription of a set of subscriptions (semantics §6)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from qns.cbr.cover_search import CoverSearch
from qns.cbr.covering import CoveringOrder
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription
from qns.cli.inputs import Input
from qns.cli.mappings import MAPPINGS, mappings_of
from qns.cli.options import Commands, add_json_option, add_schema_option, new_command
from qns.cli.problems import visible
from qns.cli.screen import Part, Screen
from qns.cli.subscription_file import SubscriptionReader
from qns.cli.tree import Branch, tree_lines
from qns.cli.wording import counted
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from qns.d2q.schema_files import load_schema

MAX_NESTED: Final = 200
"""The most covered subscriptions that are nested by containment; more are listed flat."""

_DESCRIPTION = """
Prints the merge subscription of the subscriptions in SUBS: the subscriptions that no other
one contains, and below each of them the ones that it covers. SUBS has lines of
id<TAB>subscription; - is standard input.

With --exact, elements that differ in one attribute or in their sources are merged where that
is exact. With --producer, prints the view of that producer: without sources, and only with
the classes that it hosts.
"""
_EXAMPLES = (
    "qns merge --schema agencies examples/agencies/subscriptions.tsv",
    "qns merge --schema weather examples/weather/subscriptions.tsv --exact",
    "qns merge --schema weather examples/weather/subscriptions.tsv --producer Met03",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "merge", "show the merge subscription of a file", _DESCRIPTION, _EXAMPLES
    )
    add_schema_option(parser)
    parser.add_argument("subscriptions", metavar="SUBS", help="a file, or -")
    parser.add_argument("--exact", action="store_true", help="merge beyond containment")
    parser.add_argument("--producer", metavar="ORG", help="print the view of this organisation")
    parser.add_argument(
        "--mapping", choices=MAPPINGS, default=MAPPINGS[0], help="the schema mapping, for weather"
    )
    add_json_option(parser, "one JSON object: merge, subscriptions, size")
    parser.set_defaults(run=run)
    return parser


@dataclass(slots=True)
class Element:
    """One element of the merge set, the ids that are equal to it and the ids that it covers."""

    subscription: Subscription
    ids: list[str]
    covers: list[str]

    @property
    def first_id(self) -> str:
        return min([*self.ids, *self.covers])


def run(args: Namespace, screen: Screen) -> int:
    schema = load_schema(args.schema)
    reader = SubscriptionReader(schema, screen.error)
    with (
        Input(args.subscriptions) as source,
        screen.progress("reading subscriptions", source) as seen,
    ):
        reader.read(source, seen)
    if reader.problems:
        return 2
    wanted = dict(sorted(reader.found.items()))  # independent of the order of the file
    unconcerned: list[str] = []
    if args.producer is not None:
        hosted = mappings_of(schema)[args.mapping].hosted_by(args.producer)
        seen_there = {id: s.projected(args.producer, hosted) for id, s in wanted.items()}
        unconcerned = [id for id, projected in seen_there.items() if projected is None]
        wanted = {id: s for id, s in seen_there.items() if s is not None}
    elements = merged(wanted)
    if args.exact:
        elements = exactly_merged(elements, schema)
    if screen.as_json:
        screen.json(_as_json(args, elements, len(reader.found), unconcerned, schema))
    else:
        _show(args, elements, wanted, unconcerned, schema, screen)
    return 0


def merged(wanted: dict[str, Subscription]) -> list[Element]:
    """Returns the merge set in order of the ids. Every id occurs once."""
    order: CoveringOrder[str] = CoveringOrder()
    for id, subscription in wanted.items():
        order.subscribe(id, subscription)
    return _in_order(Element(s, sorted(ids), sorted(below)) for s, ids, below in order.covers())


def exactly_merged(elements: list[Element], schema: Schema) -> list[Element]:
    """Merges elements where that is exact. A union covers what its parts cover."""
    search = CoverSearch()
    found = ExactMerge(element.subscription for element in elements).subscriptions
    unions: dict[Subscription, Element] = {}
    for union in sorted(found, key=lambda each: write_readable(each, schema)):
        search.add(union)
        unions[union] = Element(union, [], [])
    for element in elements:
        cover = search.any_cover(element.subscription)
        assert cover is not None, "a merged set covers all of its parts"
        union_element = unions[cover]
        if cover == element.subscription:
            union_element.ids += element.ids
            union_element.covers += element.covers
        else:
            union_element.covers += [*element.ids, *element.covers]
    for element in unions.values():
        element.covers.sort()
    return _in_order(unions.values())


def _in_order(elements: Iterable[Element]) -> list[Element]:
    return sorted(elements, key=lambda element: element.first_id)


def _as_json(
    args: Namespace, elements: list[Element], size: int, unconcerned: list[str], schema: Schema
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "merge": [
            {
                "subscription": write_readable(element.subscription, schema),
                "ids": element.ids,
                "covers": element.covers,
            }
            for element in elements
        ],
        "subscriptions": size,
        "size": len(elements),
    }
    if args.producer is not None:
        for shown, element in zip(result["merge"], elements, strict=True):
            shown["classes"] = sorted(element.subscription.scope)
        result |= {"producer": args.producer, "unconcerned": unconcerned}
    return result


def _show(
    args: Namespace,
    elements: list[Element],
    wanted: dict[str, Subscription],
    unconcerned: list[str],
    schema: Schema,
    screen: Screen,
) -> None:
    total = len(wanted) + len(unconcerned)
    viewer = f", as {visible(args.producer)} sees it" if args.producer is not None else ""
    screen.line(
        f"the merge subscription of {counted(total, 'subscription')}{viewer}: ",
        (counted(len(elements), "element"), "bold green"),
    )
    for element in elements:
        screen.line()
        top = Branch(_label(element.ids, element.subscription, schema, "bold green"))
        top.below = _nested({id: wanted[id] for id in element.covers}, schema)
        for line in tree_lines(top):
            screen.line(*line)
    if unconcerned:
        screen.line()
        ids = ", ".join(map(visible, unconcerned))
        screen.line((f"do not concern {visible(args.producer)}: ", "dim"), ids)


def _nested(covered: dict[str, Subscription], schema: Schema) -> list[Branch]:
    """Places each covered subscription below the narrowest other one that contains it."""
    classes: dict[Subscription, list[str]] = {}
    for id, subscription in covered.items():
        classes.setdefault(subscription, []).append(id)
    branches = {s: Branch(_label(ids, s, schema, "cyan")) for s, ids in classes.items()}
    if len(branches) > MAX_NESTED:
        return list(branches.values())
    above = {s: [a for a in classes if a != s and a.contains(s)] for s in classes}
    tops: list[Branch] = []
    for subscription, branch in branches.items():
        narrowest = max(above[subscription], key=lambda each: len(above[each]), default=None)
        (tops if narrowest is None else branches[narrowest].below).append(branch)
    return tops


def _label(
    ids: Iterable[str], subscription: Subscription, schema: Schema, style: str
) -> list[Part]:
    names = ", ".join(map(visible, ids))
    label: list[Part] = [(names, style), "  "] if names else []
    label.append(write_readable(subscription, schema))
    full = schema.scope(subscription.data_class, subscription.only)
    if subscription.scope != full:
        label.append((f"  (here {', '.join(sorted(subscription.scope))})", "dim"))
    return label
