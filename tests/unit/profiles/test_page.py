"""A template that prints a text gets HTML; one that passes it on as JSON gets plain text."""

import copy
import json

from jinja2 import Environment
from markupsafe import escape

from gpuspawner.profiles.page import PageText

TEXT = PageText("Free: 2 < 3", "<b>Free</b> 2 &lt; 3")


def test_templates_print_html() -> None:
    for autoescape in (False, True):
        template = Environment(autoescape=autoescape).from_string("{{ t }} {{ t|e }}")

        assert template.render(t=TEXT) == "<b>Free</b> 2 &lt; 3 <b>Free</b> 2 &lt; 3"
    assert escape(TEXT) == f"{TEXT}" == "<b>Free</b> 2 &lt; 3"


def test_json_is_plain_text() -> None:
    template = Environment().from_string("{{ [{'description': t}]|tojson }}")

    assert json.loads(template.render(t=TEXT)) == [{"description": "Free: 2 < 3"}]


def test_a_copy_of_the_profiles_has_both_texts() -> None:
    [copied] = copy.deepcopy([TEXT])

    assert (copied, str(copied)) == ("Free: 2 < 3", "<b>Free</b> 2 &lt; 3")
