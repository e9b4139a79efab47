import signal
import threading
from types import FrameType

from tagsmith.worker.celery_app import heed_once


def test_a_signal_that_comes_again_while_its_handler_runs_does_not_enter_it_again() -> None:
    lock, entered = threading.Lock(), []

    def handle(number: int, frame: FrameType | None) -> None:
        entered.append(lock.acquire(blocking=False))
        signal.raise_signal(number)
        lock.release()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        heed_once(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert entered == [True]
