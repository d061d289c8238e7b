"""Workload: the plan of one seed: the actions of users, factories and operators, and the faults.

A plan is data: actions with their times, drawn from one seed. So it can be printed, reduced to the
few actions that matter, and played again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from random import Random

from qns.d2q.shipped import WEATHER
from qns.edl.view_reader import SLICE_CHARACTERS
from qns.federation.document import Federation, Organisation
from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.bounds import with_tiny_bounds
from qns.simulation.disk_faults import KINDS, draw_disk_faults
from qns.simulation.faults import SEPARATE, Faults
from qns.simulation.forging import FORGER_CAPABILITY, draw_forging
from qns.simulation.growth import draw_growth
from qns.simulation.host_faults import draw_host_faults, draw_repeats, with_certain_availability
from qns.simulation.lasting import draw_lasting
from qns.simulation.liars import (
    LIAR_CAPABILITY,
    draw_lies,
    liars_in,
    with_liars,
    without_events_of_liars,
)
from qns.simulation.rights import draw_rights, rules_of, with_group
from qns.simulation.splits import draw_split
from qns.simulation.stub_seals import with_stub_seals
from qns.simulation.twins import draw_twin
from qns.simulation.users import CLASSES, USER_KINDS, Users, some


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a seed decides, except what happens to single messages."""

    seed: int
    federation: Federation
    actions: tuple[Action, ...]
    """The actions while faults are injected."""
    calm_actions: tuple[Action, ...]
    """The actions after everything is healed; their times count from then."""
    clocks: dict[str, float]
    """Organisation -> by how many seconds its clock is ahead."""
    newcomer: Organisation | None
    """An organisation that joins while the others run."""
    most_owed: float
    """The operator's limit to the events owed to one consumer."""
    longest_queue: float
    """The operator's limit to the deliveries that wait for one user."""
    sqlite: bool
    """True if the stores are SQLite, False if they are plain dictionaries."""

    @property
    def has_faults(self) -> bool:
        """True if something else happens than what users and Quality Factories do."""
        return any(each.kind not in USER_KINDS for each in self.actions)

    @property
    def on_files(self) -> bool:
        """True if the disks of the hosts must be real files."""
        return any(each.kind in KINDS for each in self.actions)

    @property
    def slice_characters(self) -> int:
        """The length of the slices in which peers read large views: some read one element."""
        return 1 if self.seed % 3 == 1 else SLICE_CHARACTERS

    @property
    def liars(self) -> frozenset[str]:
        """The members that lie."""
        return liars_in(self.actions) & self.federation.organisations.keys()

    @property
    def grouped(self) -> frozenset[str]:
        """The subscriptions in delivery groups."""
        return frozenset(
            str(each.fields["sub"])
            for each in (*self.actions, *self.calm_actions)
            if each.kind == "subscribe" and each.fields.get("group")
        )


def make_plan(seed: int, peers: int, faults: Iterable[str]) -> Plan:
    """Draws a plan from the seed."""
    faults = _swarm(seed, faults)
    chance = Random(seed)  # noqa: S311
    federation = _federation(chance, peers)
    if seed % 2:
        federation = with_stub_seals(federation)
    names = list(federation.organisations)
    newcomer = None
    if "federation" in faults and peers > 2 and chance.random() < 0.15:
        newcomer = federation[names[-1]]
        members = {name: federation[name] for name in names[:-1]}
        federation = replace(federation, organisations=members)
    users = Users(chance, names)
    injected = Faults(chance, names, faults, users)
    actions = [*users.actions(CHAOS_S, 26, 40), *injected.actions()]
    if "federation" in faults:
        actions += draw_growth(seed, names)
    if "lasting" in faults:
        actions += draw_lasting(seed, names)
    if "split" in faults and not any(each.kind == "sever" for each in actions):
        actions += draw_split(seed, names)
    actions += draw_host_faults(seed, names, faults)
    actions += draw_disk_faults(seed, names, faults, actions)
    if "bounds" in faults:
        actions = with_tiny_bounds(seed, actions)
    if "repeat" in faults:
        actions += draw_repeats(actions)
    if newcomer is not None:
        # Some newcomers get the document that names them alone, and offer it to the others.
        alone: dict[str, object] = {"alone": Random(f"newcomer {seed}").random() < 0.5}  # noqa: S311
        at = chance.uniform(0.5, CHAOS_S * 0.7)
        actions.append(Action(at, "rejoin", newcomer.name, alone))
    calm = [*users.actions(6.0, 8, 6), *users.publications(1.0, 5.0, 8)]
    clocks = {name: chance.uniform(-30.0, 30.0) for name in names}
    if "twin" in faults:
        actions += draw_twin(seed, names, actions)
    lies = draw_lies(seed, names) if "liar" in faults else []
    has_twin = any(each.kind == "twin" for each in actions)
    if "rights" in faults and not (lies and has_twin):  # docs/simulation.md says why
        rights = draw_rights(seed, list(federation.organisations))
        federation = with_group(seed, federation) if rights else federation
        if rights and rights[0].at == 0.0:
            first = rules_of(federation, rights.pop(0))
            federation = replace(federation, rights=first)
        actions += rights
    forging = draw_forging(seed, lies) if seed % 2 else []
    if lies:
        capability = FORGER_CAPABILITY if forging else LIAR_CAPABILITY
        federation = with_liars(federation, liars_in(lies), capability)
        clocks |= dict.fromkeys(liars_in(lies), 0.0)
        actions = [*without_events_of_liars(actions, names), *lies, *forging]
        calm = without_events_of_liars(calm, names)
    return Plan(
        seed,
        federation,
        tuple(sorted(with_certain_availability(actions), key=lambda each: each.at)),
        tuple(sorted(calm, key=lambda each: each.at)),
        clocks,
        newcomer,
        _most_owed(seed) if "retention" in faults else inf,
        _longest_queue(seed) if "overflow" in faults else inf,
        chance.random() < 0.5,
    )


def _swarm(seed: int, faults: Iterable[str]) -> frozenset[str]:
    """Switches about half of the faults off, in three of four seeds.

    Some defects show only if other faults do not hide them.
    """
    chosen = frozenset(faults)
    if "swarm" not in chosen or seed % 4 == 0:
        return chosen
    chance = Random(f"swarm {seed}")  # noqa: S311
    first = [fault for fault in sorted(chosen.difference(SEPARATE)) if chance.random() < 0.5]
    return frozenset(first) | {each for each in SEPARATE if each in chosen and _is_on(seed, each)}


def _is_on(seed: int, fault: str) -> bool:
    return Random(f"swarm {fault} {seed}").random() < 0.5  # noqa: S311


def _most_owed(seed: int) -> float:
    """Draws a limit in a sixth of the seeds."""
    return Random(f"retention {seed}").choice((2, 4, 6, *[inf] * 15))  # noqa: S311


def _longest_queue(seed: int) -> float:
    """Draws a limit in a sixth of the seeds."""
    return Random(f"overflow {seed}").choice((1, 2, 4, *[inf] * 15))  # noqa: S311


def _federation(chance: Random, peers: int) -> Federation:
    names = [f"Met{number:02}" for number in range(1, peers + 1)]
    hosts = {name: ["Report", *some(chance, CLASSES)] for name in names}
    organisations = {
        name: Organisation(name, frozenset(hosts[name]), capability=chance.choice((1, 2, 2, 3)))
        for name in names
    }
    return Federation("weather", WEATHER, organisations)
