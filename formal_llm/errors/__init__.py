"""Every exception that formal_llm raises on purpose.

::

    FormalLLMError
    ├── NotationError (ValueError)       a text does not follow its notation: file, line, column, caret
    │   ├── GrammarError                 a grammar cannot be read or makes no sense
    │   ├── CalculationError             an expression that the calculator cannot read, or that has no value
    ├── AutomatonError (ValueError)      an automaton written in code contradicts itself
    ├── Undecided                        a question about an automaton was not decided within its budget
    ├── InfiniteLanguage                 there are infinitely many plans; a bound on their length is needed
    ├── ResourceNotFound (LookupError)   no grammar, task pack or file of that name
    ├── PluginError                      what an installed package offers cannot be used: whose it is, and why
    ├── PlanningError
    │   ├── NoValidPlan                  nothing follows all the rules: grammar, constraints, limits
    │   ├── BudgetExceeded               a walk used up its questions, steps or backtracks; it can continue
    │   ├── RunStopped                   a run of many tasks was stopped before a plan was finished; it can continue
    │   ├── WalkError                    a walk was asked for what it cannot do now
    │   ├── ResultsError                 a results file is in use, damaged, or another run's
    │   ├── QueryError (ValueError)      wishes in words that contain too little or contradict each other: what, way out
    │   ├── NoPlanWorked                 plans were made and run, and each met a tool that failed: which tools
    │   ├── TooManyPlans                 a task has more plans than shall be listed
    │   └── SnapshotError (ValueError)   a snapshot is damaged or belongs to another automaton
    ├── ExecutionError                   base of what can go wrong when a plan is executed
    │   ├── ToolkitError (ValueError)    tools contradict each other or the grammar; reported before anything runs
    │   ├── InputError (ValueError)      an input is missing, too large, damaged, outside its folder, of another kind
    │   ├── ToolError                    a tool failed, hung, used too much memory, or returned the wrong kind
    │   ├── CheckpointError              the model of a tool cannot be had or does not fit: tool, checkpoint, way out
    │   ├── Pending                      raised by a tool whose result comes later: what it waits for
    │   └── Cancelled                    an execution was cancelled
    ├── AgentError                       base of what can go wrong with agents
    │   ├── AgentStopped                 a run used up its budget; carries its transcript so far
    │   ├── AgentPaused                  a run has paused, or waits for a person or a result; carries its state
    │   ├── NotAllowed                   an event after which the rules cannot be kept: why, and what is allowed
    │   ├── EarlyAnswer                  a guarded agent answered too early more often than it is sent back
    │   ├── TranscriptError (ValueError) a transcript that cannot be read, or that its agent could not have written
    │   ├── AuditError (ValueError)      the log of a guard cannot be used: damaged, no plain file, too large
    │   ├── TraceError (ValueError)      a trace of an agent cannot be read: file, line, what was expected
    │   └── WritingError                 a model did not get to an end within the bounds of its writer
    ├── RewardError (ValueError)         a reward is no finite number, or its cache cannot be used: task, word, file
    ├── TrainingError                    training cannot begin or continue: settings, checkpoint, a figure that is none
    └── LLMError
        ├── UnknownProvider (ValueError) a provider string that names no provider
        ├── MissingKey                   a hosted model without its key
        ├── MissingDependency (ImportError)  an optional library is not installed
        ├── InvalidAnswer                no legal answer within the retries; carries the transcript
        ├── WritesNoText (TypeError)     free text was wanted of a model that only chooses
        ├── ProviderError                the provider failed or refused
        │   └── UnreadableResponse       what came back is no answer: a page of HTML, cut JSON
        ├── ModelError                   a local model cannot be loaded or used: what and why
        ├── AnswerFileError              a file of recorded answers cannot be used: file, problem
        ├── NotAuthored                  a model drafted no clean rules in its tries: what was tried, what was wrong
        └── NotRecorded (LookupError)    a recording has no answer, or none left, to a question

``GrammarWarning`` is the one warning: a grammar that works but probably means something else than its author intended.

An exception carries its facts as attributes; its text is for a person.
"""

from formal_llm.errors.agents import (
    AgentError,
    AgentPaused,
    AgentStopped,
    AuditError,
    EarlyAnswer,
    NotAllowed,
    TraceError,
    TranscriptError,
    WritingError,
)
from formal_llm.errors.base import FormalLLMError, PluginError, ResourceNotFound, did_you_mean, unknown
from formal_llm.errors.execution import (
    Cancelled,
    CheckpointError,
    ExecutionError,
    InputError,
    Pending,
    ToolError,
    ToolkitError,
)
from formal_llm.errors.llms import (
    AnswerFileError,
    InvalidAnswer,
    LLMError,
    MissingDependency,
    MissingKey,
    ModelError,
    NotAuthored,
    NotRecorded,
    ProviderError,
    RewardError,
    TrainingError,
    UnknownProvider,
    UnreadableResponse,
    WritesNoText,
)
from formal_llm.errors.notation import (
    AutomatonError,
    CalculationError,
    GrammarError,
    GrammarWarning,
    InfiniteLanguage,
    NotationError,
    Undecided,
)
from formal_llm.errors.planning import (
    BudgetExceeded,
    NoPlanWorked,
    NoValidPlan,
    PlanningError,
    QueryError,
    ResultsError,
    RunStopped,
    SnapshotError,
    TooManyPlans,
    WalkError,
)

__all__ = [
    "AgentError",
    "AgentPaused",
    "AgentStopped",
    "AnswerFileError",
    "AuditError",
    "AutomatonError",
    "BudgetExceeded",
    "CalculationError",
    "Cancelled",
    "CheckpointError",
    "EarlyAnswer",
    "ExecutionError",
    "FormalLLMError",
    "GrammarError",
    "GrammarWarning",
    "InfiniteLanguage",
    "InputError",
    "InvalidAnswer",
    "LLMError",
    "MissingDependency",
    "MissingKey",
    "ModelError",
    "NoPlanWorked",
    "NoValidPlan",
    "NotAllowed",
    "NotAuthored",
    "NotRecorded",
    "NotationError",
    "Pending",
    "PlanningError",
    "PluginError",
    "ProviderError",
    "QueryError",
    "ResourceNotFound",
    "ResultsError",
    "RewardError",
    "RunStopped",
    "SnapshotError",
    "TooManyPlans",
    "ToolError",
    "ToolkitError",
    "TraceError",
    "TrainingError",
    "TranscriptError",
    "Undecided",
    "UnknownProvider",
    "UnreadableResponse",
    "WalkError",
    "WritesNoText",
    "WritingError",
    "did_you_mean",
    "unknown",
]  # fmt: skip
