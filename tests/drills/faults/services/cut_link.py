"""A host loses the network to the servers that it shares with another one."""

from tests.drills.framework.drill import drill
from tests.drills.framework.hosts import HostsScene
from tests.drills.framework.scene import Scene


@drill(
    fault="the link of a host cut",
    where="two hosts in network namespaces share PostgreSQL and Redis; the cable of the one that trains is taken out "
    "for 4 to 8 s, without any packet that says so",
    promise="The other host takes the job over. Late writes of the first are refused. Open models tag on both.",
    rival="Celery 5935",
    scenes=("hosts",),
)
def cut_link(scene: Scene) -> None:
    assert isinstance(scene, HostsScene)
    scene.cut(scene.host_of(scene.holder()))
    scene.mark_over()
    scene.pause(4.0, 8.0)
    scene.heal()
