"""The HTTP API says what the library says, as its OpenAPI document promises."""

import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workbench.browser import Browser, Reply
from unpooled import Federation
from unpooled.analyses.specification import ANALYSES
from unpooled.apps.demo import write_hospitals
from unpooled.apps.workbench.foundation.server import Address, Server
from unpooled.apps.workbench.researcher.cards.code import Opening
from unpooled.apps.workbench.researcher.opening import make_server
from unpooled.apps.workbench.researcher.work import Source


class Program:
    """A program with a key."""

    def __init__(self, server: Server, user: str) -> None:
        self.browser = Browser(server.url)
        self.key = server.sessions.key(user)

    def send(self, method: str, path: str, body: Any = None) -> tuple[Reply, Any]:
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        text = sent.encode() if isinstance(sent, str) else sent
        bearer = {"Authorization": f"Bearer {self.key}"}
        reply = self.browser.send(method, path, text, bearer)
        return reply, json.loads(reply.body)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_hospitals(tmp_path_factory.mktemp("hospitals"))


@pytest.fixture(scope="module")
def server(files: dict[str, Path]) -> Iterator[Server]:
    source = Source("test", Opening.of_federation("f.toml"), Federation.local(files, seed=1))
    with make_server(source, Address()) as running:
        yield running
    source.close()


@pytest.fixture
def program(server: Server, request: pytest.FixtureRequest) -> Program:
    return Program(server, request.node.name)


def test_a_program_gets_what_the_library_says(program: Program, files: dict[str, Path]) -> None:
    reply, answer = program.send("POST", "/api/compare", {"variable": "crp", "by": "arm"})
    assert reply.status == 200
    with Federation.local(files, seed=1) as fed:
        result = fed.compare("crp", by="arm")
    assert answer["result"] == result.to_dict()
    assert answer["answer"] == result.answer
    again, later = program.send("GET", f"/api/questions/{answer['question']}")
    assert (again.status, later) == (200, answer)


def test_every_route_is_described(program: Program) -> None:
    _, document = program.send("GET", "/api/openapi.json")
    assert document["openapi"].startswith("3.1")
    assert {f"/api/{analysis.name}" for analysis in ANALYSES} < set(document["paths"])
    assert "/api/book/compare" in document["paths"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body: Any = {} if method == "post" else None
            reply, _ = program.send(method.upper(), path.replace("{number}", "1"), body)
            assert str(reply.status) in operation["responses"], path  # it is there


PLAN = {
    "title": "CRP",
    "groups": [{"name": "arm", "levels": ["control", "patient"]}],
    "variables": {"crp": {"unit": "mg/L"}},
}


def test_a_program_runs_a_protocol_and_reads_the_book(
    program: Program, files: dict[str, Path]
) -> None:
    reply, study = program.send("POST", "/api/protocol", PLAN)
    assert reply.status == 202
    until = time.monotonic() + 120
    while study["state"] == "running" and time.monotonic() < until:
        time.sleep(0.1)
        _, study = program.send("GET", "/api/study")
    states = {one["state"] for one in study["centers"]}
    assert states <= {"answered", "partly", "refused"}  # these centers were asked before
    assert states & {"answered", "partly"}
    _, book = program.send("GET", "/api/book")
    assert book["centers"] == ["Haifa", "Lausanne", "Milan", "Oslo", "Porto"]
    reply, answer = program.send("POST", "/api/book/describe", {"variable": "crp", "by": "arm"})
    assert reply.status == 200
    mean = next(g["mean"] for g in answer["result"]["groups"] if g["group"] == "patient")
    values = [
        row for path in files.values() for row in csv.DictReader(path.read_text().splitlines())
    ]
    pooled = [float(v["crp"]) for v in values if v["arm"] == "patient" and v["crp"]]
    assert mean == pytest.approx(sum(pooled) / len(pooled), rel=0.03)
    assert program.send("POST", "/api/protocol", {"title": "x"})[0].status == 422


def test_what_is_wrong_is_said_as_json(program: Program) -> None:
    wrong: list[tuple[Any, str]] = [
        (b"not json", "JSON object"),
        ({"variable": "crp", "By": "arm"}, "did you mean 'by'"),
        ({"variable": "crp", "by": 3}, "by must be the name of a variable"),
        ({"variable": "crp", "by": "nothing"}, "no center has a variable 'nothing'"),
    ]
    for body, words in wrong:
        reply, answer = program.send("POST", "/api/compare", body)
        assert reply.status == 422
        assert words in answer["error"]
    assert program.send("POST", "/api/nothing", {})[0].status == 404
    assert program.send("GET", "/api/questions/99")[0].status == 404


def test_without_a_key_nothing_is_said(program: Program) -> None:
    program.key = "guessed"
    reply, answer = program.send("GET", "/api/catalogue")
    assert reply.status == 401
    assert "key" in answer["error"]


def test_a_program_has_its_users_work_and_nobody_elses(server: Server) -> None:
    anna, ben = Program(server, "anna"), Program(server, "ben")
    _, answer = anna.send("POST", "/api/describe", {"variable": "age"})
    assert ben.send("GET", f"/api/questions/{answer['question']}")[0].status == 404
    assert ben.send("GET", "/api/releases")[1] == {}
    assert set(anna.send("GET", "/api/releases")[1]) == {
        "Haifa",
        "Lausanne",
        "Milan",
        "Oslo",
        "Porto",
    }
    page = Browser(server.url)
    page.enter(server.link("anna"))
    assert "The mean of age" in page.get(f"/cards/{answer['question']}").text


def test_a_key_is_made_on_a_page_and_works(server: Server) -> None:
    part = Browser(server.url)
    part.enter(server.link("own"))
    page = part.post("/programs").text
    program = Program(server, "own")
    program.key = page.split('<pre id="key" tabindex="0">')[1].split("</pre>")[0]
    _, result = program.send("GET", "/api/catalogue")
    assert [row["variable"] for row in result["variables"]] == [
        "age", "arm", "crp", "died", "months", "sex",
    ]  # fmt: skip
