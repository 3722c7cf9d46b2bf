"""How the reader of BPMN 2.0 treats each element and attribute of the standard (ISO/IEC 19510:2013)."""

from __future__ import annotations

from formal_llm.automata.notation.coverage import Coverage, by_name

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
