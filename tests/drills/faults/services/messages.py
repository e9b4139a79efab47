"""Messages about jobs that come too often, or never."""

import contextlib
import threading

import httpx

from tagsmith.client import ApiError
from tagsmith.core.service import messages
from tagsmith.worker.celery_app import create_celery
from tests.drills.framework.clients import SHORT_PASSES, SHORT_SENTENCES
from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene
from tests.services import wait_until

TIMES = 5


@drill(
    fault="duplicate delivery, five times at once",
    where="the message of a job that runs and that of one that waits, sent five more times by five threads",
    promise="The claim of the row decides. Later messages find nothing to do.",
    rival="Celery 5935",
)
def duplicate_delivery(scene: Scene) -> None:
    waiting = scene.clients.train(scene.clients.upload(SHORT_SENTENCES), SHORT_PASSES)
    assert waiting.id is not None
    together = threading.Barrier(TIMES)

    def send() -> None:
        with create_celery(scene.running_settings) as app:
            together.wait()
            for job in (scene.job(), scene.job(waiting.id)):
                app.send_task(messages.TASK, [job.id], queue=job.queue, ignore_result=True)

    threads = [threading.Thread(target=send) for _ in range(TIMES)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


@drill(
    fault="a process killed between commit and send",
    where="the API process that stores a job, after the commit and before the message",
    promise="The job runs, and once: a reaper sends its message, and the repeated request finds its first response.",
)
def killed_before_send(scene: Scene) -> None:
    upload = scene.clients.upload(SHORT_SENTENCES)
    scene.inside.arm("before-send")
    # Without a response nobody knows. The checker looks for it by its seed.
    with contextlib.suppress(ApiError, httpx.HTTPError):
        scene.clients.train(upload, SHORT_PASSES)
    wait_until(lambda: not scene.inside.is_armed("before-send"), "a process to die")
