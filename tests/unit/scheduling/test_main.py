import json

import pytest

from gpuspawner.scheduling.__main__ import main
from tests.unit.scheduling.objects import node, pod

ONE = {"gpu": "1"}


@pytest.fixture
def write(tmp_path):
    def file(name, plain):
        path = tmp_path / name
        path.write_text(plain if isinstance(plain, str) else json.dumps(plain))
        return str(path)

    return file


@pytest.fixture
def files(write):
    return [
        write("nodes.json", {"kind": "List", "items": [node("a", gpu="1"), node("b")]}),
        write("pods.json", {"kind": "List", "items": []}),
    ]


def test_a_pod_that_fits_is_told_where(files, write, capsys):
    assert main([*files, write("pod.json", pod(requests=ONE))]) == 0
    out = capsys.readouterr().out
    assert "outcome: fits\nfeasible: a\n" in out
    assert "b: Insufficient nvidia.com/gpu" in out


def test_a_refusal_ends_with_the_schedulers_message(files, write, capsys):
    nothing = write("none.json", {"items": []})
    asks = write("pod.json", pod(requests={"gpu": "2"}))
    assert main([*files, asks, "--deviceClasses", nothing]) == 1
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .startswith("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    )


def test_what_is_unknown_is_said(files, write, capsys):
    assert main([*files, write("pod.json", pod(schedulerName="volcano"))]) == 2
    assert "unknown: another scheduler places the pod: volcano" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{", "5", '{"items": 3}', '{"items": [3]}'])
def test_a_file_that_is_no_list_is_an_error_that_names_it(files, write, capsys, text):
    assert main([*files, write("pod.json", text)]) == 3
    assert "pod.json" in capsys.readouterr().err


def test_two_pods_are_one_too_many(files, write, capsys):
    assert main([*files, write("pod.json", {"items": [pod(), pod()]})]) == 3
    assert "expected one pod, found 2" in capsys.readouterr().err
