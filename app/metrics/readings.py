"""What other parts of a process count for themselves, taken over into its meters whenever these are shown."""

from app.limits import OpenStreams
from app.metrics import names
from app.metrics.meters import Meters
from core.model.cache import ModelCache, Usage
from core.model.tagger import Tagger


class Readings:
    """Reads the streams and the model cache. Lives on the event loop, as the meters do."""

    def __init__(self, meters: Meters, streams: OpenStreams, cache: ModelCache[Tagger]) -> None:
        self.meters = meters
        self._streams = streams
        self._cache = cache
        self._seen = Usage(0, 0, 0)

    def take(self) -> None:
        """Bring the meters up to date."""
        # What the cache counted is added and not set: the meters go on from the figures of an earlier process.
        usage, seen = self._cache.usage, self._seen
        self._seen = usage
        self.meters.count(names.CACHE_HITS, amount=usage.hits - seen.hits)
        self.meters.count(names.CACHE_MISSES, amount=usage.misses - seen.misses)
        self.meters.figures.gauges[names.OPEN_MODELS] = usage.open_models
        self.meters.figures.gauges[names.STREAMS] = self._streams.count

    def cached_bytes(self) -> int:
        """Give the size of the model files of this machine. Reads a folder: call it in a thread."""
        return self._cache.stored_bytes
