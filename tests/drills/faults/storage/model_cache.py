"""Files of open models are damaged or deleted."""

import signal

from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene


@drill(
    fault="the model cache corrupt or deleted while serving",
    where="every cached model file is replaced by a damaged or shorter one, or deleted; then an API process is killed, "
    "so that its successor opens them",
    promise="Open models tag from their mapping. A damaged file is recognised and fetched again from SQL.",
)
def damaged_model_cache(scene: Scene) -> None:
    for path in scene.cached_models():
        content = bytearray(path.read_bytes())
        damage = scene.rng.choice(("flip", "shorten", "delete"))
        if damage == "delete":
            path.unlink()
            continue
        if damage == "flip":
            content[scene.rng.randrange(len(content))] ^= 0xFF
        # Replaced as a damaged copy would be: a mapping keeps the old file.
        other = path.with_suffix(".damaged")
        other.write_bytes(content if damage == "flip" else content[: len(content) // 2])
        other.rename(path)
    scene.kill(scene.pid("api-1"), signal.SIGKILL)
