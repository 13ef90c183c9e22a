"""Recorded Responses answers of eight kinds of server, each through its own preset, however their bytes are cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest
import trio

from agentrio.domain.messages import user_message
from agentrio.domain.render import ModelRequest
from agentrio.providers.base import ModelClient, ModelResponse, PartDelta, ProviderError, Timeouts
from agentrio.providers.openai_responses import OpenAIResponses
from agentrio.providers.wire.responses_assembler import Assembler, BodyAssembler
from agentrio.testing.loopback import Pace, RawReply, Script, open_model_server
from tests.providers.corpus import Case, argued, cases
from tests.providers.corpus_responses import PRESETS, expected_responses_outcome, responses_outcome, unmapped

CASES = cases(PRESETS)
STREAMS = [case for case in CASES if case.streamed]
ARGUED = argued("corpus_responses_differences.toml")
SEEDS = (1, 2, 3)
SHORT = 3_000  # bytes: bodies below are also cut at every byte
FRAMING = {"content-type", "content-encoding", "content-length", "transfer-encoding"}  # the bodies are kept plain
ENDS = (b"response.completed", b"response.incomplete")
REQUEST = ModelRequest("s", (user_message("m", "hi"),))

ran: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def _say_what_ran(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        told = ", ".join(f"{count} {what}" for what, count in ran.items()) or "nothing: ../shared/wire is absent"
        print(f"\ncorpus of Responses: {told}")


def test_the_corpus_is_present() -> None:
    """Where it is not, the run says so; where it is, nothing is skipped."""
    if not CASES:
        pytest.skip("../shared/wire is absent")


def test_each_folder_of_the_corpus_goes_through_a_preset() -> None:
    """None is left out."""
    assert not unmapped()


def _id(case: Case) -> str:
    return case.name


async def _ask(client: ModelClient) -> tuple[ModelResponse, ProviderError | None, list[PartDelta]]:
    deltas: list[PartDelta] = []
    response = ModelResponse()
    try:
        async with client.stream(REQUEST, Timeouts()) as stream:
            try:
                while True:
                    deltas += await stream.receive()
            except trio.EndOfChannel:
                return stream.response(), None, deltas
            finally:
                response = stream.response()
    except ProviderError as error:
        return response, error, deltas


def _check(case: Case, ours: dict[str, object]) -> None:
    expected = expected_responses_outcome(case)
    for field, value in ours.items():
        entry = ARGUED.get((case.name, field))
        if entry is None:
            assert value == expected[field], field
        else:
            assert value != expected[field], f"{field}: no difference any more"
            assert (value or "") == entry["ours"], field


@pytest.mark.parametrize("case", CASES, ids=_id)
async def test_a_recorded_answer_gives_its_expected_outcome_over_a_socket(case: Case) -> None:
    """As it was recorded, and with its bytes cut anew at random."""
    headers = {key: value for key, value in case.meta["response_headers"].items() if key not in FRAMING}
    kind = "text/event-stream; charset=utf-8" if case.streamed else "application/json"
    paces = [Pace(), *(Pace(pieces=seed) for seed in SEEDS)]
    replies = [RawReply(case.body, status=case.status, headers=headers, content_type=kind, pace=pace) for pace in paces]
    preset = PRESETS[case.name.partition("/")[0]]
    async with open_model_server(Script(tuple(replies))) as server:
        model = OpenAIResponses("test", preset=preset, api_key="test", base_url=server.base_url)
        async with model.open() as client:
            for pace in paces:
                response, error, deltas = await _ask(client)
                _check(case, responses_outcome(response, error))
                _check_deltas(case, response, deltas)
                ran["cases" if pace.pieces is None else "re-cut at random"] += 1


def _check_deltas(case: Case, response: ModelResponse, deltas: list[PartDelta]) -> None:
    """Merging is concatenation: what was streamed of a part is that part's text."""
    texts: dict[int, str] = {}
    for delta in deltas:
        assert delta.offset == len(texts.setdefault(delta.part, ""))
        texts[delta.part] += delta.text
    entry = ARGUED.get((case.name, "deltas"))
    for index, text in texts.items():
        part = response.parts[index]
        whole = getattr(part, "text", getattr(part, "arguments_json", None))
        assert text == whole or (entry is not None and text == entry["ours"])


def _assemble(pieces: list[bytes]) -> ModelResponse:
    assembler = Assembler()
    for piece in pieces:
        assembler.feed(piece)
    assembler.close()
    return assembler.response()


def _whole(case: Case) -> ModelResponse | None:
    try:
        return _assemble([case.body])
    except ProviderError:
        return None


@pytest.mark.parametrize("case", STREAMS, ids=_id)
def test_a_short_stream_may_be_cut_at_any_byte(case: Case) -> None:
    """Byte by byte, and in two at every place; longer ones in 50 random ways."""
    body, whole = case.body, _whole(case)
    if whole is None:
        return  # an error, however it is cut: the next test
    cuts = [[body[:at], body[at:]] for at in range(len(body))] if len(body) < SHORT else []
    cuts.append([body[at : at + 1] for at in range(len(body))])
    dice = random.Random(case.name)
    for _ in range(50):
        places = sorted({0, len(body), *(dice.randrange(len(body)) for _ in range(dice.randrange(1, 40)))})
        cuts.append([body[start:end] for start, end in pairwise(places)])
    for pieces in cuts:
        assert _assemble(pieces) == whole
        ran["cuts in memory"] += 1


def _has(frames: list[bytes], *types: bytes) -> bool:
    compact = (frame.replace(b'": "', b'":"') for frame in frames)
    return any(b'"type":"%b"' % kind in frame for frame in compact for kind in types)


@pytest.mark.parametrize("case", STREAMS, ids=_id)
def test_a_stream_cut_at_a_frame_border_is_a_drop_until_its_last_event_came(case: Case) -> None:
    """Cut before it: ``stream_dropped``, or the error that the server told. Cut after it: the whole response."""
    frames = case.body.split(b"\n\n")
    whole = _whole(case)
    for count in range(len(frames)):
        body = b"\n\n".join(frames[:count]) + b"\n\n"
        assembler = Assembler()
        ran["cuts at frame borders"] += 1
        if _has(frames[:count], *ENDS):
            assembler.feed(body)
            assembler.close()
            assert assembler.response() == whole
            continue
        with pytest.raises(ProviderError) as caught:
            assembler.feed(body)
            assembler.close()
        told = _has(frames[:count], b"error")
        assert (caught.value.code == "stream_dropped") == (not told)
        assert caught.value.retry in ("stream", "request")
        assert assembler.response().stop_reason is None


@pytest.mark.parametrize("case", [case for case in CASES if not case.streamed], ids=_id)
def test_a_body_cut_short_is_no_response(case: Case) -> None:
    """A body that is no stream has no half."""
    start = len(case.body) - len(case.body.lstrip())
    for size in range(start, len(case.body.rstrip()) - 1, max(1, len(case.body) // 100)):
        assembler = BodyAssembler()
        assembler.feed(case.body[:size])
        with pytest.raises(ProviderError) as caught:
            assembler.close()
        assert caught.value.code == "invalid_response"
        ran["bodies cut short"] += 1
