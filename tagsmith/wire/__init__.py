"""One definition of everything that goes over the wire, used by the server, the client and the documentation.

Nothing here imports more than pydantic. Specs of jobs, trainers and features are defined with the code that reads
them; here they are plain objects.
"""

from tagsmith.wire.access import ApiKey, AuditEntry, CreatedKey, NewKey
from tagsmith.wire.aliases import Alias, AliasMove, AliasRollback, Move
from tagsmith.wire.base import Listing
from tagsmith.wire.catalogue import JobCheck, JobEstimate, PresetInfo, TrainerInfo, TrainerOption
from tagsmith.wire.corpora import (
    CorpusInfo,
    CorpusInspection,
    CorpusSentence,
    CorpusSpan,
    CorpusStatistics,
    MisplacedLabel,
)
from tagsmith.wire.features import FeatureCounts, FeaturePreview, PrintedTemplates, TemplateOccurrences
from tagsmith.wire.health import HealthCheck, Liveness, Readiness, ServerVersion
from tagsmith.wire.inspection import (
    ChangedWeight,
    MetricChange,
    SpecChange,
    TemplateInfo,
    TemplateSelection,
    VersionComparison,
    VersionTemplates,
    WeightComparison,
    WeightedFeature,
    WeightedTransition,
    WeightHistogram,
)
from tagsmith.wire.jobs import Job, JobEvent, JobProgress
from tagsmith.wire.lexicons import LexiconInfo
from tagsmith.wire.models import ModelInfo, ModelSignature, ModelVersion, TypeScore, VersionEvaluation
from tagsmith.wire.names import TERMINAL_STATES, ChunkCoding, JobActionName, JobState, KeyScope, TokenizerName
from tagsmith.wire.policies import (
    KeptVersion,
    NewPolicy,
    Policy,
    PromotionPolicy,
    RemovedVersion,
    RetentionPlan,
    RetentionPolicy,
)
from tagsmith.wire.problems import ErrorLocation, ProblemDetails
from tagsmith.wire.tagging import (
    CandidateTransitions,
    LabelCandidate,
    LineError,
    LineOptions,
    TagConstraints,
    TaggedLine,
    TagLine,
    TagOptions,
    TagRequest,
    TagResponse,
    TagSequences,
    TagSpan,
    TokenExplanation,
    TokenizerSpec,
)

__all__ = [
    "TERMINAL_STATES",
    "Alias",
    "AliasMove",
    "AliasRollback",
    "ApiKey",
    "AuditEntry",
    "CandidateTransitions",
    "ChangedWeight",
    "ChunkCoding",
    "CorpusInfo",
    "CorpusInspection",
    "CorpusSentence",
    "CorpusSpan",
    "CorpusStatistics",
    "CreatedKey",
    "ErrorLocation",
    "FeatureCounts",
    "FeaturePreview",
    "HealthCheck",
    "Job",
    "JobActionName",
    "JobCheck",
    "JobEstimate",
    "JobEvent",
    "JobProgress",
    "JobState",
    "KeptVersion",
    "KeyScope",
    "LabelCandidate",
    "LexiconInfo",
    "LineError",
    "LineOptions",
    "Listing",
    "Liveness",
    "MetricChange",
    "MisplacedLabel",
    "ModelInfo",
    "ModelSignature",
    "ModelVersion",
    "Move",
    "NewKey",
    "NewPolicy",
    "Policy",
    "PresetInfo",
    "PrintedTemplates",
    "ProblemDetails",
    "PromotionPolicy",
    "Readiness",
    "RemovedVersion",
    "RetentionPlan",
    "RetentionPolicy",
    "ServerVersion",
    "SpecChange",
    "TagConstraints",
    "TagLine",
    "TagOptions",
    "TagRequest",
    "TagResponse",
    "TagSequences",
    "TagSpan",
    "TaggedLine",
    "TemplateInfo",
    "TemplateOccurrences",
    "TemplateSelection",
    "TokenExplanation",
    "TokenizerName",
    "TokenizerSpec",
    "TrainerInfo",
    "TrainerOption",
    "TypeScore",
    "VersionComparison",
    "VersionEvaluation",
    "VersionTemplates",
    "WeightComparison",
    "WeightHistogram",
    "WeightedFeature",
    "WeightedTransition",
]
