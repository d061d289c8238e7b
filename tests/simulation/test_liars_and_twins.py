"""Members that lie and copies of peers: what each does to a small world, and to the plans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.errors import Busy
from qns.federation.document_xml import write_federation
from qns.iil.requests import InstallDocument, Publish
from qns.simulation.actions import Action
from qns.simulation.faults import FAULTS, SEPARATE
from qns.simulation.findings import Findings
from qns.simulation.injection import Injection
from qns.simulation.lasting import keeping_out
from qns.simulation.liars import LIES
from qns.simulation.lie_bounds import MOST_LINES, TURN_LENGTH, judge_lie_bounds
from qns.simulation.rest import unrest
from qns.simulation.trusted import concerns
from qns.simulation.turn_cost import counted
from qns.simulation.twin_rules import TWIN, judge_twins
from qns.simulation.workload import make_plan
from qns.simulation.world import World
from tests.edl.peers import cut, delivered, install, peer_of, publish, subscribe, world_of
from tests.resting import comes_to_rest_and_holds

OLD_FAULTS = tuple(fault for fault in FAULTS if fault not in SEPARATE)


def test_new_faults_leave_the_plans_of_other_seeds_as_they_were() -> None:
    changed = [
        seed for seed in range(200) if make_plan(seed, 6, FAULTS) != make_plan(seed, 6, OLD_FAULTS)
    ]
    for seed in changed:
        kinds = {each.kind for each in make_plan(seed, 6, FAULTS).actions}
        assert kinds & {"lie", "twin"}
    assert 10 < len(changed) < 100


def test_users_do_not_want_to_hear_from_a_liar() -> None:
    plan = next(plan for seed in range(99) if (plan := make_plan(seed, 4, ("liar",))).liars)
    (liar,) = plan.liars
    assert liar in plan.federation
    subscriptions = [each for each in plan.actions if each.kind == "subscribe"]
    assert subscriptions
    assert all(" from " in str(each.fields["text"]) for each in subscriptions)
    assert not any(liar in str(each.fields["text"]) for each in subscriptions)


def lied_to(lie: str, *, large: bool = False, **tuning: float) -> World:
    """Returns a world of which L tells a lie to P, about C where it concerns another one."""
    world = world_of("P", "C", "L", **tuning)
    world.liars = frozenset("L")
    subscribe(world, "C", text="Report from P")
    fields: dict[str, object] = {"lie": lie, "to": "P", "third": "C", "times": 3, "large": large}
    Injection(world, {}).do_lie(Action(1.0, "lie", "L", fields))
    world.run_for(5.0)
    return world


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("lie", LIES)
def test_lie_keeps_no_event_of_others_back_and_no_turn_long(lie: str, *, large: bool) -> None:
    world = lied_to(lie, large=large)
    findings = Findings()
    judge_lie_bounds(world, findings)
    assert not findings.violations
    assert findings.asked[TURN_LENGTH] or lie == "silence"
    publish(world, "P", "e1")
    world.run_for(20.0)
    assert delivered(world, "C") == ["e1"]


def test_custody_for_an_event_of_a_liar_neither_disturbs_rest_nor_delays_others() -> None:
    world = lied_to("two-contents", most_early=1)
    promised = list(peer_of(world, "P").status.promises())
    assert set(promised) == {("L", "C")}
    world.run_for(30.0)
    publish(world, "P", "e1")
    world.run_for(0.5)
    assert delivered(world, "C") == ["e1"]
    world.run_for(2.0)  # the last acknowledgement
    assert list(peer_of(world, "P").status.promises()) == promised
    assert unrest(world) is None
    world.liars, world.absent = frozenset(), {"L"}  # the events of a member that is away count
    assert unrest(world) == "P has events in custody for C"


def test_liar_that_never_acknowledges_is_removed_so_that_a_former_member_can_join_again() -> None:
    world = world_of("P", "C", "L")
    subscribe(world, "L")
    world.run_for(5.0)
    cut(world, "P", "L")
    cut(world, "C", "L")
    publish(world, "P", "e1")
    former = world.federation["P"]
    world.leave("P")
    install(world, world.federation, "P", "C")
    world.change_document(world.federation.with_organisation(former))
    world.join("P")
    xml = write_federation(world.federation)
    with pytest.raises(Busy, match="owes events of its former membership"):
        world.do("P", InstallDocument(xml))
    assert keeping_out(world, ["P", "C"]) == []
    world.liars = frozenset("L")
    assert keeping_out(world, ["P", "C"]) == ["L"]
    world.leave("L")
    install(world, world.federation, "P")
    assert keeping_out(world, ["P", "C"]) == []


def test_long_turn_after_a_lie_breaks_a_rule() -> None:
    world = lied_to("epochs")
    world.lied_to.append((world.now, "P", MOST_LINES + 1))
    findings = Findings()
    judge_lie_bounds(world, findings)
    assert findings.broken[TURN_LENGTH] == 1


def test_lines_of_a_function_are_counted() -> None:
    def work() -> int:
        total = 0
        for number in range(100):
            total += number
        return total

    result, lines = counted(work)
    assert result == 4950
    assert 200 <= lines <= 210


def test_record_concerns_an_organisation_that_it_names() -> None:
    assert concerns({"org": "C", "do": "take", "source": "L"}, {"L"})
    assert not concerns({"org": "C", "do": "pub", "event": {"source": "L"}}, {"L"})


def world_with_a_twin() -> World:
    """Returns a world in which P has had a twin for a minute, and both have published."""
    world = world_of("P", "C", "D")
    for name in ("C", "D"):
        subscribe(world, name)
    world.run_for(2.0)
    assert world.start_twin("P")
    for nth in range(60):
        fields = {"id": f"t{nth}", "class": "Report", "source": "P", "available": "INF"}
        world.ask_twin("P", Publish(EventReader(WEATHER).from_fields(fields)))
        publish(world, "P", f"e{nth}")
        world.run_for(1.0)
    return world


def test_copy_gives_way_and_both_say_so() -> None:
    world = world_with_a_twin()
    twin, findings = world.twins["P"], Findings()
    assert twin.has_given_way
    judge_twins(world, findings)
    assert not findings.violations
    assert findings.asked[TWIN] > 5
    world.run_for(100.0)
    publish(world, "P", "last")
    world.run_for(20.0)
    for name in ("C", "D"):
        notified = [
            each["event"] for each in world.history if each["do"] == "ntfy" and each["org"] == name
        ]
        assert notified[-1] == "last"
        assert len(set(notified)) == len(notified)


def test_publication_that_is_missing_in_the_store_of_a_twin_breaks_a_rule() -> None:
    world = world_with_a_twin()
    twin, findings = world.twins["P"], Findings()
    at, request = twin.acknowledged[0]
    assert isinstance(request, Publish)
    forged = replace(request, event=request.event._replace(id="never"))
    twin.acknowledged.append((at, forged))
    judge_twins(world, findings)
    assert findings.broken[TWIN] == 1


def test_event_whose_class_is_hosted_elsewhere_need_not_stay_in_the_store_of_a_twin() -> None:
    world = world_with_a_twin()
    twin, findings = world.twins["P"], Findings()
    at, request = twin.acknowledged[0]
    assert isinstance(request, Publish)
    wind = request.event._replace(id="never", data_class="Report/Wind")
    twin.acknowledged.append((at, replace(request, event=wind)))
    world.change_document(world.federation.hosting("P", ["Report"]))
    judge_twins(world, findings)
    assert not findings.violations


def test_host_that_is_down_gets_no_twin() -> None:
    world = world_of("P", "C")
    world.kill("P")
    assert not world.start_twin("P")
    world.start("P")
    comes_to_rest_and_holds(world)
