"""The page at /docs and all that it loads come from the daemon."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import yaml

from tests.support.contract import CONTRACT, assert_documented
from tests.support.live import Daemon

ASSETS = CONTRACT["paths"]["/docs/{asset}"]["get"]["parameters"][1]["schema"]["enum"]
LINKING = {"src", "href", "action", "srcset", "poster", "data", "cite", "formaction", "manifest"}


class Links(HTMLParser):
    """Collects what a page refers to, and its inline script."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.script = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in LINKING]

    def handle_data(self, data: str) -> None:
        self.script += data


def test_the_page_refers_to_nothing_outside_of_the_daemon(live: Daemon) -> None:
    answer = live.client.get("/docs")
    assert_documented("GET", "/docs", answer)
    assert not re.search(r"(?i)https?:|[\"'(]//", answer.text)
    page = Links()
    page.feed(answer.text)
    assert sorted(page.found) == sorted([*(f"docs/{name}" for name in ASSETS), "openapi.yaml", "data:,"])
    assert 'url: "openapi.yaml"' in page.script
    assert "validatorUrl: null" in page.script  # else the page would call a service on the internet


def test_everything_that_the_page_loads_is_there(live: Daemon) -> None:
    for name in ASSETS:
        answer = live.client.get(f"/docs/{name}")
        assert_documented("GET", "/docs/{asset}", answer)
        assert len(answer.content) > 10_000
    contract = live.client.get("/openapi.yaml")
    assert_documented("GET", "/openapi.yaml", contract)
    assert yaml.safe_load(contract.text) == CONTRACT


def test_the_style_sheet_loads_nothing_from_outside(live: Daemon) -> None:
    style = live.client.get("/docs/swagger-ui.css").text
    assert not re.search(r"@import", style)
    loaded = re.findall(r"url\(\s*[\"']?([^)]{0,40})", style)
    assert loaded
    assert all(target.startswith("data:") for target in loaded)


def test_the_contract_sends_its_reader_to_this_daemon(live: Daemon) -> None:
    assert [server["url"] for server in CONTRACT["servers"]] == ["./"]
    assert live.client.get("/docs").headers["content-type"] == "text/html; charset=utf-8"
