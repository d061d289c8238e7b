"""Each claim with numbers that make it yes, no and open."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from qns.lab.experiments.associativity_cost import Cost
from qns.lab.experiments.comparison import LocalityRow, StrategyRow
from qns.lab.experiments.findings import Findings, SeededLocality, SeededStrategy
from qns.lab.experiments.loss_experiment import Curve, Loss, Rates, Results
from qns.lab.experiments.self_organisation import CBR, SOCBR, Window
from qns.lab.experiments.setups import LocalityCase, Setups
from qns.lab.report.claims import claims
from qns.lab.report.loss_claims import loss_claims, model_claims
from qns.lab.report.organisation_claims import organisation_claims, proximity_claims
from qns.lab.report.runs import Runs, between, even_text, evens_text, forwarders
from qns.lab.report.verdicts import above, all_of, at_least, at_most, below
from qns.report.claim import Claim
from qns.report.statistics import Estimate

SIZES = (50, 100, 150)


Change = Callable[[int, int], dict[str, float]]


def windows(variant: str, change: Change) -> list[Window]:
    """Windows of three similar seeds with CBR's numbers, except for those of `change`."""
    found = []
    for seed in range(3):
        for size in SIZES:
            usual = Window(
                "flat", variant, seed, size, 10.0 + seed / 1_000, 4.0, 1.0, size / 1_000, 500.0,
                99 * size, 0, 0, 0, 0, 0, 0,
            )  # fmt: skip
            found.append(usual._replace(**change(seed, size)))  # type: ignore[arg-type]
    return found


def runs_of(**variants: Change) -> Runs:
    all_windows = windows(CBR, lambda *_: {})
    for name, change in variants.items():
        all_windows += windows(name.replace("_", " "), change)
    return Runs(all_windows)


def verdicts(judged: Iterable[Claim]) -> dict[tuple[str, str], list[bool | None]]:
    """(figure, first words) -> the verdicts."""
    found: dict[tuple[str, str], list[bool | None]] = {}
    for each in judged:
        assert each.numbers or each.holds is None
        assert each.reason
        assert "nan" not in f"{each.numbers} {each.reason}"
        found.setdefault((each.figure, " ".join(each.claim.split()[:2])), []).append(each.holds)
    return found


def good_socbr(seed: int, size: int) -> dict[str, float]:
    """The numbers of the thesis: 70 % of 6 pure forwarders removed for 40 messages."""
    return {
        "hops": 5.8 + seed / 1_000,
        "way_in": 0.3,
        "associativity": 0.8 if size > 50 else 0.5,
        "latency_ms": 750.0,
        "organisation_messages": 40 * size,
        "discovery_messages": 36 * size,
        "swaps": size,
    }


def bad_socbr(seed: int, size: int) -> dict[str, float]:
    """Expensive without a gain, and worse with more subscriptions."""
    return {
        "hops": 11.0 + seed / 1_000,
        "associativity": size / 2_000,
        "latency_ms": 400.0,
        "organisation_messages": size**3 // 100,
        "discovery_messages": size**3 // 1_000,
    }


def unsure_socbr(seed: int, size: int) -> dict[str, float]:
    """Three seeds with contradictory results."""
    good, bad = good_socbr(seed, size), bad_socbr(seed, size)
    return [good, bad, {**good, "hops": 9.5, "associativity": 0.05}][seed]


def limited(seed: int, size: int) -> dict[str, float]:
    return {"hops": 8.0 + seed / 1_000, "organisation_messages": 10 * size}


ORGANISATION = {
    ("4.12", "SOCBR removes"),
    ("4.13", "Associativity climbs"),
    ("4.14", "Break-even near"),
    ("4.14", "About 30"),
    ("4.15", "Messages of"),
    ("4.15", "About 90"),
    ("4.16", "A limited"),
}


def test_claims_of_chapter_4_hold_with_the_numbers_of_the_thesis() -> None:
    found = verdicts(organisation_claims(runs_of(SOCBR=good_socbr, TTL_4=limited), {"TTL 4": 22.5}))
    assert found == {each: [True] for each in ORGANISATION}


def test_claims_of_chapter_4_fail_when_socbr_is_worse_than_cbr() -> None:
    found = verdicts(
        organisation_claims(runs_of(SOCBR=bad_socbr, TTL_4=bad_socbr), {"TTL 4": 22.5})
    )
    assert found.keys() == ORGANISATION
    assert found == {each: [False] for each in ORGANISATION}


def test_claim_stays_open_when_seeds_disagree() -> None:
    found = verdicts(
        organisation_claims(runs_of(SOCBR=unsure_socbr, TTL_4=unsure_socbr), {"TTL 4": 22.5})
    )
    for claim in (("4.12", "SOCBR removes"), ("4.13", "Associativity climbs")):
        assert found[claim] == [None]
    for claim in (("4.14", "Break-even near"), ("4.14", "About 30"), ("4.15", "About 90")):
        assert found[claim] == [None]


def test_ttl_claim_fails_when_the_limit_changes_almost_nothing() -> None:
    def alike(seed: int, size: int) -> dict[str, float]:
        """Costs less to organise; its hops are slightly better or worse by seed."""
        return {**good_socbr(seed, size), "hops": (5.78, 5.8, 5.83)[seed], **cheaper(size)}

    def unsure(seed: int, size: int) -> dict[str, float]:
        return {**good_socbr(seed, size), "hops": (5.5, 5.8, 6.1)[seed], **cheaper(size)}

    def cheaper(size: int) -> dict[str, float]:
        return {"organisation_messages": 30 * size}

    runs = runs_of(SOCBR=good_socbr, TTL_8=alike, TTL_4=unsure)
    claims_of = organisation_claims(runs, {"TTL 8": 78.0, "TTL 4": 22.5})
    judged = {each.mapping: each for each in claims_of if each.figure == "4.16"}
    assert judged["TTL 8"].holds is False
    assert judged["TTL 4"].holds is None
    assert "reaches 78 % of the other brokers" in judged["TTL 8"].reason


PROXIMITY = {
    ("4.17", "SOCBR alone"),
    ("4.18", "d_b ="),
    ("4.19", "Break-even near"),
    ("4.20", "d_b ="),
}


def with_bound(bound: Change, socbr: Change) -> Runs:
    def lightest(seed: int, size: int) -> dict[str, float]:
        return {"hops": 7.0 + seed / 1_000}

    changes = {"pb 100 ms": bound, "pb 100 ms, lightest": lightest, SOCBR: socbr}
    return runs_of(**changes)


def bounded(bound: Change, socbr: Change) -> list[Claim]:
    runs = with_bound(bound, socbr)
    return list(proximity_claims({"independent tree": runs, "near tree": runs}))


def test_proximity_claims_hold_when_the_bound_keeps_the_gain_at_little_latency() -> None:
    def bound(seed: int, size: int) -> dict[str, float]:
        return {**good_socbr(seed, size), "hops": 6.5 + seed / 1_000, "latency_ms": 530.0}

    judged = bounded(bound, good_socbr)
    assert {each.mapping for each in judged} == {"independent tree", "near tree"}
    assert verdicts(judged) == {each: [True, True] for each in PROXIMITY}


def test_proximity_claims_fail_when_the_bound_gains_nothing_and_adds_latency() -> None:
    def bound(seed: int, size: int) -> dict[str, float]:
        return {**bad_socbr(seed, size), "latency_ms": 900.0}

    slow = {"latency_ms": 450.0}
    judged = bounded(bound, lambda *at: good_socbr(*at) | slow)
    assert verdicts(judged) == {each: [False, False] for each in PROXIMITY}
    (reason, _) = (each.reason for each in judged if each.figure == "4.18")
    assert "the lightest link cut it saves 3.00 ± 0.00 hops, 71 % of SOCBR's" in reason


def test_each_first_tree_is_judged_by_its_own_runs() -> None:
    starts = {
        "near tree": with_bound(good_socbr, good_socbr),
        "independent tree": with_bound(good_socbr, bad_socbr),
    }
    found = {(each.figure, each.mapping): each.holds for each in proximity_claims(starts)}
    assert found["4.17", "near tree"] is True
    assert found["4.17", "independent tree"] is False


def test_gain_claim_fails_when_socbr_gains_nothing() -> None:
    found = verdicts(bounded(good_socbr, bad_socbr))
    assert found["4.18", "d_b ="] == [False, False]


# --- runs -----------------------------------------------------------------------------------------


def test_break_even_is_the_ratio_with_equally_many_messages() -> None:
    runs = runs_of(SOCBR=good_socbr, pb_100_ms=bad_socbr)
    even = runs.break_even(SOCBR)
    assert even == pytest.approx(40 / 4.2)
    cheaper = [runs.fewer_messages_percent(SOCBR, ratio).mean > 0 for ratio in (9, 10)]
    assert cheaper == [False, True]
    assert runs.break_even("pb 100 ms") is None
    assert (even_text(even), even_text(None)) == ("R = 10", "never")
    assert evens_text([9.6, None, 12.0]) == "10 to 12 in single seeds, never in 1 of 3 seeds"
    assert runs_of(SOCBR=lambda *_: {"subscription_messages": 0}).break_even(SOCBR) == 0


def test_pure_forwarders_are_split_into_way_in_and_between() -> None:
    runs = runs_of(SOCBR=good_socbr)
    assert runs.fewer_percent(SOCBR, forwarders).mean == pytest.approx(70, abs=0.1)
    assert runs.fewer_percent(SOCBR, between, 150).mean == pytest.approx(70, abs=0.1)
    assert runs.sizes == list(SIZES)
    assert runs.last == 150
    assert not Runs([])


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (Estimate(5, 1, 3), True, False),
        (Estimate(3, 1, 3), True, None),
        (Estimate(2, 1, 3), None, None),
        (Estimate(1, 1, 3), None, True),
        (Estimate(0, 1, 3), False, True),
    ],
)
def test_verdict_is_open_when_the_interval_contains_the_threshold(
    value: Estimate, least: bool | None, most: bool | None
) -> None:
    assert at_least(value, 2) is least
    assert at_most(value, 2) is most
    assert above(value, 2) is (None if most is None else not most)
    assert below(value, 2) is (None if least is None else not least)


def test_combined_verdict_is_no_when_any_part_is_no() -> None:
    assert all_of(True, None, False) is False
    assert all_of(True, None) is None
    assert all_of(True, True) is True


# --- loss -----------------------------------------------------------------------------------------

RATES = (
    Rates(100, 0.97, 1.21, 12.2, 9.95, 4.0, 3.0, 1.2),
    Rates(250, 0.62, 0.80, 19.06, 14.03, 6.0, 5.0, 1.2),
)


def curve(gap: float) -> Curve:
    return Curve("F", 100, (0.0, 1.0, 2.0), (0.01, 0.5, 1.0), (0.01, 0.5 - gap, 0.99))


def lost(t_on_s: float, delivered: int, **models: float) -> Loss:
    d = delivered / 1_000
    usual = {"d_model": d, "d_means": d, "d_002": d}
    halves = (delivered // 2, delivered - delivered // 2)
    return Loss(100, t_on_s, 1_000, halves, **(usual | models))


def results(*losses: Loss, rates: tuple[Rates, ...] = RATES, gap: float = 0.05) -> Results:
    return Results((curve(gap),), rates, tuple((row, row) for row in rates), losses)


GOOD_LOSS = results(lost(22, 650), lost(50, 850), lost(500, 985))


def test_loss_claims_hold_with_good_numbers() -> None:
    found = verdicts(loss_claims(GOOD_LOSS))
    printed = found.pop(("002-9", "The same"))
    assert len(printed) == 1
    assert all(all(some) for some in found.values())
    assert len(found["3.12", "The model"]) == 2  # the two readings of g


@pytest.mark.parametrize(
    ("loss", "claim"),
    [
        (replace(GOOD_LOSS, curves=(curve(0.2),)), ("3.10", "F and")),
        (replace(GOOD_LOSS, rates=RATES[::-1], losses=()), None),
        (
            results(*GOOD_LOSS.losses, rates=(RATES[0], replace(RATES[1], s=1.3))),
            ("table-3.1", "r >"),
        ),
        (
            results(*GOOD_LOSS.losses, rates=(RATES[0], replace(RATES[1], s=0.96, r=1.2))),
            ("table-3.1", "The rates"),
        ),
        (results(lost(22, 650), lost(50, 500), lost(500, 985)), ("3.11", "Measured d")),
        (results(lost(22, 650), lost(50, 850, d_model=0.7)), ("3.12", "The model")),
        (results(lost(22, 650), lost(50, 850, d_means=0.7)), ("3.12", "The model")),
        (results(lost(22, 650, d_002=0.7), lost(50, 850)), ("002-9", "The model")),
        (results(lost(22, 100), lost(50, 850)), ("002-9", "The same")),
    ],
)
def test_one_loss_claim_fails_for_each_bad_number(
    loss: Results, claim: tuple[str, str] | None
) -> None:
    found = verdicts(loss_claims(loss))
    if claim is None:  # the order of rows has no effect
        assert found["table-3.1", "r >"] == [True]
    else:
        assert False in found[claim]


def test_error_claim_ignores_the_smallest_t_on() -> None:
    loss = results(lost(22, 650, d_model=0.3, d_means=0.3), lost(50, 850))
    assert verdicts(loss_claims(loss))["3.12", "The model"] == [True, True]


def test_failed_error_claim_explains_why_eq_3_1_differs() -> None:
    loss = results(lost(22, 650), lost(50, 850, d_model=0.7))
    no, yes = [each for each in loss_claims(loss) if each.figure == "3.12"]
    assert (no.holds, yes.holds) == (False, True)
    assert "T_diff − E[D]" in no.reason
    assert "30 % on 100 hosts" in no.reason
    assert "E[D]" not in yes.reason


def test_model_claims_hold() -> None:
    assert all(each.holds for each in model_claims())


# --- locality, strategies, associativity ----------------------------------------------------------

CASE = LocalityCase(100, 200.0)


def localities(*hops: tuple[float, ...]) -> Findings:
    """Rows with CBR's hops for each locality and seed."""
    rows = [
        SeededLocality(CASE, LocalityRow(seed, at / 10, cbr, 99.0, 40.0, 20, 60))
        for at, seeds in enumerate(hops)
        for seed, cbr in enumerate(seeds)
    ]
    return Findings(Setups(), locality=tuple(rows))


@pytest.mark.parametrize(
    ("hops", "falls", "near"),
    [
        (((95.0, 96.0, 95.5), (70.0, 71.0, 70.5), (50.0, 51.0, 50.5)), True, True),
        (((60.0, 61.0, 60.5), (70.0, 71.0, 70.5), (50.0, 51.0, 50.5)), False, False),
        (((50.0, 51.0, 50.5), (50.0, 51.0, 50.5), (60.0, 61.0, 60.5)), False, False),
        (((99.0, 50.0, 80.0), (70.0, 71.0, 70.5), (40.0, 71.0, 60.0)), None, None),
    ],
)
def test_locality_claims_follow_the_hops(
    hops: tuple[tuple[float, ...], ...], falls: bool | None, near: bool | None
) -> None:
    found = verdicts(claims(localities(*hops)))
    assert found["4.2", "CBR's hops"] == [falls]
    assert found["4.2", "Without locality"] == [near]


def strategies(**pure: float) -> Findings:
    rows = tuple(
        SeededStrategy(
            seed,
            StrategyRow(
                name.replace("_", " "),
                99.0,
                2.0 + more,
                2.0 + more,
                2.0,
                more,
                5.0,
                9,
                70.0,
                {},
                1,
                1,
            ),
        )
        for name, more in pure.items()
        for seed in range(2)
    )
    return Findings(Setups(), strategies=rows)


def test_strategy_claims_follow_the_rows() -> None:
    good = strategies(CBR=5.0, QNS_direct=0.0, QNS_tree=0.0)
    wants = ("table-2.1", "Every strategy"), ("table-2.1", "QNS has")
    assert [verdicts(claims(good))[each] for each in wants] == [[True], [True]]
    detour = strategies(CBR=5.0, QNS_direct=0.0, QNS_tree=1.0)
    assert [verdicts(claims(detour))[each] for each in wants] == [[True], [False]]
    first = good.strategies[0]
    other = first._replace(row=replace(first.row, ideal_hops=1.5))
    fewer = replace(good, strategies=(other, *good.strategies[1:]))
    assert verdicts(claims(fewer))[wants[0]] == [False]


@pytest.mark.parametrize(
    ("cost", "holds"),
    [
        (Cost(3_000, 0.5, 1e-15, 0.01, 1.0, True), True),
        (Cost(3_000, 0.5, 1e-3, 0.01, 1.0, True), False),
        (Cost(3_000, 0.5, 1e-15, 9.0, 1.0, True), False),
    ],
)
def test_associativity_claim_follows_the_cost(cost: Cost, holds: bool) -> None:
    found = verdicts(claims(Findings(Setups(), costs=(cost,))))
    assert found["associativity", "Associativity of"] == [holds]


def test_only_formula_claims_are_judged_without_measurements() -> None:
    assert {each.figure for each in claims(Findings(Setups()))} == {"3.7", "3.8", "3.9"}
