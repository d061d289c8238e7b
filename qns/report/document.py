"""Document: the parts that every report has: verdicts, contents, definitions, picture files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from qns.report.claim import Claim
from qns.report.figures import png_file, svg_file
from qns.report.page import Markup, element, joined
from qns.report.section import Section, anchor

_VERDICTS: Final = {
    True: ("yes", "✓ yes"),
    False: ("no", "✗ no"),
    None: ("open", "– open"),
}
_LONGEST: Final = 2_000
"""The most characters of a value that are shown."""
_MOST_LISTED: Final = 30


def picture_files(sections: Iterable[Section]) -> dict[str, bytes]:
    """Returns every picture as SVG and PNG: name in the folder of the run -> content."""
    files = {}
    for section in sections:
        if section.picture:
            files[f"figures/{section.picture.name}.svg"] = svg_file(section.picture)
            files[f"figures/{section.picture.name}.png"] = png_file(section.picture)
    return files


def verdict_box(
    judged: Sequence[Claim], apart: str = "", named: Callable[[str], str] = str
) -> Markup:
    """Returns all claims with their verdicts. `apart` says what is judged separately."""
    yes, no, unknown = (
        sum(each.holds is holds for each in judged) for holds in (True, False, None)
    )
    summary = f"Of {len(judged)}: {yes} yes, {no} no"
    summary += f", {unknown} open, because this run does not decide them." if unknown else "."
    groups: dict[tuple[str, str], list[Claim]] = {}
    for each in judged:
        groups.setdefault((each.figure, each.claim), []).append(each)
    return element(
        "section",
        element("h2", "Claims and verdicts"),
        element("p", f"{apart}{summary}"),
        element("ul", joined(_claim(some, named) for some in groups.values()), class_="claims"),
        class_="box",
        id="verdicts",
    )


def _claim(judged: Sequence[Claim], named: Callable[[str], str]) -> Markup:
    """Returns one claim with a verdict for each mapping, then the rule."""
    figure, words = judged[0].figure, judged[0].claim
    where = element("a", _capital(figure), href=f"#{anchor(figure)}")
    parts = [element("p", where, f": {words}", class_="claim")]
    for each in judged:
        kind, verdict = _VERDICTS[each.holds]
        mapping = f"{named(each.mapping)}: " if each.mapping else ""
        explanation = each.numbers or each.reason
        parts.append(element("span", verdict, class_=f"verdict {kind}"))
        parts.append(element("p", _capital(f"{mapping}{explanation}.")))
    rules = dict.fromkeys(each.reason for each in judged if each.numbers and each.reason)
    parts.extend(element("p", _capital(f"{rule}."), class_="small") for rule in rules)
    return element("li", *parts)


def contents(sections: Sequence[Section], further: Iterable[tuple[str, str]]) -> Markup:
    """Links to the sections, and to further anchors with their titles."""
    links = [(anchor(each.name), each.title) for each in sections]
    return element(
        "nav",
        element(
            "ul",
            *(
                element("li", element("a", words, href=f"#{at}"))
                for at, words in (*links, *further)
            ),
        ),
        aria_label="Contents",
    )


def definitions(words: Mapping[str, object] | Iterable[tuple[str, object]]) -> Markup:
    """Returns a list of terms with their definitions."""
    pairs = words.items() if isinstance(words, Mapping) else words
    return element(
        "dl",
        joined(
            part
            for name, value in pairs
            for part in (element("dt", str(name).replace("_", " ")), element("dd", _shown(value)))
        ),
    )


def _shown(value: object) -> str:
    if isinstance(value, list | tuple) and len(value) > _MOST_LISTED:
        return f"{len(value):,}, the first {value[0]}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
