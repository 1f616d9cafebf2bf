"""Decides about a pod at one moment, with the facts and the alternatives of a refusal."""

from collections.abc import Callable, Collection, Container, Hashable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.meta import moment
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.servers import USER
from gpuspawner.kube.storage import PersistentVolumeClaim
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.alternatives import Variant, Variants, nearest
from gpuspawner.preflight.counts import NodeCounts, could_be_raised, could_replace
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Alternative,
    Apart,
    Decision,
    HeldBy,
    InQueue,
    Reason,
    Refuse,
    ResourceRoom,
    Start,
    UnknownRules,
    ViewNotLive,
    Wait,
)
from gpuspawner.preflight.downloads import containers
from gpuspawner.preflight.kueue import Closed, Never, PlaceInQueue
from gpuspawner.preflight.learned_hooks import anywhere
from gpuspawner.preflight.nobody_waits import MakesLine
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scaling.nodes_to_come import NodesToCome
from gpuspawner.scaling.outlook import CannotScaleUp
from gpuspawner.scheduling.could_hold import reaching_volumes
from gpuspawner.scheduling.pod_claims import claim_name, made_by_hand, without_volumes
from gpuspawner.scheduling.shared_gpus import refuses, several
from gpuspawner.scheduling.verdict import Outcome, Verdict
from gpuspawner.scheduling.verdicts import Subject, Verdicts, new_claims

if TYPE_CHECKING:
    from gpuspawner.kueue.queues import Queues

# A person or a program may still make a volume for a claim that is younger. The clock of the API
# server may differ from the hub's by minutes.
_YOUNG = timedelta(minutes=10)

_OPEN = UnknownRules(("the hub's own code may still change on which nodes the pod can run",))
BY_KUEUE = UnknownRules(("Kueue decides, and the hub can't see on which nodes",))
"""Of a pod whose queue the hub may not read, or whose admission checks may add nodes."""
OLDER_POD = UnknownRules(("a pod of this name is still there",))
"""Of a pod that may fit once the older one of its name has gone."""


class Decider:
    """Decides about pods at this moment; changes nothing.

    Attributes:
        line: Those who wait; it is made with what decides about a proposal, leaving them aside.
    """

    def __init__(
        self,
        view: ClusterView,
        verdicts: Verdicts,
        reservations: Reservations,
        to_come: NodesToCome,
        line: MakesLine,
    ) -> None:
        self._view = view
        self._state = view.state
        self._counts = NodeCounts(view.state)
        self._verdicts = verdicts
        self._reservations = reservations
        self._to_come = to_come
        self.line = line(view, verdicts, reservations, self._decide)

    def check(self, proposal: Proposal) -> Decision:
        """Decide about a pod, behind those who are in line.

        What is promised to others on nodes that are there doesn't count here, unless people are in
        line: `Reserving` counts it before it promises room. Nodes to come that are promised count.

        If only an older pod of the same name may be in the way, the answer is unknown: KubeSpawner
        deletes that pod when it sends the new one.
        """
        return self._unless_its_own(proposal, self._behind_others(proposal))

    def check_sent(self, proposal: Proposal) -> Decision:
        """Decide about a pod that exists, so nobody in line is ahead of it.

        Kueue adds labels and tolerations to the pod when it admits it, so the pod is read anew.
        """
        pod = self._state.unbound_pods.get("/".join(proposal.key))
        sent = proposal.created(pod) if pod else proposal
        return self._unless_its_own(sent, self._decide(sent))

    def _behind_others(self, proposal: Proposal) -> Decision:
        decision = self._decide(proposal)
        is_called = self._reservations.is_promised(proposal.key)
        if self.line.is_empty or proposal.queue or is_called:
            return decision
        if not isinstance(decision, Refuse):
            waiting = len(self.line)
            self.line.look()  # a node to come, too, is theirs first
            if len(self.line) < waiting:
                decision = self._decide(proposal)
        if isinstance(decision, Start) and decision.notes:
            return decision  # it takes nothing that others wait for; the line lets such go too
        if isinstance(decision, Refuse):
            return msgspec.structs.replace(decision, in_line=self.line.ahead_of(proposal))
        if not (in_line := self.line.delayed_by(proposal)):
            return decision
        refusal = self._though_it_fits(proposal, Reason.BUSY)
        return msgspec.structs.replace(refusal, in_line=in_line)

    def _unless_its_own(self, proposal: Proposal, decision: Decision) -> Decision:
        if not isinstance(decision, Refuse) or decision.reason is not Reason.BUSY:
            return decision
        key, pod = "/".join(proposal.key), proposal.decoded
        if pod is None or not could_replace(self._state, key, pod):
            return decision
        return Start(proposal.grant, (OLDER_POD,))

    def _decide(self, proposal: Proposal) -> Decision:
        """Decide about a pod, leaving those in line and an older pod of its name aside."""
        health, subject = self._view.health(), proposal.subject
        if not isinstance(health, Live):
            return Start(proposal.grant, (ViewNotLive(health),))
        if isinstance(subject, Undecodable):
            return Start(proposal.grant, (UnknownRules((subject.problem,)),))
        if not proposal.queue:
            return self._on_nodes(proposal, subject)
        match self._queues.ask(proposal.queue, subject.pod):
            case Never() as queue:
                return Refuse(proposal.grant, Reason.QUOTA, queue=queue)
            case Closed() as queue:
                return Refuse(proposal.grant, Reason.NOT_ADMITTED, queue=queue)
            case PlaceInQueue() as place:
                return self._in_queue(proposal, subject, place)

    def queue_now(self, proposal: Proposal) -> tuple[Closed | PlaceInQueue, Hashable] | None:
        """Return what a pod's queue says of all pods, and its quotas; None without a queue."""
        if not proposal.queue:
            return None
        queues = self._queues
        return queues.of_any(proposal.queue, proposal.namespace), queues.quotas

    @cached_property
    def _queues(self) -> "Queues":
        """What Kueue says of a pod that names one of its queues."""
        from gpuspawner.kueue.queues import Queues  # hubs whose pods name none don't load it

        return Queues(self._view.queues, self._state)

    def _in_queue(
        self, proposal: Proposal, subject: Subject, place: PlaceInQueue
    ) -> Start | Refuse:
        """Decide about a pod that Kueue admits: a no only if no node could ever hold it."""
        pod = self._queues.tolerant(proposal.queue, subject.pod)
        if pod is None:
            unknown = Start(proposal.grant, (BY_KUEUE,))
            return Start(proposal.grant, (InQueue(place, unknown),))
        at_best = msgspec.structs.replace(subject, pod=pod)
        nodes = self._on_nodes(proposal, at_best)
        # If all nodes with room share their GPUs, Kueue may still send the pod to others.
        is_sure = not self._verdicts.fits(at_best)
        if isinstance(nodes, Refuse) and nodes.reason is Reason.IMPOSSIBLE and is_sure:
            return nodes
        notes = nodes.notes if isinstance(nodes, Start) else ()
        return Start(proposal.grant, (*notes, InQueue(place, nodes)))

    def subject(self, proposal: Proposal) -> Subject | Undecodable:
        """Return the pod to reserve room for."""
        subject = proposal.subject
        if isinstance(subject, Undecodable):
            return subject
        is_held_up = not self._verdicts.fits(subject) and self.waits_for_a_claim(subject)
        return _without_volumes(subject) if is_held_up else subject

    def _on_nodes(self, proposal: Proposal, subject: Subject) -> Decision:
        verdict = self._verdicts.verdict(subject)
        if self.waits_for_a_claim(subject):
            bare = _without_volumes(subject)
            if self._verdicts.verdict(bare).outcome not in (Outcome.BUSY, Outcome.IMPOSSIBLE):
                return Start(proposal.grant, (UnknownRules((verdict.message,)),))
            subject, verdict = bare, self._verdicts.verdict(bare)
        match verdict.outcome:
            case Outcome.FITS:
                if proposal.is_open or not self._refuse_shares(subject, lambda: verdict.feasible):
                    return Start(proposal.grant)
                refusal = self._though_it_fits(proposal, Reason.IMPOSSIBLE)
                return msgspec.structs.replace(refusal, one_share=True)
            case Outcome.FITS_AFTER_PREEMPTION:
                return Start(proposal.grant, (AfterPreemption(verdict.preemption_seconds),))
            case Outcome.UNKNOWN:
                return Start(proposal.grant, (UnknownRules(tuple(map(str, verdict.unknown))),))
            case Outcome.BUSY | Outcome.IMPOSSIBLE:
                return self._wait_or_refuse(proposal, subject, verdict)

    def try_again(self, proposal: Proposal) -> Refuse:
        """Refuse a pod that fits now, because others may get the room."""
        return self._though_it_fits(proposal, Reason.TRY_AGAIN)

    def _though_it_fits(self, proposal: Proposal, reason: Reason) -> Refuse:
        nodes = self._counts.candidates(proposal.decoded)
        return Refuse(
            proposal.grant,
            reason,
            gpus=self._counts.gpus(nodes, proposal.grant),
            candidates=len(nodes),
        )

    def alternatives(
        self, proposal: Proposal, variants: Variants, besides: Container[Grant] = ()
    ) -> tuple[Alternative, ...]:
        """Return what fits now, is near to the proposal and not in *besides*; none unless live."""
        if not isinstance(self._view.health(), Live):
            return ()

        def fitting(variant: Variant) -> Alternative | None:
            found = self._fitting(proposal, variants, variant)
            return None if found is None or found.grant in besides else found

        return nearest(proposal.grant, variants.offers, fitting)

    def room(self, proposal: Proposal) -> ResourceRoom | None:
        """Return how many GPUs are on the nodes on which the pod could run; None without either."""
        nodes = self._counts.candidates(proposal.decoded)
        return self._counts.gpus(nodes, proposal.grant) if nodes else None

    def fits(self, proposal: Proposal) -> bool:
        """Whether a node has room for the pod at this moment."""
        return self._fitting_subject(proposal) is not None

    def lacks_devices(self, proposal: Proposal) -> bool:
        """Whether no node has enough free devices for the pod, leaving its other fields aside."""
        pod = proposal.decoded
        return pod is not None and self._counts.lacks_devices(pod)

    def _fitting_subject(self, proposal: Proposal) -> Subject | None:
        """Return the pod that would start now; None if no node has room for it.

        One that goes through a queue of Kueue is the most that its flavors could make of it.
        """
        subject = proposal.subject
        if isinstance(subject, Undecodable):
            return None
        if queue := proposal.queue:
            if not isinstance(self._queues.ask(queue, subject.pod), PlaceInQueue):
                return None
            pod = self._queues.tolerant(queue, subject.pod) or subject.pod
            subject = msgspec.structs.replace(subject, pod=pod)
        if not self._verdicts.fits(subject):
            return None
        refused = self._refuse_shares(subject, lambda: self._verdicts.nodes(subject))
        return None if refused else subject

    def waits_for_a_claim(self, subject: Subject) -> bool:
        """Whether the pod is rejected, and perhaps because of a claim that may soon be bound.

        If it isn't in view yet or young, the spawner or an administrator's hook may have made it;
        nobody can tell yet whether it will be bound.
        """
        verdict, storage = self._verdicts.verdict(subject), self._state.storage
        namespace = subject.pod.metadata.namespace

        def may_be_bound(name: str) -> bool:
            claim = storage.get(PersistentVolumeClaim, name, namespace)
            created = moment(claim.metadata.creation_timestamp) if claim else None
            return claim is None or (created is not None and datetime.now(UTC) - created < _YOUNG)

        if (rejected := verdict.rejected) is not None:
            return rejected.claim != "" and (rejected.passing or may_be_bound(rejected.claim))
        if verdict.outcome is not Outcome.IMPOSSIBLE:
            return False
        by_hand = made_by_hand(subject.pod, storage, new_claims(subject))
        return any(may_be_bound(it.metadata.name) for it in by_hand)

    def _wait_or_refuse(self, proposal: Proposal, subject: Subject, verdict: Verdict) -> Decision:
        grant, pod = proposal.grant, subject.pod
        rises = proposal.may_rise and could_be_raised(self._state, pod)
        if proposal.is_open and (rises or self._might_go_elsewhere(subject)):
            return Start(grant, (_OPEN,))
        outlook = self._to_come.outlook(proposal.key, subject, proposal.declared_pool)
        if not isinstance(outlook, CannotScaleUp):
            return self._held(proposal, verdict) if verdict.in_use else Wait(grant, outlook)
        if verdict.in_use and self._has_room_at_home(subject, verdict):
            return self._held(proposal, verdict)
        nodes = self._counts.candidates(pod)
        one_share = self._refuse_shares(subject, lambda: (*verdict.busy, *verdict.away))
        return Refuse(
            grant,
            Reason.IMPOSSIBLE if one_share else _reason(verdict),
            gpus=self._counts.gpus(nodes, grant),
            shortage=self._counts.shortage(pod, nodes, grant),
            taints=self._counts.taints(pod),
            candidates=len(nodes),
            away=verdict.away,
            obstacles=outlook.obstacles,
            scheduler_message=verdict.condition_message,
            one_share=one_share,
            apart=self._apart(subject, verdict),
        )

    def _has_room_at_home(self, subject: Subject, verdict: Verdict) -> bool:
        """Whether a node that can use the pod's volumes has room for it."""
        bare = self._verdicts.nodes(_without_volumes(subject))
        return not bare.isdisjoint(verdict.busy)

    def _held(self, proposal: Proposal, verdict: Verdict) -> Decision:
        """Decide about a pod that only waits for others to give up its claims."""
        namespace, name = proposal.key
        pods = self._state.pods.in_namespaces((namespace,))
        holders = [it for it in pods if it.name != name and verdict.in_use & set(it.claims)]
        if not holders:
            return Start(proposal.grant, (OLDER_POD,))
        labels = (proposal.decoded.metadata.labels if proposal.decoded else None) or {}
        theirs = [it.labels.get(USER) for it in holders if not it.terminating]
        return msgspec.structs.replace(
            self._though_it_fits(proposal, Reason.BUSY),
            scheduler_message=verdict.condition_message,
            held=HeldBy.OWN if labels.get(USER, "") in theirs else HeldBy.OTHER,
        )

    def _apart(self, subject: Subject, verdict: Verdict) -> Apart | None:
        """Return where its volumes are, if only they keep a pod off all nodes with room, or any."""
        pod = subject.pod
        is_away = verdict.rejected is not None or _reason(verdict) is Reason.AWAY
        if is_away or not any(claim_name(pod, it) for it in pod.spec.volumes or ()):
            return None
        bare = self._verdicts.verdict(_without_volumes(subject))
        room = bare.feasible or (() if verdict.busy else bare.busy)
        reaching = reaching_volumes(self._state, pod, subject.new_claims) if room else frozenset()
        if not room or not reaching.isdisjoint(room):
            return None
        files, others = ([self._state.nodes[it] for it in names] for names in (reaching, room))
        return Apart.of(files, others, is_free=bool(bare.feasible))

    def _refuse_shares(self, subject: Subject, find: Callable[[], Collection[str]]) -> bool:
        """Whether all of these nodes would refuse the pod: it asks for several shares of a GPU."""
        asked = several(subject.pod)
        nodes = [self._state.nodes[it] for it in find()] if asked else []
        return bool(nodes) and all(refuses(it, asked) for it in nodes)

    def _might_go_elsewhere(self, subject: Subject) -> bool:
        """Whether the pod could start on another node if its placement is changed.

        If no node could hold it anywhere, what it requests may be changed too. Only if all that it
        requests is in use, it waits for others wherever it goes.
        """
        other = msgspec.structs.replace(subject, pod=anywhere(subject.pod))
        return self._verdicts.verdict(other).outcome is not Outcome.BUSY

    def _fitting(
        self, proposal: Proposal, variants: Variants, variant: Variant
    ) -> Alternative | None:
        made = variants.variant(variant.request)
        if made is None:
            return None
        grant, plain = made
        varied = replace(proposal, pod=plain)
        subject = self._fitting_subject(varied)
        if subject is None or (not varied.queue and self.line.delayed_by(varied)):
            return None
        nodes = self._counts.candidates(subject.pod)
        gpus, is_at_hand = self._counts.gpus(nodes, grant), self._is_at_hand(varied, subject)
        return Alternative(grant, variant.differences, gpus, is_at_hand)

    def _is_at_hand(self, proposal: Proposal, subject: Subject) -> bool:
        """Whether a node on which the pod fits has its images already."""
        images = [str(it["image"]) for it in containers(proposal.pod) if it.get("image")]
        nodes = self._state.images.nodes(*images) if images else frozenset[str]()
        # Without any, there is no need for the verdict, which names all nodes.
        return bool(nodes) and not nodes.isdisjoint(self._verdicts.verdict(subject).feasible)


def _without_volumes(subject: Subject) -> Subject:
    """Return the pod without volumes: if it fits nowhere, its claims can't change that."""
    return Subject(without_volumes(subject.pod))


def _reason(verdict: Verdict) -> Reason:
    if verdict.busy:
        return Reason.BUSY
    if verdict.away:
        return Reason.AWAY
    return Reason.IMPOSSIBLE
