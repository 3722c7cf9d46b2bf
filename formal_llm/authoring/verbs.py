"""Verbs and their forms, as far as a reader without a model has to know them."""

from __future__ import annotations

import re

from formal_llm.automata.languages.spelling import IRREGULAR

#: Verbs that people write procedures with.
VERBS = frozenset(
    """
    abandon abort absorb accept access acknowledge acquire activate add address adjourn adjust administer admit
    advance advise aerate agree air alert align allocate allow amend analyse analyze annotate announce answer
    apologise apologize appeal apply appoint appraise approve archive arm arrange arrest arrive ask assay assemble
    assess assign attach attempt attend audit authorise authorize back bag bake balance bandage bathe begin bill
    bind bleed blend block board boil book boot bottle brake break brew brief bring brush buckle build bump burn
    buy calculate calibrate call cancel capture carry cast catch centrifuge certify change charge chat check chill
    choose chop circulate claim clamp classify clean cleanse clear clip clock close clot coat collect comb come
    commence comment commit compare compile complain complete compress compute conclude conduct confirm connect
    consent consult contact continue convert convey cook cool copy correct count cover crack crash create crush
    culture cure curl cut date deactivate debit debrief debug decide declare decline decommission decontaminate
    decrypt deduct defrost delay delegate delete deliver demonstrate deny deploy deposit deregister describe
    destroy detach determine develop diagnose dig dilute dip disable disarm disband disburse discard discharge
    disclose disconnect discuss disengage dish disinfect dismantle dismiss dispatch dispense display dispose
    dissolve distribute divert do dock document donate double download draft drain draw dress drill drink drive
    drop dry duplicate dye earth eat edit eject elect email embark empty enable encrypt end engage engrave enrol
    enroll enter erase erect escalate establish estimate evacuate evaluate examine execute expire explain export
    extend extinguish extract fail fall fast fasten fax feed fell fertilise fertilize fetch file fill filter
    finalise finalize find finish fire fit fix flag flash flip flush fly fold follow force-push format forward
    freeze frost fry fuel fund garnish gather get give glaze glue go grade grant grate grease greet grill grind
    groom ground guide halt hammer hand handle hang harvest head heat help hire hoist hold host ice identify
    import incubate index inflate inform initial initiate inject insert inspect install instruct insure interrupt
    interview invite invoice iron isolate issue join jump keep kick kill knead label lance land launch lay lead
    leave lend let level lift light link list load locate lock log loosen lose lower lubricate mail make map mark
    match measure medicate meet melt merge message migrate mill mix modify monitor mop mount move mow name
    negotiate neutralise neutralize nominate note notify number observe obtain offer oil open operate order
    outline overwrite pack page paint park pass paste patch pause pay peel perform phone photograph pick pilot pin
    ping pipette place plan plant plaster plate play pledge plug polish poll post pour power practice practise
    pray predict preheat prepare prescribe present press pressurise price prime print probe process produce
    program promote proof propose prune publish pull pump punch purchase purge push put quarantine query question
    queue quit quote raise ram reactivate read reassign reboot recalibrate receive recheck recite recline
    recommend reconcile reconnect recook record recycle redeem redeploy reduce reexamine refer refill refreeze
    refrigerate refuel refund refuse register reheat reimburse reinstall reject relabel release reload remind
    remove rename render renew rent reopen repair repay repeat replace replicate reply report request rerun rescue
    reseal reserve reset reship resign resolve respond rest restart restock restore restrict retest retire retract
    retrieve retry return reveal reverse revert review revise revoke ride ring rinse rip roast rob roll rotate
    route run salt sample sand sanitise sanitize save scale scan schedule score scrap scrub seal search season
    seat secure seed select sell send separate serve service set settle sew shake share sharpen shave shift shine
    ship shoot shout show shred shut sign silence simmer simulate sit skip slaughter sleep slice smoke snapshot
    soak solve sound sow spill spin split spray spread sprinkle squash stack stage stain stamp start stash station
    steam steep sterilise sterilize stir stitch stock stop store strain strap stretch strip submit subscribe
    subtract summarise summarize supply suspend suture swab swap swear sweep swim switch sync tag take talk tally
    tap taste teach tear tell terminate test thank thaw throttle throw tick tie tighten tilt time tip toast toggle
    torque touch tow train transcribe transfer transfuse translate transmit transport trash treat trim trip
    troubleshoot tune turn twist type unblock uncap uncover undergo undo undock uninstall unload unlock unmount
    unpack unplug unseal untie update upgrade upload use vacate vacuum validate vent verify version view visit
    void vote wait waive wake walk warm warn wash watch water wax wear weed weigh weld wet wheel whip whisk
    whitelist win wind wipe wire withdraw withhold witness work wrap write yield zip
    """.split()  # noqa: SIM905
)
#: Verbs that describe how things are and name no step.
STATES = frozenset(
    """
    be have contain exceed involve require need concern belong include remain stay seem appear look own cost lack
    equal mean know want like qualify live depend
    """.split()  # noqa: SIM905
)
#: Small words that belong to the verb before them: "roll back", "hand over".
PARTICLES = frozenset(
    "back up down off out in on over away through around aside apart along together live ahead".split()  # noqa: SIM905
)


def base(form: str) -> str | None:
    """The verb that a word may be a form of; None where it is none."""
    if form in VERBS or form in STATES:
        return form
    for candidate in _candidates(form):
        if candidate in VERBS or candidate in STATES:
            return candidate
    if re.fullmatch(r"(?:re|un|de|over|pre|mis|out)-?\w+", form):  # "reissued" is issued again
        rest = re.sub(r"^(?:re|un|de|over|pre|mis|out)-?", "", form)
        found = base(rest) if len(rest) > 3 else None
        return None if found is None or found in STATES else form[: len(form) - len(rest)] + found
    return None


def _candidates(form: str) -> list[str]:
    if form in IRREGULAR:
        return [IRREGULAR[form]]
    for ending in ("ing", "ed"):
        if form.endswith(ending) and len(form) > len(ending) + 1:
            cut = form[: -len(ending)]
            return [cut, cut + "e", re.sub(r"(.)\1$", r"\1", cut), re.sub("i$", "y", cut)]
    if form.endswith("s") and not form.endswith("ss"):
        return [form[:-1], re.sub("es$", "", form), re.sub("ies$", "y", form)]
    return []


def participle(word: str) -> str | None:
    """The verb of a past participle; one that is not known is guessed from its ending; None where it is none."""
    same = {"put", "cut", "set", "read", "run", "shut", "let", "split", "cast", "hit", "come", "reset", "spread"}
    if word in same or word in IRREGULAR:
        return IRREGULAR.get(word, word)
    found = base(word)
    irregular = re.fullmatch(rf"(?:re|un|over|mis)?(?:{'|'.join(IRREGULAR)})", word)
    if irregular or (found is not None and word.endswith("ed") and found != word):
        return found
    if re.fullmatch(r"\w{2,}[^e]ed", word):
        cut = re.search(r"(?:[iuvcsgz]|at|[uiao]r|[dbptgkf]l)ed$", word)
        return word[:-1] if cut else re.sub(r"([^aeiouls])\1$", r"\1", word[:-2])
    return None


def gerund(word: str) -> str | None:
    """The verb of a form in "-ing"; None where it is no known one."""
    return base(word) if word.endswith("ing") and base(word) != word else None
