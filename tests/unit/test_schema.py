"""The command that prints the options of a configuration as a JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gpuspawner.schema import DISCOVERED, main

pytestmark = pytest.mark.each_python

T4 = """
import gpuspawner
c = get_config()
c.GPUSpawner.accelerators = {"t4": {"node_selector": {"gpu": "t4"}, "counts": [1, 2]}}
gpuspawner.configure(c)
"""


def configuration(folder: Path, text: str) -> list[str]:
    path = folder / "jupyterhub_config.py"
    path.write_text(text)
    return [str(path)]


def test_the_schema_of_a_configuration_s_offers_is_printed(tmp_path, capsys) -> None:
    assert main(configuration(tmp_path, T4)) == 0

    validator = Draft202012Validator(json.loads(capsys.readouterr().out))
    assert validator.is_valid({"accelerator": "t4", "gpus": 2})
    assert not validator.is_valid({"accelerator": "t4", "gpus": 3})


def test_with_a_line_the_schema_has_the_wish_to_wait(tmp_path, capsys) -> None:
    assert main(configuration(tmp_path, f"{T4}c.GPUSpawner.queue = True")) == 0

    validator = Draft202012Validator(json.loads(capsys.readouterr().out))
    for wish in (True, False, None, "here"):
        assert validator.is_valid({"accelerator": "t4", "wait": wish})
    assert not validator.is_valid({"accelerator": "t4", "wait": "yes"})
    main(configuration(tmp_path, T4))
    validator = Draft202012Validator(json.loads(capsys.readouterr().out))
    assert not validator.is_valid({"accelerator": "t4", "wait": True})


def test_what_the_configuration_prints_stays_out_of_the_schema(tmp_path, capsys) -> None:
    """As the configuration file of Zero to JupyterHub does."""
    assert main(configuration(tmp_path, f"print('Loading a file')\n{T4}")) == 0

    printed = capsys.readouterr()
    assert json.loads(printed.out)
    assert printed.err == "Loading a file\n"


def test_a_note_says_that_the_running_hub_discovers_the_models(tmp_path, capsys) -> None:
    assert main(configuration(tmp_path, "c = get_config()")) == 0

    printed = capsys.readouterr()
    assert printed.err == f"{DISCOVERED}\n"
    assert Draft202012Validator(json.loads(printed.out)).is_valid({})


def test_a_hub_with_profiles_has_no_schema_of_its_options(tmp_path, capsys) -> None:
    profiles = "c = get_config()\nc.KubeSpawner.profile_list = [{'display_name': 'T4'}]"

    assert main(configuration(tmp_path, profiles)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith(
        "KubeSpawner.profile_list is set: this hub offers profiles, not accelerators\n"
    )


def test_an_invalid_configuration_is_refused_with_the_trait_s_name(tmp_path, capsys) -> None:
    broken = "c = get_config()\nc.GPUSpawner.memory_choices = ['lots']"

    assert main(configuration(tmp_path, broken)) == 2
    assert "GPUSpawner.memory_choices[0]: 'lots' is not" in capsys.readouterr().err
    assert main([str(tmp_path / "none.py")]) == 2
