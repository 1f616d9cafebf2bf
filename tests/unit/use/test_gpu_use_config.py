"""What is kept of the use of GPUs, as administrators write it."""

import re

import pytest

from gpuspawner.offers.shapes import OfferError
from gpuspawner.use.gpu_use_config import UseRules, read_use

MISTAKES = [
    ("on", ": 'on' is not a mapping"),
    ({"directry": "/a"}, ": unknown key 'directry' (did you mean 'directory'?)"),
    ({"directory": "use"}, ".directory: 'use' must begin with /"),
    ({"directory": "/srv/use\0"}, ".directory: '/srv/use\\x00' can't be the path of a folder"),
    ({"directory": "/srv/\ud800"}, ".directory: '/srv/\\ud800' can't be the path of a folder"),
    ({"days": 0}, ".days: 0 is not a whole number of at least 1"),
    ({"days": 367}, ".days: 367 is not a whole number of at most 366"),
    ({"prometheus": "prometheus:9090"}, ".prometheus: 'prometheus:9090' must be the address"),
    ({"prometheus": "file:///etc"}, ".prometheus: 'file:///etc' must be the address"),
    ({"prometheus": "http://a:b"}, ".prometheus: 'http://a:b' must be the address"),
    ({"prometheus": "http://[::1"}, ".prometheus: 'http://[::1' must be the address"),
    ({"prometheus_labels": {"cluster": 1}}, ".prometheus_labels['cluster']: 1 is not text"),
    ({"prometheus_labels": {"k8s.io": "a"}}, ".prometheus_labels['k8s.io']: 'k8s.io' is not the"),
    ({"prometheus_labels": {'a="b",c': "d"}}, ".prometheus_labels['a=\"b\",c']: 'a=\"b\",c' is n"),
    ({"prometheus_labels": {"__name__": "x"}}, ".prometheus_labels['__name__']: '__name__' is not"),
    ({"notify": "mail"}, ".notify: must be a function"),
]


@pytest.mark.parametrize(
    "login", ["hub:secret", "https:/hub:secret", "ftp://hub:secret", "https://hub:sec/ret"]
)
def test_an_address_that_is_wrong_takes_no_password_into_the_log(login):
    with pytest.raises(OfferError) as caught:
        read_use({"prometheus": f"{login}@prometheus:9090"})

    assert "'prometheus:9090' must be the address" in str(caught.value)
    assert not re.search("secret|sec/ret", str(caught.value))


@pytest.mark.parametrize(("given", "error"), MISTAKES)
def test_a_mistake_is_named_with_its_key(given, error):
    with pytest.raises(OfferError) as caught:
        read_use(given)

    assert str(caught.value).startswith(f"GPUSpawner.gpu_use{error}")


def test_it_is_off_or_on_with_the_usual_values():
    assert read_use(False) is None
    nothing = {"directory": None, "prometheus": None, "notify": None}
    assert read_use(True) == read_use({}) == read_use(nothing) == UseRules()


def test_all_keys_are_read_and_the_given_dictionary_stays_as_it_is():
    given = {"directory": "/srv/use", "days": 7, "prometheus": "http://p:9090/", "notify": print,
             "prometheus_labels": {"cluster": "prod"}}  # fmt: skip

    rules = read_use(given)

    assert rules == UseRules("/srv/use", 7, "http://p:9090/", {"cluster": "prod"}, print)
    assert given["notify"] is print
