"""How the reader of BPMN 2.0 treats each part of the standard (ISO/IEC 19510:2013), and which process it reads."""

from __future__ import annotations

from formal_llm.automata.notation.coverage import Coverage, by_name
from formal_llm.automata.notation.source import SourceText
from formal_llm.automata.notation.xml_tree import Element
from formal_llm.errors import unknown

TASKS = ("task", "userTask", "serviceTask", "scriptTask", "manualTask", "businessRuleTask", "sendTask", "receiveTask",
         "callActivity")  # fmt: skip
SUBPROCESSES = ("subProcess", "transaction", "adHocSubProcess")
EVENTS = ("startEvent", "endEvent", "intermediateCatchEvent", "intermediateThrowEvent", "boundaryEvent")
CHOICES = ("exclusiveGateway", "eventBasedGateway")
#: The elements that flows connect.
NODES = (*TASKS, *SUBPROCESSES, *EVENTS, *CHOICES, "parallelGateway")

_MEANT = f"""
{" ".join(NODES)} definitions process collaboration participant sequenceFlow conditionExpression eventDefinitionRef
errorEventDefinition cancelEventDefinition escalationEventDefinition compensateEventDefinition timerEventDefinition
terminateEventDefinition linkEventDefinition messageEventDefinition signalEventDefinition conditionalEventDefinition
standardLoopCharacteristics multiInstanceLoopCharacteristics
@id @name @default @startQuantity @completionQuantity @isForCompensation @triggeredByEvent @instantiate
@sourceRef @targetRef @processRef @attachedToRef @cancelActivity @isInterrupting @ordering @eventGatewayType
@testBefore @loopMaximum @errorRef @escalationRef
"""
_HARMLESS = {
    "a remark, or how it is drawn": """
        documentation textAnnotation association group category categoryValueRef auditing monitoring relationship""",
    "of the tool that wrote the file": "extension extensionElements import @exporter @exporterVersion",
    "who does it": """
        laneSet resource resourceRole performer humanPerformer potentialOwner partnerEntity partnerRole
        participantAssociation participantMultiplicity rendering""",
    "data: what a step reads and writes is no step": """
        dataObject dataObjectReference dataStore dataStoreReference dataInput dataOutput dataInputAssociation
        dataOutputAssociation ioSpecification ioBinding inputSet outputSet inputDataItem outputDataItem property
        itemDefinition loopDataInputRef loopDataOutputRef""",
    "how a step is carried out": """
        script interface interfaceRef supportedInterfaceRef endPoint endPointRef operationRef globalTask globalUserTask
        globalManualTask globalScriptTask globalBusinessRuleTask @implementation @scriptFormat @operationRef
        @calledElement @method""",
    "what an event waits for or carries": """
        error escalation message signal condition timeDate timeDuration timeCycle source target @messageRef @signalRef
        @parallelMultiple @activityRef @waitForCompletion""",
    "messages and conversations between pools": """
        messageFlow messageFlowAssociation correlationKey correlationProperty correlationSubscription conversation
        subConversation callConversation conversationLink conversationAssociation globalConversation choreographyRef""",
    "flows name their ends themselves": "incoming outgoing @gatewayDirection",
    "when a loop ends is a question": """
        loopCondition loopCardinality completionCondition complexBehaviorDefinition @isSequential @behavior
        @noneBehaviorEventRef @oneBehaviorEventRef @cancelRemainingInstances""",
    "for engines": """
        supports @isExecutable @isClosed @processType @definitionalCollaborationRef @isImmediate @targetNamespace
        @expressionLanguage @typeLanguage @language @evaluatesToTypeRef""",
}
_CHOREOGRAPHIES = ("choreography", "globalChoreographyTask", "choreographyTask", "subChoreography", "callChoreography")

#: The coverage tables of BPMN.
COVERAGE = Coverage(
    "BPMN 2.0",
    meant=frozenset(_MEANT.split()),
    harmless=by_name(_HARMLESS),
    warned=dict.fromkeys(_CHOREOGRAPHIES, "only processes are read")
    | {"implicitThrowEvent": "how often a step is done, and what it throws then, is not known"},
    refused={
        "inclusiveGateway": "it follows any of its flows together; use exclusive and parallel gateways",
        "complexGateway": "it follows rules of its own; use exclusive and parallel gateways",
    },
)


def choose_process(source: SourceText, root: Element, process: str | None) -> Element:
    """Choose a process by its id, its name or the name of its pool; None chooses the only one.

    Raises:
        NotationError: there is none, or there are several.
    """
    found = [one for one in (root, *root.children) if one.name == "process"]
    if not found:
        others = sorted({one.name for one in root.children if "horeography" in one.name or "onversation" in one.name})
        source.fail_at("there is no process in this" + (f", only <{others[0]}>" if others else ""), root.place,
                    expected=("a <process> with tasks and flows",))  # fmt: skip
    pools = {
        pool.get_attribute("processRef").rpartition(":")[2]: pool.get_attribute("name")
        for one in root.list_children("collaboration")
        for pool in one.list_children("participant")
    }
    names = [
        (pools.get(one.get_attribute("id"), ""), one.get_attribute("name"), one.get_attribute("id")) for one in found
    ]
    wanted = [one for one, known in zip(found, names, strict=True) if process is None or process in known]
    filled = [one for one in wanted if any(one.list_children(*NODES))]
    if not wanted:
        source.fail_at(unknown("process", str(process), dict.fromkeys(filter(None, sum(names, ())))), root.place)
    if not filled:
        empty = wanted[0].get_attribute("name") or wanted[0].get_attribute("id")
        source.fail_at(f"the process {empty} is empty: it has no tasks", wanted[0].place)
    if len(filled) > 1:
        labels = [
            next(filter(None, known), "(no name)") for one, known in zip(found, names, strict=True) if one in filled
        ]
        labels = labels if len({*labels}) == len(labels) else [one.get_attribute("id") for one in filled]
        key = filled[0].get_attribute("id")
        source.fail_at(f"there are several processes in this: {', '.join(labels)}", filled[1].place,
                    suggestion=f"choose one: --process {key} (in code: from_bpmn(text, process={key!r}))")  # fmt: skip
    return filled[0]
