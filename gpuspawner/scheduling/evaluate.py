"""Evaluates whether kube-scheduler would place a pod now."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from gpuspawner.kube.objects import UNDECODABLE, strict_convert
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.storage import PersistentVolumeClaim

from .certainty import doubts, missing_drivers, uncertain, unknown_storage, volumes_being_made
from .could_hold import CouldHold, could_hold
from .device_claims import by_claim_doubts
from .failures import Excluded, Failures
from .filters import Filters
from .labels import SelectorError
from .node_info import NodeInfo
from .node_resources_fit import fits
from .pod_claims import without_volumes
from .preemption import Preemption, helped, may_help, preempt
from .rules import readings
from .state import ClusterState
from .static_filters import Screened
from .unfit_nodes import Unfit
from .verdict import Outcome, Unknown, Verdict, Why

_FEW = 0.25
"""For which part of the nodes it costs less to find each than to go through all."""

PlainOrPod = Mapping[str, object] | Pod
PlainOrClaim = Mapping[str, object] | PersistentVolumeClaim
"""What isn't in the state, as callers give it: a plain API dict, or decoded."""

_T = TypeVar("_T", Pod, PersistentVolumeClaim)


def evaluate(
    state: ClusterState, pod: PlainOrPod, *, new_claims: Iterable[PlainOrClaim] = ()
) -> Verdict:
    """Return what kube-scheduler would do with a pod. Never raises, and changes nothing.

    Args:
        state: the cluster.
        pod: a plain API dict or decoded. Best is the pod that a server-side dry run returned,
            because it includes the changes of admission.
        new_claims: PersistentVolumeClaims that are created before the pod. Each counts by its
            StorageClass.
    """
    return _judged(state, pod, new_claims, lambda _: {})


def explain(
    state: ClusterState, pod: PlainOrPod, *, new_claims: Iterable[PlainOrClaim] = ()
) -> Verdict:
    """Evaluate a pod, and list the failures of all other nodes even if a node fits."""
    return _judged(state, pod, new_claims, _all_failures)


def fits_somewhere(
    state: ClusterState, pod: PlainOrPod, *, new_claims: Iterable[PlainOrClaim] = ()
) -> bool:
    """Return whether a pod fits on any node now, as `evaluate`; stops at the first."""
    return next(fitting_nodes(state, pod, new_claims=new_claims), None) is not None


def fitting_nodes(
    state: ClusterState,
    pod: PlainOrPod,
    besides: Container[str] = (),
    *,
    new_claims: Iterable[PlainOrClaim] = (),
) -> Iterator[str]:
    """Find the nodes on which a pod fits, one by one; not those *besides*."""
    given = list(new_claims)
    try:
        wanted = _decoded(pod, Pod)
        claims = [_decoded(it, PersistentVolumeClaim) for it in given]
    except UNDECODABLE:
        return
    if unknown_storage(state, wanted, claims):
        return
    try:
        them = [Filters(state, it, claims) for _, it in readings(wanted, state.rules)]
    except (QuantityError, SelectorError):
        return
    if any(it.rejected or any(doubt.may_refuse for doubt in doubts(it)) for it in them):
        return
    filters, *others = them
    yield from (
        node.name
        for node in _candidates(filters, besides)
        if all(it.admits(node) and it.fixed_failure(node) is None for it in others)
        and not uncertain(state, node)
    )


def lacks_node(state: ClusterState, pod: Pod) -> bool:
    """Return `Verdict.lacks_node` of a pod; stops at the first node that may hold it.

    A verdict tells of each node why it refuses the pod, and costs ten times as much.
    """
    (_, first), *others = readings(pod, state.rules)
    if others or pod.status.nominated_node_name or unknown_storage(state, pod, ()):
        return evaluate(state, pod).lacks_node
    try:
        filters = Filters(state, first)
    except (QuantityError, SelectorError):
        return False
    if filters.claims.being_made:
        return evaluate(state, pod).lacks_node
    return not (
        filters.rejected
        or filters.in_use
        or next(_candidates(filters), None) is not None
        or any(it.may_admit for it in doubts(filters))
        or by_claim_doubts(filters)
        or missing_drivers(filters, filters.screened().passing)
        or may_help(filters)
    )


def preempting_nodes(
    state: ClusterState, pod: Pod, new_claims: Iterable[PersistentVolumeClaim] = ()
) -> list[NodeInfo]:
    """Return the nodes on which a pod would fit if the pods of lower priority ended.

    Its verdict is `FITS_AFTER_PREEMPTION`, so that all of it can be read.
    """
    (_, first), *_ = readings(pod, state.rules)
    filters = Filters(state, first, new_claims)
    return list(helped(filters, filters.priority.value))


def _decoded(thing: Mapping[str, object] | _T, type_: type[_T]) -> _T:
    """Return a pod or a claim, which needs no name.

    Raises:
        UNDECODABLE: it can't be decoded.
    """
    return thing if isinstance(thing, type_) else strict_convert(thing, type_)


def _judged(
    state: ClusterState,
    pod: PlainOrPod,
    new_claims: Iterable[PlainOrClaim],
    failures_of: Callable[[Filters], Mapping[str, Failures]],
) -> Verdict:
    given = list(new_claims)
    try:
        wanted = _decoded(pod, Pod)
        claims = [_decoded(it, PersistentVolumeClaim) for it in given]
    except UNDECODABLE as error:
        return _not_understood(state, str(error))
    (_, first), *others = readings(wanted, state.rules)
    verdict = _verdict(state, first, claims, failures_of)
    for field, reading in others:
        other = _verdict(state, reading, claims, failures_of)
        both = tuple(filter(frozenset(other.feasible).__contains__, verdict.feasible))
        if other.outcome is not verdict.outcome or len(both) < bool(verdict.feasible):
            unknown = (*verdict.unknown, Unknown(Why.RELEASE, field, may_admit=True))
            return msgspec.structs.replace(verdict, outcome=Outcome.UNKNOWN, unknown=unknown)
        failures = {**other.failures, **verdict.failures}
        verdict = msgspec.structs.replace(verdict, feasible=both, failures=failures)
    return verdict


def _verdict(
    state: ClusterState,
    wanted: Pod,
    claims: list[PersistentVolumeClaim],
    failures_of: Callable[[Filters], Mapping[str, Failures]],
) -> Verdict:
    try:
        unknown = unknown_storage(state, wanted, claims)
        if unknown:
            # If the other rules refuse the pod, its claims can't change that, but they may refuse
            # the node on which it would preempt others.
            filters = Filters(state, without_volumes(wanted))
            feasible, doubtful = _search(filters)
            if not feasible:
                stricter = tuple(msgspec.structs.replace(it, may_admit=False) for it in unknown)
                return _refused(filters, doubtful, stricter + doubts(filters))
        filters = Filters(state, wanted, claims)
    except (QuantityError, SelectorError) as error:
        return _not_understood(state, str(error))
    unknown += doubts(filters)
    feasible, doubtful = _search(filters)
    if not feasible:
        return _refused(filters, doubtful, unknown)
    unknown = tuple(doubt for doubt in unknown if doubt.may_refuse)
    return Verdict(
        outcome=Outcome.UNKNOWN if unknown else Outcome.FITS,
        feasible=feasible,
        failures=failures_of(filters),
        nodes=len(state.nodes),
        unknown=unknown,
    )


def _search(filters: Filters) -> tuple[tuple[str, ...], tuple[Unknown, ...]]:
    """Return the nodes that fit, and why others that may fit are uncertain."""
    feasible: list[str] = []
    doubtful: list[Unknown] = []
    for node in _candidates(filters) if filters.rejected is None else ():
        if doubt := uncertain(filters.state, node):
            doubtful.append(doubt)
        else:
            feasible.append(node.name)
    return tuple(feasible), tuple(doubtful)


def _candidates(filters: Filters, besides: Container[str] = ()) -> Iterator[NodeInfo]:
    """Find the nodes that fit, and those whose resources are unknown, one by one; not *besides*."""
    asked, names = filters.asked, filters.names
    for node in _with_spare_devices(filters):
        if (fits(asked, node.free) or node.problem) and node.name not in besides:
            if names is not None and node.name not in names:
                continue
            if filters.simple or node.problem or filters.admits(node):
                yield node


def _with_spare_devices(filters: Filters) -> Iterable[NodeInfo]:
    """Return the nodes that pass the static rules; not all of those that have no device left."""
    screened, spare = filters.screened(), filters.state.spare.for_pod(filters.asked)
    if spare is None or len(spare) >= len(screened.able) * _FEW:
        return screened.able
    return screened.passing_of(spare)


def _all_failures(filters: Filters) -> Mapping[str, Failures]:
    screened = filters.screened()
    return _joined(filters, screened, _unfit(filters, screened))


def _unfit(filters: Filters, screened: Screened) -> Unfit:
    if filters.simple and filters.names is None:
        return screened.lacking(filters.asked)
    unfit = Unfit()
    for node in screened.passing:
        if filters.names is None or node.name in filters.names:
            unfit.put(node.name, filters.failures(node))
    return unfit


def _joined(filters: Filters, screened: Screened, unfit: Unfit) -> Mapping[str, Failures]:
    found = {**screened.failing, **unfit.failures}
    if filters.names is None:
        return found
    excluded = (Excluded(),)
    return {
        name: found.get(name, ()) if name in filters.names else excluded
        for name in filters.state.nodes
        if name not in filters.names or name in found
    }


def _refused(
    filters: Filters, doubtful: tuple[Unknown, ...], unknown: tuple[Unknown, ...]
) -> Verdict:
    doubtful += tuple(doubt for doubt in unknown if doubt.may_admit)
    doubtful += by_claim_doubts(filters)
    state, rejected = filters.state, filters.rejected
    if rejected is not None:
        failures: Mapping[str, Failures] = dict.fromkeys(state.nodes, (rejected,))
        counts: Mapping[str, int] = {}
        preemption, could = Preemption(None, ""), CouldHold((), ())
        if rejected.passing:
            doubtful += (Unknown(Why.NEW_VOLUME, rejected.claim, may_admit=True),)
    else:
        screened = filters.screened()
        unfit = _unfit(filters, screened)
        failures = _joined(filters, screened, unfit)
        if filters.names is None:
            counts = unfit.reasons + screened.reasons
        else:
            counts = Counter(fact.reason for facts in failures.values() for fact in facts)
        preemption, could = preempt(filters, unfit.freeable), could_hold(filters)
        doubtful += missing_drivers(filters, screened.passing)
        doubtful += volumes_being_made(filters, unfit.failures.values())
    if preemption.doubt is not None:
        doubtful += (preemption.doubt,)
    if preemption.node is not None:
        doubtful += tuple(d for d in unknown if d.may_refuse and not d.may_admit)
    if doubtful:
        outcome = Outcome.UNKNOWN
    elif preemption.node is not None:
        outcome = Outcome.FITS_AFTER_PREEMPTION
    else:
        outcome = Outcome.BUSY if could.busy or could.away else Outcome.IMPOSSIBLE
    return Verdict(
        outcome=outcome,
        failures=failures,
        nodes=len(state.nodes),
        reason_counts=counts,
        unknown=doubtful,
        rejected=rejected,
        preemption=preemption.text,
        preemption_node=preemption.node,
        preemption_seconds=preemption.seconds,
        busy=could.busy,
        away=could.away,
        in_use=filters.in_use,
    )


def _not_understood(state: ClusterState, problem: str) -> Verdict:
    return Verdict(
        outcome=Outcome.UNKNOWN,
        nodes=len(state.nodes),
        unknown=(Unknown(Why.UNDECODABLE_POD, problem, may_admit=True),),
    )
