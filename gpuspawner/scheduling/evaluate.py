"""Evaluates whether kube-scheduler would place a pod now."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

import msgspec

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
from .parsed_input import PlainOrClaim, PlainOrPod, parsed, parsed_claims
from .pod_claims import without_volumes
from .preemption import Preemption, helped, preempt
from .readings import readings
from .state import ClusterState
from .static_filters import Screened
from .unfit_nodes import Unfit
from .verdict import Outcome, Unknown, Verdict, Why

_FEW = 0.25
"""For which part of the nodes it costs less to find each than to go through all."""


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
    return _judged(state, pod, new_claims, _no_failures)


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
    wanted = parsed(pod, Pod)
    claims = parsed_claims(new_claims)
    if isinstance(wanted, str) or isinstance(claims, str):
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
        for node in _with_spare_devices(filters)
        if node.name not in besides
        and (filters.names is None or node.name in filters.names)
        and fits(filters.asked, node.free)
        and ((filters.simple and not state.has_nominations) or filters.admits(node))
        and all(it.admits(node) and it.fixed_failure(node) is None for it in others)
        and not ((state.undecodable or node.doubtful) and uncertain(state, node))
    )


def preempting_nodes(
    state: ClusterState, pod: Pod, new_claims: Iterable[PersistentVolumeClaim] = ()
) -> list[NodeInfo]:
    """Return the nodes on which a pod would fit if the pods of lower priority ended.

    Its verdict is `FITS_AFTER_PREEMPTION`, so that all of it can be read.
    """
    (_, first), *_ = readings(pod, state.rules)
    filters = Filters(state, first, new_claims)
    return helped(filters, _unfit(filters, filters.screened()).freeable)


class _Found(msgspec.Struct, frozen=True):
    nodes: int
    screened: Screened | None
    """None if one reason rejects the pod on every node."""
    feasible: tuple[str, ...] = ()
    uncertain: tuple[Unknown, ...] = ()
    """Why nodes that otherwise fit are uncertain."""


def _judged(
    state: ClusterState,
    pod: PlainOrPod,
    new_claims: Iterable[PlainOrClaim],
    failures_of: Callable[[Filters, _Found], Mapping[str, Failures]],
) -> Verdict:
    wanted = parsed(pod, Pod)
    if isinstance(wanted, str):
        return _not_understood(state, wanted)
    claims = parsed_claims(new_claims)
    if isinstance(claims, str):
        return _not_understood(state, claims)
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
    failures_of: Callable[[Filters, _Found], Mapping[str, Failures]],
) -> Verdict:
    try:
        unknown = unknown_storage(state, wanted, claims)
        if unknown:
            # If the other rules refuse the pod, its claims can't change that.
            filters = Filters(state, without_volumes(wanted))
            found = _search(filters)
            if not found.feasible:
                return _refused(filters, found, doubts(filters))
        filters = Filters(state, wanted, claims)
    except (QuantityError, SelectorError) as error:
        return _not_understood(state, str(error))
    unknown += doubts(filters)
    found = _search(filters)
    if found.feasible:
        return _fits(found, unknown, failures_of(filters, found))
    return _refused(filters, found, unknown)


def _search(filters: Filters) -> _Found:
    state = filters.state
    if filters.rejected is not None:
        return _Found(len(state.nodes), None)
    screened = filters.screened()
    doubtful: list[Unknown] = []
    feasible: list[str] = []
    for node in _candidates(filters):
        if state.undecodable or node.doubtful:
            doubt = uncertain(state, node)
            if doubt is not None:
                doubtful.append(doubt)
                continue
        feasible.append(node.name)
    return _Found(len(state.nodes), screened, tuple(feasible), tuple(doubtful))


def _candidates(filters: Filters) -> list[NodeInfo]:
    """Return the nodes that fit, and the nodes whose resources are unknown."""
    nodes = _with_spare_devices(filters)
    if filters.names is not None:
        nodes = [node for node in nodes if node.name in filters.names]
    asked = filters.asked
    roomy = [node for node in nodes if fits(asked, node.free) or node.problem]
    if filters.simple and not filters.state.has_nominations:
        return roomy
    return [node for node in roomy if node.problem or filters.admits(node)]


def _with_spare_devices(filters: Filters) -> Iterable[NodeInfo]:
    """Return the nodes that pass the static rules; not all of those that have no device left."""
    screened, spare = filters.screened(), filters.state.spare.for_pod(filters.asked)
    if spare is None or len(spare) >= len(screened.able) * _FEW:
        return screened.able
    return screened.passing_of(spare)


def _no_failures(_filters: Filters, _found: _Found) -> dict[str, Failures]:
    return {}


def _all_failures(filters: Filters, found: _Found) -> Mapping[str, Failures]:
    if found.screened is None:
        return _everywhere(filters)
    return _joined(filters, found.screened, _unfit(filters, found.screened))


def _everywhere(filters: Filters) -> Mapping[str, Failures]:
    rejected = (filters.rejected,) if filters.rejected else ()
    return dict.fromkeys(filters.state.nodes, rejected)


def _unfit(filters: Filters, screened: Screened) -> Unfit:
    simple = filters.simple and not filters.state.has_nominations
    if simple and filters.names is None:
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


def _fits(found: _Found, unknown: tuple[Unknown, ...], failures: Mapping[str, Failures]) -> Verdict:
    doubtful = tuple(doubt for doubt in unknown if doubt.may_refuse)
    return Verdict(
        outcome=Outcome.UNKNOWN if doubtful else Outcome.FITS,
        feasible=found.feasible,
        failures=failures,
        nodes=found.nodes,
        unknown=doubtful,
    )


def _refused(filters: Filters, found: _Found, unknown: tuple[Unknown, ...]) -> Verdict:
    doubtful = found.uncertain + tuple(doubt for doubt in unknown if doubt.may_admit)
    doubtful += by_claim_doubts(filters)
    screened, rejected = found.screened, filters.rejected
    if screened is None:
        failures = _everywhere(filters)
        counts: Mapping[str, int] = {}
        preemption, could = Preemption(None, ""), CouldHold((), ())
        if rejected is not None and rejected.passing:
            doubtful += (Unknown(Why.NEW_VOLUME, rejected.claim, may_admit=True),)
    else:
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
        nodes=found.nodes,
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
