"""Copies the counts of other components into the meters, before these are saved or scraped."""

from tagsmith.app.http.limits import OpenStreams
from tagsmith.app.metrics import names
from tagsmith.app.metrics.meters import Meters
from tagsmith.core.model.cache import CacheUsage, ModelCache
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.service import logs


class MetricsSampler:
    """Reads the open streams, the model cache and the dropped log lines. Use it on the event loop only."""

    def __init__(self, meters: Meters, streams: OpenStreams, cache: ModelCache[Tagger]) -> None:
        self.meters = meters
        self._streams = streams
        self._cache = cache
        self._seen = CacheUsage(0, 0, 0)
        self._dropped = 0

    def sample(self) -> None:
        """Update the meters."""
        # Add the difference: the meters continue the totals of an earlier process.
        usage, seen = self._cache.usage, self._seen
        self._seen = usage
        self.meters.count(names.CACHE_HITS, amount=usage.hits - seen.hits)
        self.meters.count(names.CACHE_MISSES, amount=usage.misses - seen.misses)
        dropped, self._dropped = self._dropped, logs.dropped()
        self.meters.count(names.DROPPED_LINES, amount=self._dropped - dropped)
        self.meters.totals.gauges[names.OPEN_MODELS] = usage.open_models
        self.meters.totals.gauges[names.OPEN_STREAMS] = self._streams.count

    def cached_bytes(self) -> int:
        """Return the size of the model files on this machine. It reads a directory, so call it in a thread."""
        return self._cache.stored_bytes
