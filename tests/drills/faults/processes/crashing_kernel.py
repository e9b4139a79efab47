"""A job whose native code crashes the worker, whoever runs it."""

from tests.drills.framework.clients import SHORT_PASSES, SHORT_SENTENCES
from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene
from tests.services import wait_until


@drill(
    fault="a kernel that crashes: a poison job",
    where="native code of one job reads address 0 (SIGSEGV) in every worker that runs it",
    promise="The job fails with `worker_lost` after two losses. All other jobs succeed.",
)
def crashing_kernel(scene: Scene) -> None:
    upload = scene.clients.upload(SHORT_SENTENCES)
    poison = scene.clients.intend(ends=("failed",))
    scene.inside.arm("poison", str(poison.seed))
    scene.clients.submit(poison, upload, SHORT_PASSES)
    wait_until(lambda: scene.job(poison.id).ended, "the end of the poison job", 120)
    job = scene.job(poison.id)
    assert job.error is not None
    assert (job.state.value, job.error["code"], job.attempt) == ("failed", "worker_lost", 2)
