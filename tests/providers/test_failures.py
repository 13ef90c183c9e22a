"""What a server's error means: code, retry, wait, words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrio.providers.base import ProviderError
from agentrio.providers.wire.chat_assembler import ChatAssembler
from agentrio.providers.wire.failures import MAX_QUOTE, from_frame, from_status, retry_after


def _body(type: str, message: str = "words") -> bytes:
    return json.dumps({"type": "error", "error": {"type": type, "message": message}, "request_id": "req_1"}).encode()


@pytest.mark.parametrize(
    ("status", "type", "message", "code", "retry"),
    [
        (400, "invalid_request_error", "messages: at least one", "invalid_request", None),
        (400, "invalid_request_error", "prompt is too long: 204111 tokens > 200000 maximum", "context_overflow", None),
        (400, "exceed_context_size_error", "request (4021 tokens)", "context_overflow", None),
        (400, "invalid_request_error", "Too many tokens, please wait", "invalid_request", None),
        (401, "authentication_error", "invalid x-api-key", "unauthorized", None),
        (402, "billing_error", "no credit", "unauthorized", None),
        (403, "permission_error", "no", "unauthorized", None),
        (404, "not_found_error", "model: x", "invalid_request", None),
        (408, "timeout_error", "slow", "dependency_failed", "request"),
        (409, "conflict", "again", "dependency_failed", "request"),
        (413, "request_too_large", "Request exceeds the maximum size", "context_overflow", None),
        (413, "nginx", "entity too large", "invalid_request", None),
        (413, "", "", "context_overflow", None),
        (400, "model_context_window_exceeded", "full", "context_overflow", None),
        (422, "unprocessable", "bad", "invalid_request", None),
        (429, "rate_limit_error", "20,000 input tokens per minute", "rate_limited", "request"),
        (429, "insufficient_quota", "You exceeded your current quota", "rate_limited", None),
        (500, "api_error", "oops", "dependency_failed", "request"),
        (502, "", "bad gateway", "dependency_failed", "request"),
        (500, "overloaded_error", "Overloaded", "overloaded", "request"),
        (503, "service_unavailable", "down", "not_provisioned", "request"),
        (504, "timeout", "slow", "dependency_failed", "request"),
        (529, "overloaded_error", "Overloaded", "overloaded", "request"),
        (302, "", "", "invalid_request", None),
    ],
)
def test_a_status_has_its_code_and_its_retry(
    status: int, type: str, message: str, code: str, retry: str | None
) -> None:
    """By status and typed error first; words decide only whether a prompt was too large."""
    error = from_status(status, {}, _body(type, message), 0.0)
    assert (error.code, error.retry, error.status) == (code, retry, status)
    assert error.request_id == "req_1"
    assert error.type == (type or None)
    assert message in str(error)


def test_a_server_that_knows_better_is_not_asked_again() -> None:
    """``x-should-retry: false`` is Anthropic's word on it, and the SDK's rule."""
    assert from_status(500, {"x-should-retry": "false", "retry-after": "3"}, b"", 0.0).retry is None
    assert from_status(429, {"x-should-retry": "true"}, b"", 0.0).retry == "request"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "17"}, 17.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "1", "retry-after-ms": "0"}, 1.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 37.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 99 Nov 1994 08:49:37 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf", "retry-after-ms": "nan"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_the_longest_wait_that_the_server_names_counts(headers: dict[str, str], wait: float | None) -> None:
    """Seconds, milliseconds, or a date against the caller's wall clock (784111740 is that day's 08:49:00)."""
    assert retry_after(headers, 784111740.0) == wait


def test_a_wait_is_only_read_where_a_retry_may_help() -> None:
    """An answer to a bad request may carry one all the same."""
    assert from_status(429, {"retry-after": "3"}, b"", 0.0).retry_after == 3.0
    assert from_status(400, {"retry-after": "3"}, b"", 0.0).retry_after is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no message"),
        (b"plain words", "plain words"),
        (b"<html><body><h1>502 Bad\n Gateway</h1></body></html>", "502 Bad Gateway"),
        (b'"a string"', "a string"),
        (b"[1, 2]", "no message"),
        (b'{"error": "text"}', "text"),
        (b'{"detail": "Unauthorized"}', "Unauthorized"),
        (b'{"detail": [{"msg": "field required", "loc": ["body"]}]}', "field required"),
        (b'{"detail": ["first"]}', "first"),
        (b'{"detail": [], "title": "Problem"}', "Problem"),
        (b'{"message": "flat"}', "flat"),
        (b'{"error": {"message": null, "type": 7, "code": 400}}', "no message"),
        (b'{"error": null, "message": {"deep": 1}}', "no message"),
        (b'{"request_id": 7, "error": {"message": "half \\ud83d"}}', "half \ufffd"),
        (b"\xff\xfe", "\ufffd"),
        (b"[" * 100_000, "[[["),
    ],
)
def test_an_error_body_of_any_shape_is_read(body: bytes, words: str) -> None:
    """Gateways and other servers answer as they please."""
    assert words in str(from_status(400, {}, body, 0.0))


def _google(code: int, message: str, *details: Any) -> Any:
    """How Gemini's server says it on the Chat Completions wire: in a list."""
    return [{"error": {"code": code, "message": message, "status": "X", "details": list(details)}}]


REASON = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}


@pytest.mark.parametrize(
    ("status", "found", "code", "retry", "wait"),
    [
        (429, _google(429, "Resource has been exhausted"), "rate_limited", "request", None),
        (429, _google(429, "Quota exceeded", {"@type": "x"}, WAIT), "rate_limited", "request", 34.07),
        (429, _google(429, "Quota exceeded", WAIT | {"retryDelay": 3}, 7), "rate_limited", "request", None),
        (400, _google(400, "API key not valid.", REASON, WAIT), "unauthorized", None, None),
        (400, _google(400, "The input token count (9) exceeds the maximum"), "context_overflow", None, None),
        (400, _google(400, "Invalid value"), "invalid_request", None, None),
    ],
)
def test_googles_errors_come_in_a_list_and_say_how_long_to_wait(
    status: int, found: Any, code: str, retry: str | None, wait: float | None
) -> None:
    """As an answer's status, within its stream, and in a body of status 200."""
    words = found[0]["error"]["message"]
    error = from_status(status, {}, json.dumps(found).encode(), 0.0)
    assert (error.code, error.retry, error.retry_after) == (code, retry, wait)
    assert words in error.message
    assert from_status(status, {"retry-after": "50"}, json.dumps(found).encode(), 0.0).retry_after == (
        50 if retry else None
    )
    for told in (found, found[0]):
        assembler = ChatAssembler()
        with pytest.raises(ProviderError, match=re.escape(words)) as caught:
            assembler.feed(b"data: " + json.dumps(told).encode() + b"\n\n")
        assert (caught.value.code, caught.value.retry, caught.value.retry_after) == (code, retry, wait)


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 204111 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "Input is too long for requested model.",
        "Your input exceeds the context window of this model.",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "This endpoint's maximum context length is 128000 tokens. However, you requested about 200000 tokens.",
        "prompt token count of 200000 exceeds the limit of 128000",
        "the request exceeds the available context size, try increasing it",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 262144",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "model_context_window_exceeded: Context length exceeded",
        "Too many tokens in the prompt",
        "Token limit exceeded",
    ],
)
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_prompt_that_is_too_long_is_known_in_each_servers_words(status: int, words: str) -> None:
    """None of them has a code of its own; a server that is throttled says nearly the same."""
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
    error = from_status(status, {}, body, 0.0)
    assert (error.code, error.retry) == ("context_overflow", None)
    for throttled in (
        f"{words} Please wait.",
        f"Rate limit reached: {words}",
        f"{words} per minute",
        f"Throttled. {words}",
    ):
        busy = json.dumps({"error": {"message": throttled}}).encode()
        assert from_status(status, {}, busy, 0.0).code != "context_overflow"
        assert from_status(429, {}, busy, 0.0).code == "rate_limited"
    assert from_status(500, {}, body, 0.0).code == "dependency_failed"


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda item: (
            st.lists(item)
            | st.dictionaries(
                st.sampled_from(["error", "type", "code", "message", "detail", "status", "request_id", "title", "msg"]),
                item,
            )
        ),
    )
)
def test_no_error_body_breaks_the_reading(found: Any) -> None:
    """Whatever is decoded gives a typed error."""
    assert from_status(500, {}, json.dumps(found).encode(), 0.0).code
    assert from_frame(found, begun=True).code


def test_a_quote_is_bounded_and_the_request_id_is_kept() -> None:
    """A server may answer with a whole page."""
    error = from_status(500, {"request-id": "req_2"}, b"x" * 9_000, 0.0)
    assert len(error.message) < MAX_QUOTE + 60
    assert error.request_id == "req_2"
    assert from_status(500, {"x-request-id": "req_3"}, b"", 0.0).request_id == "req_3"
    assert from_status(500, {"request-id": "r" * 9_000}, b"", 0.0).request_id == "r" * MAX_QUOTE


@pytest.mark.parametrize(
    ("frame", "code", "retry"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded", True),
        ({"type": "error", "error": {"type": "api_error", "message": "?"}}, "dependency_failed", True),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "too many tokens"}}, "rate_limited", True),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}, "invalid_request", False),
        ({"error": {"type": "invalid_request_error", "message": "prompt is too long"}}, "context_overflow", False),
        ({"error": {"message": "slow down", "code": 429}}, "rate_limited", True),
        ({"error": {"message": "who", "code": 401}}, "unauthorized", False),
        ({"error": {"code": "rate_limit_exceeded"}}, "rate_limited", True),
        ({"type": "error", "error": {"type": "authentication_error"}}, "unauthorized", False),
        ({"type": "error", "error": {"type": "permission_error"}}, "unauthorized", False),
        ({"type": "error", "error": {"type": "billing_error"}}, "unauthorized", False),
        ({"type": "error", "error": {"type": "not_found_error"}}, "invalid_request", False),
        ({"type": "error", "error": {"type": "request_too_large"}}, "context_overflow", False),
        ({"error": {"code": "invalid_api_key"}}, "unauthorized", False),
        ({"error": {"code": "model_not_found"}}, "invalid_request", False),
        ({"error": {"code": "server_is_overloaded"}}, "overloaded", True),
        ({"error": {"code": "slow_down"}}, "overloaded", True),
        ({"error": {"code": "content_filter"}}, "content_filter", False),
        ({"type": "error", "error": None}, "dependency_failed", True),
    ],
)
def test_an_error_within_a_stream_is_typed_too(frame: Any, code: str, retry: bool) -> None:
    """HTTP said 200; a status that stands in the frame counts. What had begun is retried as a broken stream."""
    for begun in (False, True):
        error = from_frame(frame, begun=begun)
        assert error.code == code
        assert error.retry == (("stream" if begun else "request") if retry else None)


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("https://user:pass@new.example:8443/v1?x=1", "redirects to new.example,"),
        ("/v1/other", "redirects to another path,"),
        ("http://[x", "redirects to an address that is none,"),
        (None, "redirects to another path,"),
    ],
)
def test_a_redirect_says_where_it_leads_and_what_to_do(location: str | None, told: str) -> None:
    """It is not followed; of the address the host is told, which may be given as the base URL."""
    error = from_status(308, {} if location is None else {"location": location}, b"", 0.0)
    assert (error.code, error.retry) == ("invalid_request", None)
    assert told in error.message
    assert "base_url" in error.message
    assert "pass" not in error.message
