from gpuspawner.scheduling import Outcome
from tests.unit.makers.objects import answer, node, pod

ONE = {"gpu": "1"}


def test_the_priority_class_counts_before_admission():
    request = pod(requests=ONE, priorityClassName="important")
    class_ = {"metadata": {"name": "important"}, "value": 10}
    given = {"pods": [pod("old", node="a", requests=ONE, priority=0)]}
    verdict = answer(request, node(gpu="1"), priorityClasses=[class_], **given)
    assert verdict.outcome is Outcome.FITS_AFTER_PREEMPTION
    unknown = answer(request, node(gpu="1"), priorityClasses=None, **given)
    assert unknown.outcome is Outcome.UNKNOWN
    default = {"metadata": {"name": "d"}, "value": 10, "globalDefault": True}
    verdict = answer(pod(requests=ONE), node(gpu="1"), priorityClasses=[default], **given)
    assert verdict.outcome is Outcome.FITS_AFTER_PREEMPTION
