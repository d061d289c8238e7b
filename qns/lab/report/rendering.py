"""Rendering: the findings as one page that can be read, printed, sent and cited.

Equal findings give equal bytes. Only the cost of associativity depends on the computer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qns import __version__
from qns.lab.experiments.findings import Findings
from qns.lab.experiments.setups import ENOUGH_SEEDS, REASONS
from qns.lab.report.comparison_sections import comparison_sections
from qns.lab.report.judged_section import judged_section
from qns.lab.report.loss_sections import measured_sections
from qns.lab.report.model_sections import model_sections, rapidity_section
from qns.lab.report.organisation_sections import organisation_sections
from qns.lab.report.proximity_sections import proximity_sections, starts_of
from qns.lab.report.runs import Runs
from qns.report.claim import Claim
from qns.report.document import contents, definitions, picture_files, verdict_box
from qns.report.page import Markup, Table, element, joined, page, table_markup
from qns.report.section import Section, section_markup

TITLE: Final = "Routing and loss in the laboratory"
_METHOD: Final = (
    (
        "Pure forwarder",
        "a broker that received a notification, is not interested in it and is not its publisher. "
        "Hops = ideal + pure forwarders.",
    ),
    ("Ideal", "one hop for each interested broker other than the publisher's."),
    (
        "Way in, between",
        "pure forwarders before a notification reaches the smallest subtree that connects all "
        "interested brokers, and those inside that subtree.",
    ),
    (
        "Messages per operation",
        "(messages per subscription + R · hops per notification) / (1 + R), over all windows.",
    ),
    ("Break-even", "the R at which a variant and CBR need equally many messages per operation."),
    (
        "Same conditions",
        "every variant has the same network, first tree, subscriptions and notifications as CBR "
        "of the same seed; differences are taken seed by seed.",
    ),
    (
        "Intervals",
        "± is half the 95 % confidence interval of the mean over seeds or topologies (Student's "
        "t); with two seeds it is very wide.",
    ),
)
_OPEN: Final = (
    "Sizes, shapes and the rules of claims were fixed after a pilot on one seed of CBR and SOCBR "
    "(up to 1,500 subscriptions), of figure 4.2 and of table 2.1 and after a quick run, not "
    "before. The figure 'shapes' has all shapes of that pilot. Where a verdict depends on the "
    "size, its numbers show it.",
    f"These were fixed later, after five seeds had left claims open and more had been seen: the "
    f"{ENOUGH_SEEDS} seeds of figures 4.12 to 4.20, the two first trees, pbSOCBR with the lightest "
    "link cut, and that a TTL within ±2 % is not worse.",
    "The parameters that the thesis leaves open are chosen above with their reasons, and the "
    "numbers depend on them: how subscriptions are drawn, the handling time of a message, the "
    "number of subscriptions of a run.",
    "The papers' pictures are not available; only numbers and words of their text are compared.",
    "Latencies of chapter 4 include no handling times, so only their changes are compared, not "
    "seconds.",
    "Each subscription is settled before the next; the cost of concurrent reconfigurations is not "
    "measured.",
)
_FURTHER: Final = (
    ("judged", "Every run was judged"),
    ("parameters", "Parameters"),
    ("method", "Method"),
    ("open", "What is open"),
    ("run", "This run"),
)


def render(figures: Sequence[str], findings: Findings, judged: Sequence[Claim]) -> dict[str, bytes]:
    """Every file of the report: name in its folder -> content."""
    sections = sections_of(figures, findings)
    checked = judged_section(findings)
    html = page(
        TITLE,
        [
            element(
                "header",
                element("h1", TITLE),
                element("p", _lead(judged, findings), class_="lead"),
            ),
            verdict_box(judged),
            contents(sections, _FURTHER if checked else _FURTHER[1:]),
            *map(section_markup, sections),
            *([checked] if checked else ()),
            _parameters(findings),
            element("section", element("h2", "Method"), definitions(_METHOD), id="method"),
            element(
                "section",
                element("h2", "What is open"),
                element("ul", joined(element("li", each) for each in _OPEN)),
                id="open",
            ),
            _about(figures, findings),
        ],
    )
    return picture_files(sections) | {"report.html": html.encode()}


def sections_of(figures: Sequence[str], findings: Findings) -> list[Section]:
    known = {each.name: each for each in (*model_sections(), rapidity_section())}
    if findings.loss is not None:
        known |= {each.name: each for each in measured_sections(findings.loss)}
    if findings.flat:
        known |= {each.name: each for each in organisation_sections(Runs(findings.flat))}
    if findings.transit_stub:
        starts = starts_of(findings.transit_stub, findings.near)
        known |= {each.name: each for each in proximity_sections(starts, findings.diameters_ms)}
    known |= comparison_sections(findings)
    return [known[figure] for figure in figures]


def _lead(judged: Sequence[Claim], findings: Findings) -> str:
    numbers = [sum(each.holds is holds for each in judged) for holds in (True, False)]
    quick = (
        " This is a quick run with small systems and few seeds. It shows that everything works; do "
        "not cite it."
        if findings.setups.is_quick
        else ""
    )
    return (
        "Chapters 2 to 4 of the thesis and paper 002, measured again with the code of QNS: "
        f"{numbers[0]} of {len(judged)} claims hold here and {numbers[1]} do not, each with "
        f"numbers and a reason.{quick}"
    )


def _parameters(findings: Findings) -> Markup:
    table = Table("Chosen parameters", ("parameter", "reason"), REASONS, texts=2)
    return element(
        "section",
        element("h2", "Parameters and their reasons"),
        table_markup(table),
        *_sizes(findings),
        id="parameters",
    )


def _sizes(findings: Findings) -> list[Markup]:
    """The sizes of the experiments that were run."""
    setups, sizes = findings.setups, []
    if findings.loss:
        loss = setups.loss
        sizes.append(
            (
                "loss",
                f"{loss.brokers} brokers on {', '.join(map(str, loss.hosts))} hosts, "
                f"{loss.topologies} topologies, {loss.pairs} pairs for each T_ON",
            )
        )
    for name, found, setup in (
        ("flat networks", findings.flat, setups.organisation),
        ("transit-stub networks", findings.transit_stub, setups.proximity),
        ("other workloads", findings.shapes, setups.shape_setup),
    ):
        if found:
            sizes.append(
                (
                    name,
                    f"{setup.brokers} brokers, fan-out {setup.fan_out}, "
                    f"{setup.subscriptions:,} subscriptions, {setup.seeds} seeds",
                )
            )
    if findings.locality or findings.strategies:
        size = f"{setups.brokers} brokers, fan-out {setups.fan_out}, {setups.seeds} seeds"
        sizes.append(("locality, strategies", size))
    return [element("h3", "Sizes of this run"), definitions(sizes)] if sizes else []


def _about(figures: Sequence[str], findings: Findings) -> Markup:
    facts = {
        "qns": __version__,
        "figures": ", ".join(figures),
        "kind": "quick" if findings.setups.is_quick else "full",
    }
    data = "The data are beside this page as CSV files, the " if _sizes(findings) else "The "
    return element(
        "section",
        element("h2", "This run"),
        definitions(facts),
        element(
            "p",
            "Two runs of the same version, kind and number of seeds have the same tables for any "
            f"number of jobs, except for seconds. {data}figures are in ",
            element("code", "figures/"),
            ".",
            class_="small",
        ),
        id="run",
    )
