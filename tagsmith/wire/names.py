"""The forms of names, ids and model references, and the few sets of fixed words."""

from typing import Annotated, Literal

from pydantic import StringConstraints

#: Names of models and aliases: safe in a path, a file name and a model reference.
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
#: A version of a model: `name` (its champion, else its newest version), `name@alias` or `name:3`.
REFERENCE_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}(@[a-z0-9][a-z0-9._-]{0,63}|:[1-9][0-9]{0,8})?$"
#: The largest length of a model reference that a request may have. The longest valid one has 129 characters.
MAX_REFERENCE = 200

#: The alias that a bare model name refers to, if it exists.
DEFAULT_ALIAS = "champion"

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
#: A corpus: its id, its name (the newest upload under it), or `name:2`.
CorpusReference = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=220)]

#: The states of a job.
JobState = Literal["queued", "running", "pausing", "paused", "cancelling", "succeeded", "failed", "cancelled"]
#: States a job never leaves.
TERMINAL_STATES: frozenset[JobState] = frozenset({"succeeded", "failed", "cancelled"})

#: What a user can do to a job.
JobActionName = Literal["pause", "resume", "cancel", "retry"]

#: What a key allows: read everything but keys and the audit log; tag; upload and run jobs; change what is served; all.
KeyScope = Literal["read", "tag", "train", "promote", "admin"]

#: How text is split into tokens; `whitespace` is another name of `blanks`.
TokenizerName = Literal["words", "blanks", "whitespace", "characters"]
#: How labels encode chunks.
ChunkCoding = Literal["iob1", "iob2", "bioes", "bilou", "bmes"]
