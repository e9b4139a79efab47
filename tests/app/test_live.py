"""Live events that come too fast or cannot be read: the watcher is sent to SQL."""

import asyncio
import json

from redis.asyncio import Redis

from tagsmith.app.jobs.live import QUEUE_LENGTH, LiveEvent, LiveEvents, News, Resync, Tick, Watch
from tagsmith.core.service import messages


def test_a_watcher_that_falls_far_behind_is_told_so_in_place_of_what_it_missed() -> None:
    async def play() -> list[News | None]:
        watch = Watch()
        for number in range(QUEUE_LENGTH + 1):
            watch.put(Tick({"pass": number}))
        return [await watch.next(60), await watch.next(60), await watch.next(0)]

    resync, last, nothing = asyncio.run(play())
    assert isinstance(resync, Resync)
    assert last == Tick({"pass": QUEUE_LENGTH})
    assert nothing is None


def test_an_entry_that_cannot_be_read_counts_as_missed_and_the_next_is_heard(redis_url: str) -> None:
    async def play() -> list[News | None]:
        async with Redis.from_url(redis_url) as redis:
            live = LiveEvents(redis)
            reading = asyncio.create_task(live.run())
            with live.watch("job_x") as watch:
                attached = await watch.next(60)
                assert isinstance(attached, Resync)
                for fields in ({"event": "{"}, {"event": "{}"}, {"event": json.dumps({"seq": 7})}):
                    await redis.xadd(messages.stream_key("job_x"), fields)
                heard = [await watch.next(60) for _ in range(3)]
            reading.cancel()
            return heard

    first, second, third = asyncio.run(play())
    assert isinstance(first, Resync)
    assert isinstance(second, Resync)
    assert third == LiveEvent(7, {"seq": 7})
