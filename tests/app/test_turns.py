"""Turns on the event loop: tagging leaves gaps for everything else, and nobody is passed over."""

import asyncio

from tagsmith.app.tagging.turns import EACH_ROUND, Turns

WAITING = 100


def test_a_round_takes_a_few_requests_in_the_order_they_came() -> None:
    order: list[int] = []
    rounds: list[int] = []

    async def ask(turns: Turns, number: int) -> None:
        await turns.take()
        order.append(number)

    async def act() -> None:
        turns = Turns()
        asked = [asyncio.create_task(ask(turns, number)) for number in range(WAITING)]
        while len(order) < WAITING:
            before = len(order)
            await asyncio.sleep(0)  # one round of the loop
            rounds.append(len(order) - before)
        await asyncio.gather(*asked)
        await turns.take()  # and when all is quiet again, at once

    asyncio.run(asyncio.wait_for(act(), 10))
    assert order == list(range(WAITING))
    assert max(rounds) == EACH_ROUND
    assert len(rounds) < 2 * WAITING / EACH_ROUND


def test_a_client_that_goes_leaves_its_turn_to_the_next() -> None:
    async def act() -> list[int]:
        turns, done = Turns(), []

        async def ask(number: int) -> None:
            await turns.take()
            done.append(number)

        asked = [asyncio.create_task(ask(number)) for number in range(3 * EACH_ROUND)]
        await asyncio.sleep(0)
        for gone in asked[EACH_ROUND : 2 * EACH_ROUND]:
            gone.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        return done

    done = asyncio.run(asyncio.wait_for(act(), 10))
    assert done == [*range(EACH_ROUND), *range(2 * EACH_ROUND, 3 * EACH_ROUND)]
