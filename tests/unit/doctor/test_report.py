"""`gpuspawner report` reads what a hub has kept, and forgets a user."""

import json
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from gpuspawner.doctor import report
from gpuspawner.doctor.application import main
from gpuspawner.use.record import RefusalReport
from gpuspawner.use.record_files import FactFiles
from tests.unit.use.facts import fact


def with_use(folder, gpu_use):
    file = folder / "jupyterhub_config.py"
    file.write_text(
        "import gpuspawner\nc = get_config()\n"
        f"c.GPUSpawner.gpu_use = {gpu_use!r}\ngpuspawner.configure(c)\n"
    )
    return str(file)


@pytest.fixture
def configured(tmp_path):
    now = time.time()
    FactFiles(tmp_path / "use", 30).append(
        [
            fact("overruled", now - 900, "ann", reason="busy"),
            fact("granted", now - 900, "ann"),
            fact("ended", now - 600, "ann", reason="not-scheduled", seconds=300.0),
            fact("refused", now - 500, "bob", reason="limit"),
            fact("refused", now - 9 * 24 * 3600, "bob", reason="limit"),
        ]
    )
    return with_use(tmp_path, {"directory": str(tmp_path / "use")})


def test_it_says_what_would_have_been_refused_and_how_long_people_waited(configured, capsys):
    assert main(["report", "--config", configured]) == 0

    said = capsys.readouterr().out
    assert "starts asked for: 2, refused: 1." in said
    assert "1 more would have been refused at once" in said
    assert "1 never became a server, which took their owners 5 minutes of waiting; 0 did." in said
    assert "1 × busy" in said


def test_what_a_hub_remembers_need_not_begin_with_its_start(tmp_path, capsys, monkeypatch):
    """Nothing may happen for days, and of very much the oldest is forgotten."""
    remembered = RefusalReport(since=1_800_000_000.0, until=1_800_000_060.0, starts=1)
    monkeypatch.setattr(report, "_of_hub", lambda: remembered)

    assert main(["report", "--config", with_use(tmp_path, True)]) == 0

    assert (
        capsys.readouterr().out == "Since 2027-01-15 08:00 UTC: starts asked for: 1, refused: 0.\n"
    )


def test_more_days_and_json_for_programs(configured, capsys):
    assert main(["report", "--config", configured, "--days", "20", "--output", "json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["starts"], found["refused"], found["overruled"]) == (3, 2, 1)


def test_a_user_is_forgotten(configured, capsys):
    assert main(["report", "--config", configured, "--forget", "ann"]) == 0
    assert main(["report", "--config", configured]) == 0

    said = capsys.readouterr().out
    assert "Removed 3 entries" in said
    assert "starts asked for: 1," in said


LONG = "/" + "a" * 300


@pytest.mark.parametrize(
    ("use", "arguments", "told"),
    [
        (False, [], "GPUSpawner.gpu_use is off"),
        (True, [], "JUPYTERHUB_API_URL isn't set"),
        ({"directory": "/nowhere"}, [], "gpu_use.directory: there is no directory /nowhere\n"),
        ({"directory": "/nowhere"}, ["--forget", "ann"], "there is no directory /nowhere\n"),
        ({"directory": LONG}, [], LONG),
    ],
    ids=["off", "in memory", "no directory", "nobody to forget", "a name too long"],
)
def test_what_is_missing_is_said_in_one_line(tmp_path, capsys, monkeypatch, use, arguments, told):
    monkeypatch.delenv("JUPYTERHUB_API_URL", raising=False)

    assert main(["report", "--config", with_use(tmp_path, use), *arguments]) == 3

    said = capsys.readouterr().err
    assert said.startswith("gpuspawner report: ")
    assert told in said
    assert "Traceback" not in said


class Hub(BaseHTTPRequestHandler):
    """It answers with the body, and notes the paths that it is asked for."""

    body = b""
    asked: ClassVar[list[str]] = []

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("body", "end", "status", "told"),
    [
        (b"<html>Log in</html>", "", 3, "JSON is malformed"),
        (b'{"starts": "many"}', "", 3, "Expected `int`, got `str`"),
        (b"{}", "/", 0, ""),
    ],
    ids=["a page of a proxy", "another shape", "a slash at the end"],
)
def test_the_hub_s_answer_is_read_or_its_fault_is_said_in_one_line(
    tmp_path, capsys, monkeypatch, body, end, status, told
):
    answering = type("Answering", (Hub,), {"body": body, "asked": []})
    with HTTPServer(("127.0.0.1", 0), answering) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/hub/api{end}"
        monkeypatch.setenv("JUPYTERHUB_API_URL", address)
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
        assert main(["report", "--config", with_use(tmp_path, True)]) == status
        server.shutdown()

    said = capsys.readouterr().err
    assert answering.asked == ["/hub/gpuspawner/report"]
    assert told in said
    assert said.count("\n") == (status != 0)


@pytest.mark.parametrize("address", ["hub/api", "http://a hub/api"])
def test_an_address_that_is_none_is_said_in_one_line(tmp_path, capsys, monkeypatch, address):
    monkeypatch.setenv("JUPYTERHUB_API_URL", address)
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")

    assert main(["report", "--config", with_use(tmp_path, True)]) == 3

    said = capsys.readouterr().err
    assert said.startswith(f"gpuspawner report: {address.removesuffix('/api')}/gpuspawner/report: ")
    assert said.count("\n") == 1


def test_it_says_where_it_cannot_forget_a_user(configured, capsys):
    directory = Path(configured).parent / "use"
    (directory / "lock").unlink()
    (directory / "lock").mkdir()

    assert main(["report", "--config", configured, "--forget", "ann"]) == 3

    why = f"can't remove ann from the files in {directory}: [Errno 21] Is a directory"
    said = capsys.readouterr().err
    assert said == f"gpuspawner report: gpu_use.directory: {why}: '{directory}/lock'\n"


def test_a_day_that_may_not_be_read_is_named_and_not_taken_for_one_without_starts(
    configured, capsys
):
    today = max((Path(configured).parent / "use").glob("*.jsonl"))
    today.unlink()
    today.mkdir()

    assert main(["report", "--config", configured]) == 3

    assert f"gpu_use.directory: [Errno 21] Is a directory: '{today}'" in capsys.readouterr().err
