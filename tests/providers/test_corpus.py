"""Recorded streams and bodies of real servers give what an independent assembler says, however their bytes are cut.

Those of the OpenAI wires go through the preset of the server that gave them.
"""

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
from agentrio.testing.loopback import Pace, RawReply, Script, open_model_server
from tests.providers import corpus_chat, corpus_responses
from tests.providers.corpus import Case
from tests.providers.corpus_chat import digest
from tests.providers.corpus_wires import FRAMING, WIRES, Outcome, Wire, of_all

SEEDS = (1, 2, 3)
SHORT = 3_000  # bytes: bodies below are also cut at every byte
REQUEST = ModelRequest("s", (user_message("m", "hi"),))

ran: dict[str, Counter[str]] = {wire.name: Counter() for wire in WIRES}


@pytest.fixture(scope="module", autouse=True)
def _say_what_ran(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        for name, counts in ran.items():
            told = ", ".join(f"{count} {what}" for what, count in counts.items()) or "nothing: ../shared/wire is absent"
            print(f"\ncorpus of {name}: {told}")


def test_the_corpus_is_present() -> None:
    """Where it is not, the run says so; where it is, nothing is skipped."""
    if not any(wire.cases for wire in WIRES):
        pytest.skip("../shared/wire is absent")
    assert all(wire.cases for wire in WIRES)
    assert len(WIRES[0].cases) >= 66


def test_each_folder_of_the_corpus_goes_through_a_preset() -> None:
    """None is left out."""
    assert corpus_chat.unmapped() | corpus_responses.unmapped() == set()


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


def _check(wire: Wire, case: Case, ours: Outcome) -> None:
    expected = wire.expected(case)
    for field, value in ours.items():
        entry = wire.argued.get((case.name, field))
        if entry is None:
            assert value == expected[field], field
            continue
        assert value != expected[field], f"{field}: no difference any more"
        if "digest" in entry:
            assert digest(value) == entry["digest"], field
        else:
            assert (value or type(entry["ours"])()) == entry["ours"], field


@pytest.mark.parametrize(("wire", "case"), of_all())
async def test_a_recorded_answer_gives_its_expected_outcome_over_a_socket(wire: Wire, case: Case) -> None:
    """As it was recorded, and with its bytes cut anew at random."""
    headers = {key: value for key, value in case.meta["response_headers"].items() if key not in FRAMING}
    kind = "text/event-stream; charset=utf-8" if case.streamed else "application/json"
    paces = [Pace(), *(Pace(pieces=seed) for seed in SEEDS)]
    replies = [RawReply(case.body, status=case.status, headers=headers, content_type=kind, pace=pace) for pace in paces]
    async with open_model_server(Script(tuple(replies))) as server:
        async with wire.model(case, server.base_url).open() as client:
            for pace in paces:
                response, error, deltas = await _ask(client)
                _check(wire, case, wire.outcome(response, error))
                _check_deltas(wire, case, response, deltas)
                ran[wire.name]["cases" if pace.pieces is None else "re-cut at random"] += 1


def _check_deltas(wire: Wire, case: Case, response: ModelResponse, deltas: list[PartDelta]) -> None:
    """Merging is concatenation: what was streamed of a part is that part's text."""
    texts: dict[int, str] = {}
    for delta in deltas:
        if wire.restarts and delta.offset == 0:
            texts[delta.part] = ""
        assert delta.offset == len(texts.setdefault(delta.part, ""))
        texts[delta.part] += delta.text
    if wire.leaves_open_out and response.stop_reason is None:
        return  # places may differ
    entry = wire.argued.get((case.name, "deltas"))
    for index, text in texts.items():
        if wire.restarts and index >= len(response.parts):
            continue
        part = response.parts[index]
        whole = getattr(part, "text", getattr(part, "arguments_json", None))
        assert text == whole or (entry is not None and text == entry["ours"])


def _streamed(case: Case) -> bool:
    return case.streamed


@pytest.mark.parametrize(("wire", "case"), of_all(_streamed))
def test_a_short_stream_may_be_cut_at_any_byte(wire: Wire, case: Case) -> None:
    """Byte by byte, and in two at every place; longer ones in 50 random ways."""
    body, whole = case.body, wire.whole(case)
    if whole is None:
        return  # an error, however it is cut: the next test
    cuts = [[body[:at], body[at:]] for at in range(len(body))] if len(body) < SHORT else []
    cuts.append([body[at : at + 1] for at in range(len(body))])
    dice = random.Random(case.name)
    for _ in range(50):
        places = sorted({0, len(body), *(dice.randrange(len(body)) for _ in range(dice.randrange(1, 40)))})
        cuts.append([body[start:end] for start, end in pairwise(places)])
    for pieces in cuts:
        assert wire.assemble(case, pieces) == whole
        ran[wire.name]["cuts in memory"] += 1


@pytest.mark.parametrize(("wire", "case"), of_all(_streamed))
def test_a_stream_cut_at_a_frame_border_is_a_drop_until_its_end_came(wire: Wire, case: Case) -> None:
    """Cut before it: ``stream_dropped``, or the error that the server told. Cut after it: the whole response; where
    usage comes last, perhaps without it.
    """
    frames = case.body.split(b"\n\n")
    whole = wire.whole(case)
    for count in range(len(frames)):
        came = frames[:count]
        body = b"\n\n".join(came) + b"\n\n"
        ran[wire.name]["cuts at frame borders"] += 1
        if wire.is_over(case, came):
            response = wire.assemble(case, [body])
            assert response.stop_reason is not None
            assert whole is None or response.parts == whole.parts
            assert wire.ends_early or response == whole
            continue
        assembler = wire.stream(case)
        with pytest.raises(ProviderError) as caught:
            assembler.feed(body)
            assembler.close()
        assert (caught.value.code == "stream_dropped") == (not wire.tells_error(came))
        assert caught.value.retry in ("stream", "request") or wire.ends_early
        assert assembler.response().stop_reason is None


@pytest.mark.parametrize(("wire", "case"), of_all(lambda case: not case.streamed))
def test_a_body_cut_short_is_no_answer(wire: Wire, case: Case) -> None:
    """A body that is no stream has no half."""
    start = len(case.body) - len(case.body.lstrip())
    for size in range(start, len(case.body.rstrip()) - 1, max(1, len(case.body) // 100)):
        assembler = wire.body(case)
        assembler.feed(case.body[:size])
        with pytest.raises(ProviderError) as caught:
            assembler.close()
        assert caught.value.code == "invalid_response"
        ran[wire.name]["bodies cut short"] += 1
