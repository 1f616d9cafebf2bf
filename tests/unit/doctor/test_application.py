"""The command `gpuspawner`: its subcommands, configuration file and exit status."""

import io
import json
import os
import subprocess
import sys

import pytest
from traitlets.config import Config

from gpuspawner.doctor.application import SUBCOMMANDS, GPUSpawnerApp, main
from gpuspawner.doctor.doctor import in_the_pod
from gpuspawner.doctor.explain import Explain
from tests.unit.makers.files import T4, Files, of_fleet


def findings(capsys):
    return json.loads(capsys.readouterr().out)["findings"]


@pytest.mark.parametrize("arguments", [[], ["doctr"]])
def test_without_a_subcommand_it_names_them(capsys, arguments):
    assert main(arguments) == 3

    out = capsys.readouterr().out
    assert all(f"\n{name}\n" in out for name in SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_list_of_commands_has_the_first_sentence_of_their_help(name):
    make, what = SUBCOMMANDS[name]

    assert (make(GPUSpawnerApp()).__doc__ or "").splitlines()[0] == what


@pytest.mark.parametrize("arguments", [["rbac"], ["values", "gke"], ["--help"], ["nonsense"]])
def test_what_asks_no_hub_does_not_import_one(arguments):
    program = f"""
import sys
from gpuspawner.doctor.application import main
main({arguments!r})
hub = {{"jupyterhub", "kubespawner", "kubernetes_asyncio"}} & sys.modules.keys()
sys.exit(f"{{sorted(hub)}} were imported" if hub else 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.each_python
@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_examples_of_the_help_are_in_one_column(capsys, name):
    assert main([name, "--help"]) == 0

    _, _, examples = capsys.readouterr().out.partition("Examples\n--------\n\n")
    lines = examples.partition("\n\n")[0].splitlines()
    assert len(lines) > 1
    assert {len(line) - len(line.lstrip()) for line in lines} == {4}


@pytest.mark.parametrize("name", ["doctor", "capacity", "report", "warm"])
def test_a_word_that_means_nothing_is_refused_by_name(capsys, name):
    assert main([name, "t4", "two words"]) == 3

    told = f"gpuspawner {name}: it takes no t4 'two words'; `gpuspawner {name} --help` lists"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--severs", "-n"])
@pytest.mark.parametrize("form", ["{}=50", "{} 50"])
@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_an_option_that_does_not_exist_is_refused_by_name(capsys, name, form, option):
    assert main([name, *form.format(option).split()]) == 3

    assert f"gpuspawner {name}: it takes no {option}; " in capsys.readouterr().err


OF_STARTS = ("accelerator", "profile", "hub-api", "token-file")


@pytest.mark.parametrize(
    ("configured", "path"),
    [
        ({}, ""),
        ({"base_url": "/"}, ""),
        ({"base_url": "/jupyter/"}, "/jupyter"),
        ({"bind_url": "http://:8000/jupyter/"}, "/jupyter"),
        ({"bind_url": "http://:8000"}, ""),
    ],
)
def test_the_hub_in_the_same_pod_is_found_below_its_base_url(configured, path):
    address = in_the_pod(Config(JupyterHub=configured))

    assert address == f"http://127.0.0.1:8081{path}/hub/api"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "does not exist"),
        ("c = get_config(", "SyntaxError"),
        ("c = get_config()\nc.GPUSpawner.memory_choices = ['lots']", "memory_choices[0]"),
        ("raise SystemExit('gone')", "gone"),
    ],
)
def test_a_configuration_that_stops_a_hub_is_an_error(tmp_path, capsys, text, told):
    path = tmp_path / "jupyterhub_config.py"
    if text is not None:
        path.write_text(text)

    assert main(["doctor", "--config", str(path), "--output", "json"]) == 1

    (finding,) = findings(capsys)
    assert (finding["id"], finding["severity"]) == ("configuration", "error")
    assert told in finding["text"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--start", "--start needs --user"),
        ("--start --user alice", "--start needs a token of the hub, in JUPYTERHUB_API_TOKEN"),
        ("--start --user alice --token-file /no/file", "--token-file can't be read"),
        (f"--start --user alice --token-file {os.devnull}", "the file of --token-file is empty"),
        *((f"--{it} t4", "need --start") for it in OF_STARTS),
        ("--group t4", "--group needs --user"),
        ("--output xml", "xml"),
    ],
)
def test_options_that_mean_nothing_alone_are_a_misuse(capsys, monkeypatch, arguments, told):
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)

    assert main(["doctor", *arguments.split()]) == 3

    assert told in capsys.readouterr().err


def test_what_the_configuration_prints_is_no_part_of_the_answer(tmp_path, capsys):
    files = Files(tmp_path, of_fleet("single"))
    files.configuration.write_text(f"print('hello'){T4}")

    assert files.ask("capacity", "--output", "json") == 0

    printed = capsys.readouterr()
    assert {"offers", "nodes"} == json.loads(printed.out).keys()
    assert "hello" in printed.err


def test_a_fault_of_ours_has_another_status_than_a_finding(tmp_path, capsys, monkeypatch):
    files = Files(tmp_path, of_fleet("single"))
    monkeypatch.delattr(Explain, "_about_server")

    assert files.ask("explain", "t4") == 3
    assert "AttributeError" in capsys.readouterr().err


def test_a_very_narrow_terminal_is_written_to(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "5")

    assert main(["doctor", "--config", str(tmp_path / "jupyterhub_config.py")]) == 1
    assert "does not exist" in " ".join(capsys.readouterr().out.split())


@pytest.mark.each_python
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_no_arrow_is_written_to(tmp_path, monkeypatch, encoding):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))

    assert main(["doctor", "--config", str(tmp_path / "jupyterhub_config.py")]) == 1
    assert b"? Correct the configuration file" in written.getvalue()


@pytest.mark.each_python
def test_a_reader_who_leaves_early_meets_no_error(tmp_path):
    command = [sys.executable, "-m", "gpuspawner", "doctor"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            command, cwd=tmp_path, check=False, stdout=writing, stderr=subprocess.PIPE
        )
    finally:
        os.close(writing)

    assert (ended.returncode, ended.stderr) == (0, b"")


def test_the_module_is_the_same_command(tmp_path):
    command = [sys.executable, "-m", "gpuspawner", "explain", "t4"]

    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ended.returncode == 3
    assert "jupyterhub_config.py" in ended.stderr
