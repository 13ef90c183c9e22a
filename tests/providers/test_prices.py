"""What a response costs: as the server tells it, by prices of one's own, or by the list of genai-prices."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import anthropic
import attrs
import genai_prices
import httpx2
import openai
import pytest
import trio

from agentrio.domain.errors import DeclarationError
from agentrio.domain.messages import user_message
from agentrio.domain.render import ModelRequest
from agentrio.domain.usage import Prices, Usage
from agentrio.providers._prices import ListedPrices, NoPrices, OwnPrices, Pricing, Seller, open_tariff
from agentrio.providers.anthropic import Anthropic
from agentrio.providers.base import Model, ModelResponse, PricedClient, ProviderError, Timeouts
from agentrio.providers.openai_chat import OpenAIChat
from agentrio.providers.openai_responses import OpenAIResponses
from agentrio.providers.presets import Preset, presets
from agentrio.providers.wire.billing import Bill, CostStyle, told_cost
from agentrio.providers.wire.chat_assembler import Reading

REQUEST = ModelRequest("s", (user_message("u", "hi"),), ())
OWN = Prices(input=1, output=10)
SELLER = Seller("OpenAIChat", "openai", "openai", "gpt-5.2")


def sse(*chunks: dict[str, Any]) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (str(chunk.get("type", "message")).encode(), json.dumps(chunk).encode())
        for chunk in chunks
    )


def chat_answer(usage: dict[str, Any] | None = None, *, end: str | None = "stop", **more: Any) -> bytes:
    told = {"prompt_tokens": 1000, "completion_tokens": 100} if usage is None else usage
    return sse(
        {"model": "gpt-5.2-2025-12-11", "choices": [{"index": 0, "delta": {"content": "Hello"}}], **more},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": told, **more},
    )


def responses_answer(**usage: Any) -> bytes:
    told = {"input_tokens": 1000, "output_tokens": 100, **usage}
    item = {"type": "message", "id": "i", "content": [{"type": "output_text", "text": "Hello"}]}
    reply = {"id": "r", "model": "gpt-5.2", "status": "completed", "output": [item], "usage": told}
    return sse({"type": "response.completed", "response": reply})


def messages_answer(end: str | None = "end_turn", **usage: Any) -> bytes:
    told = {"input_tokens": 1000, "output_tokens": 1, **usage}
    head = {"id": "m", "model": "claude-sonnet-5", "usage": told}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
    frames: list[dict[str, Any]] = [
        {"type": "message_start", "message": head},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        text,
    ]
    if end is not None:
        frames.append({"type": "message_delta", "delta": {"stop_reason": end}, "usage": {"output_tokens": 100}})
    return sse(*frames)


def answering(body: bytes) -> httpx2.AsyncClient:
    """A client whose server, whatever its address, gives this answer."""
    headers = {"content-type": "text/event-stream"}
    return httpx2.AsyncClient(
        transport=httpx2.MockTransport(lambda request: httpx2.Response(200, headers=headers, content=body))
    )


async def asked(model: Model) -> ModelResponse:
    """The response, or what had arrived of it when it broke off."""
    async with model.open() as client, client.stream(REQUEST, Timeouts(5, 5)) as stream:
        try:
            while True:
                await stream.receive()
        except (trio.EndOfChannel, ProviderError):
            return stream.response()


async def cost(model: Model) -> Decimal | None:
    return (await asked(model)).usage.cost


async def lacks(model: Model) -> str | None:
    async with model.open() as client:
        assert isinstance(client, PricedClient)
        return client.unpriced


def chat(body: bytes = chat_answer(), model: str = "gpt-5.2", **more: Any) -> OpenAIChat:
    return OpenAIChat(model, client=answering(body), api_key="key-of-a-test", **more)


def responses(body: bytes = responses_answer(), **more: Any) -> OpenAIResponses:
    return OpenAIResponses("gpt-5.2", client=answering(body), api_key="key-of-a-test", **more)


def messages(body: bytes = messages_answer(), **more: Any) -> Anthropic:
    return Anthropic("claude-sonnet-5", client=answering(body), api_key="key-of-a-test", **more)


def listed(provider: str, model: str, **tokens: int) -> Decimal:
    """What the list says; its prices change, so tests don't repeat them."""
    return genai_prices.calc_price(genai_prices.Usage(**tokens), model, provider_id=provider).total_price


WIRES: list[Callable[..., Model]] = [chat, responses, messages]


@pytest.mark.parametrize("wire", WIRES)
async def test_without_a_word_the_prices_of_the_list_count(wire: Callable[..., Model]) -> None:
    """The model is the one that the server says it ran."""
    model = wire()
    expected = listed(model.tag.provider, model.tag.model, input_tokens=1000, output_tokens=100)
    assert expected > 0
    assert await cost(model) == expected
    assert await lacks(model) is None


@pytest.mark.parametrize("wire", WIRES)
async def test_own_prices_go_before_the_list(wire: Callable[..., Model]) -> None:
    """Per million tokens."""
    assert await cost(wire(prices=OWN)) == Decimal("0.002")
    assert await lacks(wire(prices=OWN)) is None


@pytest.mark.parametrize("wire", WIRES)
async def test_no_prices_are_no_cost(wire: Callable[..., Model]) -> None:
    """Not a cost of nothing."""
    assert await cost(wire(prices=False)) is None
    assert "prices=False" in (await lacks(wire(prices=False)) or "")


@pytest.mark.parametrize("wire", WIRES)
async def test_without_the_list_there_is_no_cost(wire: Callable[..., Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is told how to come by it."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert await cost(wire()) is None
    assert "pip install 'agentrio[prices]'" in (await lacks(wire()) or "")


@pytest.mark.parametrize("wire", WIRES)
async def test_at_an_address_that_is_not_the_servers_own_the_list_does_not_count(wire: Callable[..., Model]) -> None:
    """Whoever is there may take any price, or none; a price of one's own counts everywhere."""
    elsewhere = {"base_url": "http://127.0.0.1:1234"}
    assert await cost(wire(**elsewhere)) is None
    assert "no list has the prices of" in (await lacks(wire(**elsewhere)) or "")
    assert await cost(wire(**elsewhere, prices=OWN)) == Decimal("0.002")


async def test_an_address_of_the_environment_is_no_official_one_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes before the preset's."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1234/v1")
    assert await cost(chat()) is None


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (OpenAIChat("gpt-5.2", client=openai.AsyncOpenAI(api_key="k")), True),
        (OpenAIChat("gpt-5.2", client=openai.AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:1/v1")), False),
        (Anthropic("claude-sonnet-5", client=anthropic.AsyncAnthropic(api_key="k")), True),
        (
            Anthropic(
                "claude-sonnet-5",
                client=anthropic.AsyncAnthropicVertex(project_id="p", region="global", access_token="t"),
            ),
            True,
        ),
        (
            Anthropic(
                "claude-sonnet-5",
                client=anthropic.AsyncAnthropicVertex(project_id="p", region="europe-west1", access_token="t"),
            ),
            False,
        ),
    ],
)
async def test_a_client_of_the_sdk_is_priced_by_where_it_goes(model: Model, expected: bool) -> None:
    """Google's regions cost more than its global address."""
    assert (await lacks(model) is None) == expected


async def test_a_model_without_a_credential_is_not_said_to_lack_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it has no key is what its first run tells."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "no url at all\n")
    assert await lacks(Anthropic("claude-sonnet-5")) is None


async def test_an_unknown_model_has_no_price() -> None:
    """None, never 0."""
    body = chat_answer().replace(b"gpt-5.2-2025-12-11", b"gpt-of-the-far-future")
    assert await cost(chat(body, model="gpt-of-the-far-future")) is None
    assert await cost(chat(body)) == await cost(chat())  # the name that was asked for is known


async def test_the_name_of_a_deployment_says_nothing_of_its_price() -> None:
    """On Azure customers name them; the answer says which model it is."""
    azure: dict[str, Any] = {"preset": "azure", "base_url": "https://mine.openai.azure.com"}
    expected = listed("azure", "gpt-5.2", input_tokens=1000, output_tokens=100)
    assert await cost(chat(model="mine", **azure)) == expected
    anonymous = chat_answer().replace(b"gpt-5.2-2025-12-11", b"")
    assert await cost(chat(anonymous, model="gpt-4o", **azure)) is None


async def test_a_local_server_costs_nothing_known() -> None:
    """Its owner pays for electricity, and may say how much."""
    assert await cost(chat(preset="ollama")) is None
    assert await lacks(chat(preset="ollama")) == (
        "no list has the prices of gpt-5.2 at ollama; give OpenAIChat(..., prices=Prices(input=..., output=...))"
    )
    assert await cost(chat(preset="ollama", prices=Prices(input=0, output=0))) == 0


@pytest.mark.parametrize(
    ("wire", "body", "expected"),
    [
        (messages, messages_answer(end=None), Decimal("0.00101")),
        (chat, chat_answer(end=None), Decimal("0.002")),
        (chat, chat_answer({}, end=None), None),
        (chat, chat_answer({}), None),
    ],
)
async def test_an_answer_that_broke_off_costs_what_was_told_of_it(
    wire: Callable[..., Model], body: bytes, expected: Decimal | None
) -> None:
    """Where nothing was told, nothing is known."""
    assert await cost(wire(body, prices=OWN)) == expected


async def test_what_is_kept_for_an_hour_has_its_own_price() -> None:
    """Twice the input's, not one and a quarter."""
    split = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 900}
    written: dict[str, Any] = {"input_tokens": 0, "cache_creation_input_tokens": 1000}
    tokens = {"input_tokens": 1000, "output_tokens": 100, "cache_write_tokens": 1000}
    expected = listed("anthropic", "claude-sonnet-5", cache_write_1h_tokens=900, **tokens)
    assert await cost(messages(messages_answer(**written, cache_creation=split))) == expected
    assert expected > listed("anthropic", "claude-sonnet-5", **tokens)


async def test_cached_tokens_are_part_of_the_prompt_once() -> None:
    """The list counts them within the input, our usage beside it."""
    tokens = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}}
    expected = listed("openai", "gpt-5.2", input_tokens=1000, cache_read_tokens=600, output_tokens=100)
    assert await cost(chat(chat_answer(tokens))) == expected


async def test_the_tier_that_was_answered_with_has_its_price() -> None:
    """What was asked for may not be what was given."""
    usual, flex = await cost(chat()), await cost(chat(chat_answer(service_tier="flex")))
    assert usual is not None
    assert flex is not None
    assert flex < usual
    of_responses = responses_answer().replace(b'"status"', b'"service_tier": "flex", "status"')
    assert await cost(responses(of_responses)) == flex


async def test_a_speed_is_told_to_the_list() -> None:
    """Anthropic's; which models have one, the list knows."""
    seen: list[Any] = []

    def priced(usage: Any, model: str, **more: Any) -> Any:
        seen.append(more["price_context"])
        return genai_prices.calc_price(usage, model, **more)

    tariff = ListedPrices(Seller("Anthropic", "x", "anthropic", ""), genai_prices.Usage, priced)
    assert tariff.cost(Usage(1), "claude-sonnet-5", Bill(context={"speed": "fast"})) is not None
    assert seen == [{"speed": "fast"}]
    told = await asked(messages(messages_answer(speed="standard")))
    assert told.usage.cost == await cost(messages())


@pytest.mark.parametrize(
    ("style", "usage", "expected"),
    [
        ("none", {"cost": 1}, None),
        ("number", {"cost": 0.000669}, "0.000669"),
        ("number", {"cost": 0}, "0"),
        ("number", {}, None),
        ("number", {"cost": -1}, None),
        ("number", {"cost": True}, None),
        ("number", {"cost": float("nan")}, None),
        ("number", {"cost": "0.1"}, None),
        ("number", {"cost": 0.1, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.1}}, "0.1"),
        ("number", {"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": 1}}, "1.05"),
        ("number", {"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, None),
        ("number", {"cost": 0.05, "is_byok": True}, None),
        ("parts", {"cost": {"request_cost": 0.005, "total_cost": 0.00501}}, "0.00501"),
        ("parts", {"cost": 0.1}, None),
        ("ticks", {"cost_in_usd_ticks": 37756000}, "0.0037756"),
        ("ticks", {}, None),
    ],
)
def test_a_cost_is_read_as_each_server_tells_it(style: CostStyle, usage: dict[str, Any], expected: str | None) -> None:
    """To the last digit; what can't be a cost is none."""
    assert told_cost(usage, style) == (None if expected is None else Decimal(expected))


@pytest.mark.parametrize("prices", [None, False, OWN])
async def test_what_the_server_tells_goes_before_all_prices(prices: Any) -> None:
    """It is what is paid."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "cost_in_usd_ticks": 10**8}
    assert await cost(chat(chat_answer(usage), preset="xai", prices=prices)) == Decimal("0.01")
    assert await cost(responses(responses_answer(cost_in_usd_ticks=10**8), preset="xai", prices=prices)) == Decimal(
        "0.01"
    )
    assert await lacks(chat(preset="xai", prices=prices)) is None
    own = Preset(name="mine", title="Mine", reading=Reading(cost="number"))
    told = chat(chat_answer({"cost": 0.5}), preset=own, base_url="http://127.0.0.1:1/v1", prices=prices)
    assert (await asked(told)).usage == Usage(cost=Decimal("0.5"))


async def test_a_server_that_tells_costs_lacks_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own word is enough."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert await lacks(chat(preset="openrouter")) is None


async def test_one_response_is_priced_once() -> None:
    """It may be asked for by each reader that comes in the middle; with more usage it is priced anew."""
    counts: list[Usage] = []

    @attrs.frozen
    class Counting:
        lacks: str | None = None

        def cost(self, usage: Usage, model: str, bill: Bill) -> Decimal | None:
            counts.append(usage)
            return Decimal(1)

    pricing = Pricing(Counting())
    for usage in (Usage(), Usage(1), Usage(1), Usage(2), Usage(2)):
        priced = pricing.priced(ModelResponse(usage=usage), Bill())
        assert priced.usage == (attrs.evolve(usage, cost=Decimal(1)) if usage.total else usage)
    assert counts == [Usage(1), Usage(2)]


@pytest.mark.parametrize("told", [Decimal("1e15"), Decimal("1e999999999")])
def test_a_cost_beyond_all_money_is_none(told: Decimal) -> None:
    """It could not be added to what was spent before, and no answer may end a session as crashed."""
    priced = Pricing(NoPrices()).priced(ModelResponse(usage=Usage(1)), Bill(told))
    assert priced.usage == Usage(1)


@pytest.mark.parametrize("wrong", [LookupError("unknown"), ValueError("odd usage"), TypeError("a fault of the list")])
def test_a_list_that_stumbles_knows_no_price(wrong: Exception) -> None:
    """A run does not fail for it."""

    def priced(*given: Any, **more: Any) -> Any:
        raise wrong

    assert ListedPrices(SELLER, genai_prices.Usage, priced).cost(Usage(1), "gpt-5.2", Bill()) is None


def test_a_model_that_is_listed_without_prices_is_not_free() -> None:
    """The list would say 0."""
    found = genai_prices.calc_price(genai_prices.Usage(input_tokens=1), "gemma-3", provider_id="google")
    assert found.total_price == 0
    tariff = ListedPrices(
        Seller("OpenAIChat", "gemini", "google", "gemma-3"), genai_prices.Usage, genai_prices.calc_price
    )
    assert tariff.cost(Usage(1), "gemma-3", Bill()) is None


async def test_warnings_of_the_list_are_no_failure() -> None:
    """Where they are errors, as in these tests, there is no price."""

    def priced(*given: Any, **more: Any) -> Any:
        warnings.warn("an old list", UserWarning, stacklevel=1)

    assert ListedPrices(SELLER, genai_prices.Usage, priced).cost(Usage(1), "", Bill()) is None


async def test_each_preset_that_names_a_list_is_in_it() -> None:
    """Under that name, with the model that stands as its example. Azure's example is no model's name."""
    for preset in presets().values():
        if preset.price_list:
            seller = Seller("OpenAIChat", preset.name, preset.price_list, preset.example)
            tariff = await open_tariff(None, seller)
            assert isinstance(tariff, ListedPrices)
            assert (tariff.cost(Usage(1), "", Bill()) is None) == (preset.name == "azure"), preset.name


async def test_the_list_is_loaded_only_where_it_is_needed() -> None:
    """Importing it takes a quarter of a second."""
    assert isinstance(await open_tariff(OWN, SELLER), OwnPrices)
    assert isinstance(await open_tariff(False, SELLER), NoPrices)
    assert isinstance(await open_tariff(None, attrs.evolve(SELLER, list_name="")), NoPrices)


def test_importing_and_declaring_loads_no_list() -> None:
    """That is left for the opening of a model, in a thread."""
    code = (
        "import sys, agentrio; from agentrio import Agent, OpenAIChat; Agent(model='anthropic:x'); "
        "OpenAIChat('m', prices=agentrio.Prices(input=1, output=2)); assert 'genai_prices' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("wire", [Anthropic, OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize("prices", [True, 0.5, "cheap", {"input": 1}])
def test_what_are_no_prices_is_refused(wire: Any, prices: Any) -> None:
    """Where they are written."""
    with pytest.raises(DeclarationError, match=rf"{wire.__name__}\.prices is .*; it must be Prices"):
        wire("m", prices=prices)
