"""PostgreSQL is killed, restarted, slow, or there for some processes only."""

from tests.drills.framework.drill import drill
from tests.drills.framework.scene import PostgresScene, Scene

#: Long enough for leases to expire, short enough for clients to wait.
OUTAGE_S = 5.0
#: How long each message to the server takes. A transaction has some.
DELAY_S = 0.15


@drill(
    fault="kill -9 of PostgreSQL",
    where="the server and all its processes, started again after up to 5 s",
    promise="Workers go on computing and store the result later. Open models tag.",
)
def killed_postgresql(scene: Scene) -> None:
    assert isinstance(scene, PostgresScene)
    scene.postgres.kill()
    scene.moment(OUTAGE_S)
    scene.postgres.start()


@drill(
    fault="the database restarted",
    where="PostgreSQL stopped in order, which ends all sessions, and started again at once",
    promise="Every process connects again by itself.",
)
def restarted_postgresql(scene: Scene) -> None:
    assert isinstance(scene, PostgresScene)
    scene.postgres.halt()
    scene.postgres.start()


@drill(
    fault="the database slow",
    where=f"every message to PostgreSQL takes {DELAY_S:g} s longer, for 4 to 8 s",
    promise="Everything takes longer, and no lease is lost for good.",
)
def slow_postgresql(scene: Scene) -> None:
    assert isinstance(scene, PostgresScene)
    scene.relay.delay_s = DELAY_S
    scene.pause(4.0, 8.0)
    scene.relay.heal()


@drill(
    fault="the database reachable by half of the processes only",
    where="connections of the worker that trains and of one API process are closed and refused, for 4 to 8 s",
    promise="A worker that sees the database takes the job over. Late writes of the first are refused.",
)
def half_reachable(scene: Scene) -> None:
    assert isinstance(scene, PostgresScene)
    scene.relay.cut({scene.holder(), scene.pid("api-2")})
    scene.pause(4.0, 8.0)
    scene.relay.heal()
