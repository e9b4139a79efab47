"""One repetition of a drill: clients at work, a fault at a random moment, recovery, and what the checker finds."""

import contextlib
import random
import time
import zlib
from dataclasses import dataclass

from tests.drills.checker import Findings, check
from tests.drills.framework.clients import (
    ALIAS,
    MODEL,
    SHORT_PASSES,
    SHORT_SENTENCES,
    Clients,
    Load,
    sentences,
)
from tests.drills.framework.drill import Drill
from tests.drills.framework.scene import Scene
from tests.drills.framework.tagging import Tagging, Watch
from tests.drills.history import History
from tests.services import wait_until

#: Only a repetition that fails waits for it.
RECOVERY_DEADLINE_S = 90.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one repetition showed."""

    seed: int
    lost: int
    doubled: int
    mixed: int
    #: The longest time without an answer to `/tag`.
    unanswered_s: float
    #: From the end of the fault to the end of the last pause of more than a second, in passes or in answers.
    recovery_s: float
    #: Whether the job was still under way when the fault happened.
    hit: bool
    #: What was found, in words.
    findings: str
    #: Whether it ended with an error instead of a comparison.
    is_broken: bool = False

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.mixed)


def seed_of(row: str, seed: int, repetition: int) -> int:
    """Derive the seed of a repetition, so that each can be repeated alone."""
    return zlib.crc32(f"{row} {seed} {repetition}".encode())


def rehearse(drill: Drill, scene: Scene, seed: int, all_histories: History | None = None) -> Outcome:
    """Inject the fault once, and check what clients were told. It is added to `all_histories`."""
    history = History(sentences=sentences(), others=scene.known)
    scene.rng, scene.over_at = random.Random(seed), None
    if scene.fresh:
        scene.start()
    try:
        scene.settle()
        if scene.prepared_for != drill.name:
            scene.restore()
            if drill.prepare is not None:
                drill.prepare(scene)
            scene.prepared_for = drill.name
        with contextlib.closing(Clients(scene.url, history, scene.numbers)) as clients:
            outcome = _inject(drill, scene, clients, seed)
    finally:
        if scene.fresh:
            scene.stop()
    if all_histories is not None:
        all_histories.add(history)
    return outcome


def _inject(drill: Drill, scene: Scene, clients: Clients, seed: int) -> Outcome:
    history, scene.clients = clients.history, clients
    if not scene.has_champion:
        clients.client.wait(clients.train(clients.upload(SHORT_SENTENCES), SHORT_PASSES).id or "")
        scene.has_champion = True
    scene.job_id = scene.begin(clients)
    with (
        Tagging(scene.url, f"{MODEL}@{ALIAS}", history, scene.tag_interval_s) as tagging,
        Watch(scene.database, scene.job_id) as watch,
    ):
        wait_until(lambda: watch.passes_at(time.monotonic()) >= scene.first_pass, "the first pass")
        with Load(scene.url, history, scene.numbers, seed) as load:
            scene.tagging = tagging
            scene.moment()
            hit = not watch.ended_before(time.monotonic())
            drill.inject(scene)
            over_at = scene.over_at or time.monotonic()
            _await_recovery(tagging, watch, over_at)
        scene.await_quiet()
        wait_until(lambda: watch.ended_before(time.monotonic()), "the end of the job")
    recovery_s = max(tagging.recovered_at(over_at), watch.recovered_at(over_at)) - over_at
    clients.look()
    for each in load.refused:
        raise AssertionError(f"a client was refused: {each}")
    findings = check(clients.client, history)
    scene.known = {
        *(each.id for each in clients.client.jobs(model=MODEL)),
        *(f"{MODEL}:{each.version}" for each in clients.client.versions(MODEL)),
    }
    return _outcome(seed, findings, tagging.worst_gap_s, recovery_s, hit=hit)


def _await_recovery(tagging: Tagging, watch: Watch, over_at: float) -> None:
    """Wait until the job under way has made progress and a tag was answered."""
    wait_until(lambda: watch.has_progressed_since(over_at), "progress of the job", RECOVERY_DEADLINE_S)
    wait_until(lambda: tagging.has_answered_since(over_at), "an answer to a tag", RECOVERY_DEADLINE_S)


def _outcome(seed: int, findings: Findings, unanswered_s: float, recovery_s: float, *, hit: bool) -> Outcome:
    return Outcome(
        seed=seed,
        lost=findings.count("lost"),
        doubled=findings.count("doubled"),
        mixed=findings.count("mixed"),
        unanswered_s=round(unanswered_s, 2),
        recovery_s=round(recovery_s, 2),
        hit=hit,
        findings=str(findings) if findings else "",
    )
