"""Each mistake in `policies` or `gpu_weights` is named with its place and what is allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import OfferError
from gpuspawner.policies.policies_config import read_policies, read_weights
from tests.unit.makers.writing import EVERY_KEY, MIG, OFFERS, error, policy

NO_AMOUNT = "is not an amount; write it as Kubernetes does, such as 2 or 8Gi"
NO_HOURS = "is not days and hours, such as Mon-Fri 08:00-18:00"
NO_WEIGHT = "isn't counted; give it a weight in GPUSpawner.gpu_weights"
NO_TIME = "is not a time such as 90m, 8h or 2d12h"
PATTERNS = "users", "groups", "roles", "servers", "hours"
SUBSETS = "accelerators", "profiles", "images"
GPUS_OF = ".gpus_per_user"
GPU_LIMITS = "gpus_per_server", "gpus_per_user", "gpus_per_group"
OTHER_LIMITS = tuple(
    f"{what}_per_{per}" for what in ("memory", "cpu") for per in ("server", "user", "group")
)
SERVER_LIMITS = "gpu_servers_per_user", "gpu_servers_per_group"
MISTAKES: list[tuple[str, object, str]] = [
    *((key, "ml", f".{key}: 'ml' is not a list") for key in (*PATTERNS, *SUBSETS)),
    *((key, [], f".{key}: is empty; write at least one or leave it out") for key in PATTERNS),
    *((key, [7], f".{key}[0]: 7 is not text; write it in quotes") for key in (*PATTERNS, *SUBSETS)),
    *(
        (key, ["a", " "], f".{key}[1]: ' ' is empty; write a text or leave it out")
        for key in ("users", "groups", "roles", "hours", *SUBSETS)
    ),
    *((key, True, f".{key}: true {NO_AMOUNT}") for key in GPU_LIMITS),
    *((key, -1, f".{key}: -1 is less than 0") for key in (*GPU_LIMITS, *OTHER_LIMITS)),
    *((key, "8GB", f".{key}: '8GB' {NO_AMOUNT}") for key in (*GPU_LIMITS, *OTHER_LIMITS)),
    *((key, "1/7", f".{key}: '1/7' {NO_AMOUNT}") for key in GPU_LIMITS),
    ("gpus_per_user", {"all": 10**5000}, f"{GPUS_OF}['all']: a very large number {NO_AMOUNT}"),
    ("gpus_per_user", {"t4": True}, f"{GPUS_OF}['t4']: true {NO_AMOUNT}"),
    ("gpus_per_user", {1: 2}, f"{GPUS_OF}: the key 1 is not text; write it in quotes"),
    ("gpus_per_user", {"t44": 1}, f"{GPUS_OF}['t44']: there is no 't44' (did you mean 't4'?)"),
    ("gpus_per_user", {"x.y/z": 1}, f"{GPUS_OF}['x.y/z']: 'x.y/z' {NO_WEIGHT}"),
    *((key, {"all": 1}, f".{key}: an object is not a quantity, such as 2") for key in OTHER_LIMITS),
    *((key, 1.5, f".{key}: 1.5 is not a whole number") for key in SERVER_LIMITS),
    *((key, -1, f".{key}: -1 is not a whole number of at least 0") for key in SERVER_LIMITS),
    *((key, 10**30, f".{key}: a very large number is not a whole") for key in SERVER_LIMITS),
    ("except", [], ".except: a list is not a mapping"),
    ("except", {"servers": "x"}, ".except.servers: 'x' is not a list"),
    ("except", {"hours": ["Sat"]}, ".except: unknown key 'hours' (did you mean 'users'?)"),
    ("except", {"x": 1}, ".except: unknown key 'x'; allowed are users, groups, roles, servers"),
    ("except", {"users": [1]}, ".except.users[0]: 1 is not text; write it in quotes"),
    ("accelerators", ["t4", "x"], ".accelerators[1]: there is no 'x'; there are A100_80 or t4"),
    ("images", ["pytorch:1"], ".images[0]: there is no 'pytorch:1' (did you mean 'pytorch'?)"),
    ("hours", ["8-18"], f".hours[0]: '8-18' {NO_HOURS}"),
    ("hours", ["Sat", "25:00-26:00"], f".hours[1]: '25:00-26:00' {NO_HOURS}"),
    ("timezone", "Berlin", ".timezone: 'Berlin' is not a time zone, such as Europe/Berlin"),
    ("timezone", "../../etc/passwd", ".timezone: '../../etc/passwd' is not a time zone"),
    ("timezone", "Europe", ".timezone: 'Europe' is not a time zone"),
    ("timezone", 2, ".timezone: 2 is not text; write it in quotes"),
    *(
        ("lifetime", text, f".lifetime: '{text}' {NO_TIME}")
        for text in ("8", "8 h", "0h", "-1h", "1.5h", "30m1h", "8hours", "99999d", "h")
    ),
    ("lifetime", 8, ".lifetime: 8 is not text; write it in quotes"),
    ("idle", "1h", ".idle: '1h' is not a mapping"),
    ("idle", {}, ".idle.after: is missing; write a time such as 1h"),
    ("idle", {"after": "1"}, f".idle.after: '1' {NO_TIME}"),
    ("idle", {"after": "1h", "warning": "soon"}, f".idle.warning: 'soon' {NO_TIME}"),
    ("idle", {"after": "1h", "keeps": -1}, ".idle.keeps: -1 is not a whole number of at least 0"),
    ("idle", {"afer": "1h"}, ".idle: unknown key 'afer' (did you mean 'after'?)"),
    (
        "idle",
        {"after": "1h", "after_if_others_wait": "2h"},
        ".idle.after_if_others_wait: is longer than 'after'",
    ),
    ("explanation", " ", ".explanation: ' ' is empty; write a text or leave it out"),
    ("show_withheld", "yes", ".show_withheld: 'yes' is not true or false"),
    ("gpu_per_user", 1, ": unknown key 'gpu_per_user' (did you mean 'gpus_per_user'?)"),
    ("excepted", {}, ": unknown key 'excepted' (did you mean 'except'?)"),
]


@pytest.mark.parametrize(("key", "value", "message"), MISTAKES)
def test_a_mistake_is_named_with_its_place_and_what_is_allowed(key, value, message) -> None:
    groups = {} if key == "groups" else {"groups": ["ml"]}

    assert error(**groups, **{key: value}).startswith(f"GPUSpawner.policies['course']{message}")


def test_the_list_of_mistakes_has_every_key() -> None:
    assert EVERY_KEY.keys() <= {key for key, _, _ in MISTAKES}


@pytest.mark.parametrize("what", ["gpus", "memory", "cpu", "gpu_servers"])
def test_a_share_of_a_group_needs_groups(what) -> None:
    key = f"{what}_per_group"

    for keys in ({"users": ["ann"]}, {"except": {"groups": ["staff"]}}):
        assert error(**keys, **{key: 8}) == (
            f"GPUSpawner.policies['course'].{key}: needs 'groups': each has this much together"
        )


def test_images_cannot_be_left_on_offer_if_there_are_none() -> None:
    assert error(offers=Offers.parse(), images=["pytorch"]) == (
        "GPUSpawner.policies['course'].images: there is nothing to choose from: "
        "GPUSpawner.images is empty"
    )


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (None, ": null is not a mapping"),
        ({"course": []}, "['course']: a list is not a mapping"),
        ({7: {}}, ": the key 7 is not text; write it in quotes"),
        ({"one at a time": {}}, ": 'one at a time' cannot be a key; use up to 63 letters"),
        ({"A_b": {}, "a-B": {}}, ": 'A_b' and 'a-B' are one key; rename one of them"),
        ({"course": {"users": {1, 2}}}, "['course'].users: a set is not plain data"),
    ],
)
def test_a_mistake_in_the_names_of_policies_is_named(policies, message) -> None:
    with pytest.raises(OfferError) as raised:
        read_policies(policies, {}, OFFERS)

    assert str(raised.value).startswith(f"GPUSpawner.policies{message}")


@pytest.mark.each_python
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (None, ": null is not a mapping"),
        ({"t4": 1}, ": 't4' is not the name of an extended resource, such as nvidia.com/gpu"),
        ({1: 1}, ": the key 1 is not text; write it in quotes"),
        ({MIG: "x"}, f"['{MIG}']: 'x' is not a number such as 0.5 or 1/7"),
        ({MIG: "1/0"}, f"['{MIG}']: '1/0' is not a number such as 0.5 or 1/7"),
        ({MIG: True}, f"['{MIG}']: true is not a number such as 0.5 or 1/7"),
        ({MIG: float("inf")}, f"['{MIG}']: inf is not a number such as 0.5 or 1/7"),
        ({MIG: 10**5000}, f"['{MIG}']: a very large number is not a number such as 0.5 or 1/7"),
        ({MIG: "-1/7"}, f"['{MIG}']: '-1/7' is less than 0"),
    ],
)
def test_a_mistake_in_a_weight_is_named(weights, message) -> None:
    with pytest.raises(OfferError) as raised:
        read_weights(weights)

    assert str(raised.value).startswith(f"GPUSpawner.gpu_weights{message}")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def error_in(read: Callable[[], object]) -> OfferError | None:
    try:
        read()
    except OfferError as found:
        return found
    return None


@pytest.mark.each_python
@given(st.dictionaries(st.sampled_from([*EVERY_KEY, "user", "x"]), plain, max_size=4))
def test_whatever_is_written_is_read_or_is_an_error_at_its_place(written) -> None:
    found = error_in(lambda: policy(**written))

    if found is not None:
        assert found.trait == "policies"
        assert found.path.startswith("['course']")
        assert str(found).isprintable()


@pytest.mark.each_python
@given(st.dictionaries(st.sampled_from([MIG, "x", "x/y"]) | st.text(max_size=5), plain, max_size=3))
def test_whatever_weights_are_written_are_read_or_are_an_error(written) -> None:
    found = error_in(lambda: read_weights(written))

    if found is None:
        assert all(weight >= 0 for weight in read_weights(written).values())
    else:
        assert found.trait == "gpu_weights"
