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
    #: A user wants it to stand still, with what it has learned kept.
    PAUSE = "pause"
    #: Its worker saw that wish, stored a checkpoint and stopped.
    SUSPEND = "suspend"
    #: A user wants it to go on.
    RESUME = "resume"
    #: Its worker shuts down and gives it back.
    REQUEUE = "requeue"
    #: Its lease ran out and another try is left.
    RECOVER = "recover"
    #: Its lease ran out for the last time.
    GIVE_UP = "give up"


#: What a job becomes when it has no worker any more: what it was about to become, else queued.
_LET_GO = {
    State.RUNNING: State.QUEUED,
    State.PAUSING: State.PAUSED,
    State.CANCELLING: State.CANCELLED,
}

#: Where each transition leads, by the state it starts from. What is absent is illegal.
TRANSITIONS: Mapping[Transition, Mapping[State, State]] = MappingProxyType(
    {
        Transition.CLAIM: {State.QUEUED: State.RUNNING, State.RUNNING: State.RUNNING},
        Transition.SUCCEED: {
            State.RUNNING: State.SUCCEEDED,
            State.PAUSING: State.SUCCEEDED,
            State.CANCELLING: State.SUCCEEDED,
        },
        Transition.FAIL: {
            State.RUNNING: State.FAILED,
            State.PAUSING: State.FAILED,
            State.CANCELLING: State.FAILED,
        },
        Transition.CANCEL: {
            State.QUEUED: State.CANCELLED,
            State.PAUSED: State.CANCELLED,
            State.RUNNING: State.CANCELLING,
            State.PAUSING: State.CANCELLING,
        },
        Transition.STOP: {State.CANCELLING: State.CANCELLED},
        Transition.PAUSE: {State.QUEUED: State.PAUSED, State.RUNNING: State.PAUSING},
        # A cancel may come while the checkpoint is being stored.
        Transition.SUSPEND: {State.PAUSING: State.PAUSED, State.CANCELLING: State.CANCELLED},
        Transition.RESUME: {State.PAUSED: State.QUEUED},
        Transition.REQUEUE: _LET_GO,
        Transition.RECOVER: _LET_GO,
        Transition.GIVE_UP: {
            State.RUNNING: State.FAILED,
            State.PAUSING: State.FAILED,
            State.CANCELLING: State.CANCELLED,
        },
    }
)

#: States a job never leaves.
TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
#: States in which a worker holds the lease.
HELD = frozenset({State.RUNNING, State.PAUSING, State.CANCELLING})
