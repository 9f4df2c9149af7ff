"""Tests of a sender over HTTP/2, with pytest:  pytest test_http2_sender.py  (needs httpx[http2] and pytest from PyPI)"""

import httpx
import pytest

AA, BB = "aa" * 32, "bb" * 32


class Sender:
    """The sender under test: in place of yours."""

    def __init__(self, url):
        self.client = httpx.Client(base_url=url, http1=False, http2=True)
        self.gone = set()

    def push(self, token, alert, collapse_id=None):
        if token in self.gone:
            return "Unregistered"
        headers = {"apns-topic": "com.example.app", "apns-push-type": "alert"}
        if collapse_id:
            headers["apns-collapse-id"] = collapse_id
        for _ in range(3):
            answer = self.client.post(f"/3/device/{token}", headers=headers, json={"aps": {"alert": alert}})
            if answer.status_code < 429:
                break
        reason = answer.json()["reason"] if answer.content else None
        if answer.status_code == 410:
            self.gone.add(token)
        return reason


@pytest.fixture(scope="module")
def sender(gateway):
    sender = Sender(gateway.url)  # One connection for all tests, as Apple asks for.
    yield sender
    sender.client.close()


def test_an_alert_arrives(apns, sender):
    assert sender.push(AA, "Grüße", collapse_id="greeting") is None
    [arrived] = apns.wait(token=AA, text="Grüße")
    assert arrived["payload"] == {"aps": {"alert": "Grüße"}}
    assert (arrived["topic"], arrived["push_type"]) == ("com.example.app", "alert")
    assert (arrived["collapse_id"], arrived["status"]) == ("greeting", 200)


def test_a_token_that_is_gone_is_not_used_again(apns, sender):
    apns.ask("PUT", f"/devices/{BB}", json={"state": "uninstalled"})
    assert sender.push(BB, "one") == "Unregistered"
    assert sender.push(BB, "two") == "Unregistered"
    assert [n["reason"] for n in apns.wait(token=BB)] == ["Unregistered"]
    assert apns.ask("GET", "/counts")["gateway"]["received"] == 1


def test_what_apns_cannot_take_now_is_sent_again(apns, sender):
    apns.reject(AA, "ServiceUnavailable", times=2)
    assert sender.push(AA, "later") is None
    assert [n["status"] for n in apns.wait(3)] == [503, 503, 200]
    verdict = apns.ask("GET", "/verdict")
    assert verdict["http2"]["fates"] == {"accepted": 1, "rejected": 2, "discarded": 0, "unknown": 0}
    assert verdict["stories"]["accepted_twice"] == 0
