"""Rendering: the tables of a run as one page that can be read, printed, sent and cited.

Equal tables give equal bytes, because the page contains no date.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

import pyarrow as pa

from qns.pipeline.report.beyond_sections import (
    churn_section,
    exact_section,
    organisations_section,
    tree_section,
)
from qns.pipeline.report.claims import claims
from qns.pipeline.report.driver_sections import cost_section, parameters_table, sensitivity_section
from qns.pipeline.report.paper_sections import (
    notification_section,
    saved_section,
    spread_section,
)
from qns.pipeline.report.parts_section import parts_section
from qns.pipeline.report.results import Described, Results, over_seeds
from qns.pipeline.report.shares import saving
from qns.pipeline.report.words import named
from qns.report.document import contents, definitions, picture_files, verdict_box
from qns.report.page import Markup, Table, element, joined, page, table_markup
from qns.report.section import Section, section_markup
from qns.report.statistics import percent_text

TITLE: Final = "What merge subscriptions save"
_METHOD: Final = (
    (
        "Trivial solution",
        "every change of a subscription is sent to all other peers and stored by all of them. All "
        "percentages saved are against it.",
    ),
    (
        "Partial, full mapping",
        "each organisation hosts a part of the schema, or every organisation hosts all of it.",
    ),
    (
        "Mapping alone",
        "a change is sent only to producers that host a requested class and, if the subscription "
        "names its sources, are among them. So it also saves messages with full mapping.",
    ),
    (
        "Containment alone",
        "all others get the merge subscription: the subscriptions of an organisation that no "
        "other one of them contains. Only its changes are sent.",
    ),
    ("Both", "QNS: each producer gets its own view of the merge subscription."),
    (
        "Exact merging",
        "in addition, subscriptions that differ in one attribute or in their sources are merged, "
        "if their union is exact.",
    ),
    (
        "Trees",
        "receivers forward a notification, so that its producer need not send it to all of them.",
    ),
    (
        "Intervals",
        "± is half the 95 % confidence interval of the mean over seeds (Student's t); with one "
        "seed there is none. Differences are taken seed by seed.",
    ),
    (
        "Not judged",
        "for results that this run did not compute, the report names the option that computes "
        "them.",
    ),
)


_FURTHER: Final = (("parameters", "Parameters"), ("method", "Method"), ("run", "This run"))


def render(
    run: Mapping[str, object], tables: Mapping[str, pa.Table], scenarios: Sequence[Described]
) -> dict[str, bytes]:
    """Every file of the report: name in the folder of the run -> content."""
    results = Results(tables, scenarios)
    sections = sections_of(results)
    page_file = {"report.html": report_html(run, results, sections).encode()}
    return page_file | picture_files(sections)


def sections_of(results: Results) -> list[Section]:
    """All sections in the order of the report."""
    return [
        parts_section(results),
        saved_section(results, "5.8a"),
        saved_section(results, "5.8b"),
        spread_section(results),
        notification_section(results),
        exact_section(results),
        tree_section(results),
        churn_section(results),
        organisations_section(results),
        sensitivity_section(results),
        cost_section(results),
    ]


def report_html(run: Mapping[str, object], results: Results, sections: Sequence[Section]) -> str:
    """The page; its links to figures need the other files of `render`."""
    return page(
        TITLE,
        [
            element("header", element("h1", TITLE), element("p", _lead(results), class_="lead")),
            verdict_box(claims(results), "Each mapping is judged separately: ", named),
            contents(sections, _FURTHER),
            *map(section_markup, sections),
            _parameters(results),
            _method(),
            _about(run, results),
        ],
    )


def _lead(results: Results) -> str:
    base = results.base
    if base is None:
        return "This run has no results."
    sizes = {each: results.sizes("subscriptions", base, each) for each in results.mappings}
    found_sizes = [{*found} for found in sizes.values() if found]
    common = set.intersection(*found_sizes) if found_sizes else set()
    if not common:
        return f"{base.organisations:,} organisations; this run counted no subscriptions."
    size = max(common)
    parts = [
        f"{percent_text(over_seeds(found[size], saving('messages_both', 'changes')))} of the "
        f"messages and {percent_text(over_seeds(found[size], saving('rows_both', 'live')))} of the "
        f"table rows with {mapping} mapping"
        for mapping, found in sizes.items()
        if found
    ]
    return (
        f"{base.organisations:,} organisations with {size:,} subscriptions each send these to one "
        "another. Compared with sending every change of a subscription to all others and storing "
        f"it there, the Quality Notification Service saves {', and '.join(parts)}."
    )


def _parameters(results: Results) -> Markup:
    parts: list[str] = [element("h2", "Parameters and their reasons")]
    table = parameters_table(results.base)
    if table:
        parts.append(
            element(
                "p",
                "The thesis says that subscriptions follow a Zipf distribution for each attribute "
                "and quality dimension, and that notifications are uniform. All else is assumed "
                "and marked as an assumption.",
            )
        )
        parts.append(table_markup(table))
    else:
        parts.append(element("p", "The workload was not generated, so it has no parameters."))
    for mapping in results.mappings:
        hosts = results.hosts(results.base, mapping)
        if hosts:
            parts.append(
                table_markup(
                    Table(
                        f"{named(mapping)}: classes hosted",
                        ("organisation", "classes"),
                        tuple((name, ", ".join(of) or "none") for name, of in hosts.items()),
                        texts=2,
                        folded=True,
                    )
                )
            )
    return element("section", joined(parts), id="parameters")


def _method() -> Markup:
    return element("section", element("h2", "Method"), definitions(_METHOD), id="method")


def _about(run: Mapping[str, object], results: Results) -> Markup:
    seeds = sorted(
        {str(each.get("seed")) for each in results.scenarios.values() if "seed" in each},
        key=lambda each: (len(each), each),
    )
    facts = {
        **run,
        "scenarios computed": f"{len(results.scenarios):,}",
        "their seeds": ", ".join(seeds) or "unknown",
        "fingerprint": _fingerprint(run, results),
    }
    return element(
        "section",
        element("h2", "This run"),
        definitions(facts),
        element(
            "p",
            "Cite the fingerprint: runs with equal fingerprints have the same request, scenarios "
            "and version, and the same tables except for time and memory. The tables are beside "
            "this page as Parquet files, the figures in ",
            element("code", "figures/"),
            ".",
            class_="small",
        ),
        id="run",
    )


def _fingerprint(run: Mapping[str, object], results: Results) -> str:
    request = json.dumps(run, ensure_ascii=False, sort_keys=True, default=str)
    return sha256("\n".join([request, *sorted(results.scenarios)]).encode()).hexdigest()[:16]
