"""The states of a job, and the table of all transitions."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """The state of a job."""

    #: Waiting for a worker.
    QUEUED = "queued"
    #: A worker holds the lease and runs the job.
    RUNNING = "running"
    #: A user requested a pause; the worker has not stopped yet.
    PAUSING = "pausing"
    #: Stopped at a checkpoint; no worker holds the lease.
    PAUSED = "paused"
    #: A user requested a cancel; the worker has not stopped yet.
    CANCELLING = "cancelling"
    #: Ended with a result.
    SUCCEEDED = "succeeded"
    #: Ended with an error.
    FAILED = "failed"
    #: Ended by a user.
    CANCELLED = "cancelled"


class Transition(StrEnum):
    """A transition of a job. The values are verbs for messages such as "Cannot cancel job_x"."""

    #: A worker takes the job. A running job can be claimed only after its lease expired.
    CLAIM = "claim"
    #: The worker finished. A late cancel changes nothing.
    SUCCEED = "complete"
    #: The worker met an error.
    FAIL = "fail"
    #: A user cancels the job.
    CANCEL = "cancel"
    #: The worker stopped after a cancel.
    STOP = "stop"
    #: A user pauses the job; its checkpoint is kept.
    PAUSE = "pause"
    #: The worker stored a checkpoint and stopped after a pause.
    SUSPEND = "suspend"
    #: A user resumes the job.
    RESUME = "resume"
    #: The worker shuts down and returns the job to the queue.
    REQUEUE = "requeue"
    #: The lease expired, and another attempt is left.
    RECOVER = "recover"
    #: The lease expired, and no attempt is left.
    GIVE_UP = "give up"


#: The state of a job after it lost its worker: the requested state, else queued.
_WITHOUT_WORKER = {
    State.RUNNING: State.QUEUED,
    State.PAUSING: State.PAUSED,
    State.CANCELLING: State.CANCELLED,
}

#: The target state of each transition, by its start state. All others are not allowed.
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
        # A cancel can arrive while the checkpoint is being stored.
        Transition.SUSPEND: {State.PAUSING: State.PAUSED, State.CANCELLING: State.CANCELLED},
        Transition.RESUME: {State.PAUSED: State.QUEUED},
        Transition.REQUEUE: _WITHOUT_WORKER,
        Transition.RECOVER: _WITHOUT_WORKER,
        Transition.GIVE_UP: {
            State.RUNNING: State.FAILED,
            State.PAUSING: State.FAILED,
            State.CANCELLING: State.CANCELLED,
        },
    }
)

#: States of a job that can be retried: it ended without a result.
RETRYABLE = frozenset({State.FAILED, State.CANCELLED})


class JobAction(StrEnum):
    """An action of a user on a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"


def allowed_actions(state: State) -> list[JobAction]:
    """List the actions that have an effect in a state."""
    starts = {
        JobAction.PAUSE: TRANSITIONS[Transition.PAUSE],
        JobAction.RESUME: TRANSITIONS[Transition.RESUME],
        JobAction.CANCEL: TRANSITIONS[Transition.CANCEL],
        JobAction.RETRY: RETRYABLE,
    }
    return [action for action in JobAction if state in starts[action]]


#: Final states.
TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
#: States in which a worker holds the lease.
HELD = frozenset({State.RUNNING, State.PAUSING, State.CANCELLING})
