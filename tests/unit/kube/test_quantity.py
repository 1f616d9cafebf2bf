from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.quantity import (
    INT64_MAX,
    QuantityError,
    format_bytes,
    millis_of,
    parse_nanos,
    parse_quantity,
    whole_of,
)

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Fraction(0)),
        ("500m", Fraction(1, 2)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("2Ki", Fraction(2048)),
        ("-1.5", Fraction(-3, 2)),
        ("+7", Fraction(7)),
        ("1.G", Fraction(10**9)),
        (".5", Fraction(1, 2)),
        ("0.1n", Fraction(1, 10**9)),
        ("1e-30", Fraction(1, 10**9)),
        ("0e-30", Fraction(0)),
        ("20Ei", Fraction(INT64_MAX)),
        # ParseQuantity accepts these too.
        (".", Fraction(0)),
        (" 1 ", Fraction(1)),
        ("\u00a01\u3000", Fraction(1)),
        ("-", Fraction(0)),
        ("Ti", Fraction(0)),
    ],
)
def test_a_quantity_has_the_same_value_as_in_the_api_server(text, value):
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 2",
        "1\n",
        "1,5",
        "1K",
        "1ki",
        "1k3",
        "1e",
        "1ee3",
        "0x10",
        "Pi",
        "e-30",
        "\u0661",
    ],
)
def test_text_that_the_api_server_refuses_is_an_error(text):
    with pytest.raises(QuantityError):
        parse_quantity(text)


def test_cpu_is_rounded_up_to_millicores_and_the_rest_to_whole_units():
    assert millis_of(parse_nanos("1500u")) == 2
    assert millis_of(parse_nanos("2")) == 2000
    assert whole_of(parse_nanos("1500m")) == 2
    assert whole_of(parse_nanos("1Gi")) == 2**30


def test_more_than_64_bits_is_an_error_and_not_a_wrong_number():
    with pytest.raises(QuantityError):
        whole_of(parse_nanos("1e19"))
    with pytest.raises(QuantityError):
        millis_of(parse_nanos("9E"))
    with pytest.raises(QuantityError):
        parse_quantity("1e999999999")


@given(st.text(alphabet="0123456789.eEinumkKMGTP+- ", max_size=30))
def test_any_text_is_a_quantity_or_an_error(text):
    try:
        value = parse_quantity(text)
    except QuantityError:
        return
    assert (value * 10**9).denominator == 1


@given(st.integers(min_value=0, max_value=2**60), st.sampled_from(["", "k", "Ki", "M", "Mi"]))
def test_whole_numbers_are_exact(number, suffix):
    factor = {"": 1, "k": 10**3, "Ki": 2**10, "M": 10**6, "Mi": 2**20}[suffix]
    assert parse_quantity(f"{number}{suffix}") in (number * factor, INT64_MAX)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (512, "512"), (2**30, "1Gi"), (31 * 2**29, "15.5Gi"), (80 * 2**30, "80Gi")],
)
def test_bytes_are_formatted_in_the_largest_unit(count, text):
    assert format_bytes(count) == text
