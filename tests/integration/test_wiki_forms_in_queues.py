"""A form that the application has read is whole when its request goes on in another queue."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from urllib.parse import urlencode

import pytest

from tests.support.wiki_server import running_wiki

_FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


@pytest.mark.parametrize("size", [100, 700_000])  # in memory, and in a file
def test_a_sign_in_beside_a_text_keeps_the_text_in_the_slow_lane(size: int) -> None:
    text = "kept " * (size // 5)
    with running_wiki() as server:
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        page = browser.open(f"{server.url}/Fresh/edit").read().decode()
        fields = {**dict(_FIELD.findall(page)), "body": text, "signin": "1", "user": "Nobody", "password": "wrong one"}
        with pytest.raises(urllib.error.HTTPError) as refused:
            browser.open(f"{server.url}/Fresh/edit", urlencode(fields).encode())
        answer = refused.value.read().decode()
        assert refused.value.code == 403
        assert answer.count("kept ") >= size // 5
        assert "could not be checked" not in answer
