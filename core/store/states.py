"""The states of a job, and every transition between them, in one table."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """Where a job is in its life."""

    #: Waits for a worker.
    QUEUED = "queued"
    #: A worker holds its lease and works on it.
    RUNNING = "running"
    #: Asked to pause; the worker has not stopped yet.
    PAUSING = "pausing"
    #: Stopped at a checkpoint, held by no worker.
    PAUSED = "paused"
    #: Asked to cancel; the worker has not stopped yet.
    CANCELLING = "cancelling"
    #: Ended with a result.
    SUCCEEDED = "succeeded"
    #: Ended with an error.
    FAILED = "failed"
    #: Ended because someone asked.
    CANCELLED = "cancelled"


class Transition(StrEnum):
    """What can happen to a job. The values are verbs that fit "cannot ... job_x"."""

    #: A worker takes it. A running one only when its lease has run out.
    CLAIM = "claim"
    #: Its worker finished. A cancel that came too late changes nothing: the result is there.
    SUCCEED = "complete"
    #: Its worker met an error.
    FAIL = "fail"
    #: A user wants it stopped.
    CANCEL = "cancel"
    #: Its worker saw the wish and stopped.
    STOP = "stop"
    #: Its worker shuts down and gives it back.
    REQUEUE = "requeue"
    #: Its lease ran out and another try is left.
    RECOVER = "recover"
    #: Its lease ran out for the last time.
    GIVE_UP = "give up"


#: Where each transition leads, by the state it starts from. What is absent is illegal.
TRANSITIONS: Mapping[Transition, Mapping[State, State]] = MappingProxyType(
    {
        Transition.CLAIM: {State.QUEUED: State.RUNNING, State.RUNNING: State.RUNNING},
        Transition.SUCCEED: {State.RUNNING: State.SUCCEEDED, State.CANCELLING: State.SUCCEEDED},
        Transition.FAIL: {State.RUNNING: State.FAILED, State.CANCELLING: State.FAILED},
        Transition.CANCEL: {State.QUEUED: State.CANCELLED, State.RUNNING: State.CANCELLING},
        Transition.STOP: {State.CANCELLING: State.CANCELLED},
        Transition.REQUEUE: {State.RUNNING: State.QUEUED, State.CANCELLING: State.CANCELLED},
        Transition.RECOVER: {State.RUNNING: State.QUEUED, State.CANCELLING: State.CANCELLED},
        Transition.GIVE_UP: {State.RUNNING: State.FAILED, State.CANCELLING: State.CANCELLED},
    }
)

#: States a job never leaves.
TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
#: States in which a worker holds the lease.
HELD = frozenset({State.RUNNING, State.PAUSING, State.CANCELLING})
