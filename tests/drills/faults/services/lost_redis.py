"""Redis goes away, or forgets everything."""

from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene


@drill(
    fault="kill -9 of Redis",
    where="the Redis server, started again after up to 3 s",
    promise="Running jobs continue, new ones wait in SQL, tagging does not notice.",
    scenes=("postgresql", "sqlite"),
)
def killed_redis(scene: Scene) -> None:
    attempt = scene.job().attempt
    scene.kill_redis()
    scene.moment(3.0)
    scene.restore_redis()
    assert scene.job().attempt == attempt


@drill(
    fault="Redis flushed",
    where="FLUSHALL at a random moment: messages, streams and limits are gone",
    promise="Reapers send the missing messages again. Events are read from SQL.",
)
def flushed_redis(scene: Scene) -> None:
    scene.flush_redis()
