"""Who plays: an agent with one tool, and a server that answers with recorded streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any

import trio

from agentrio.agent.agent import Agent
from agentrio.agent.context import ToolContext
from agentrio.agent.tool import read_tool
from agentrio.providers.anthropic import Anthropic
from agentrio.testing.loopback import Fault, Pace, RawReply, Received, Reply

from .tempo import Tempo

WEATHER = "What is the weather in Oslo, in Bergen and in Tromsø?"
STEERING = "Answer in one sentence, please."
STORY = "Tell me a long story about a lighthouse keeper."
KEEPER = "What does a lighthouse keeper do? Answer in one short sentence."

RECORDINGS = {WEATHER: "weather-calls", STORY: "story", KEEPER: "keeper"}
SILENT_AFTER = 150  # frames of the story: without pacing the server must not be done before it is stopped
STATIONS = {"Oslo": ("rain, 4 °C", 3), "Bergen": ("rain, 9 °C", 1), "Tromsø": ("snow, -2 °C", 2)}
STEPS = 4  # reports of progress from one call


def weather_agent(base_url: str, tempo: Tempo, max_tokens: int | None = None) -> Agent[Any]:
    """An agent whose model is served at an address of this machine."""

    @read_tool
    async def weather(ctx: ToolContext, city: str) -> str:
        """The weather in a city now.

        Args:
            city: Name of the city.
        """
        report, slowness = STATIONS.get(city, ("unknown", 1))
        for step in range(STEPS):
            await ctx.progress("asking the station", done=step, total=STEPS)
            await trio.sleep(tempo.tool * slowness / STEPS)
        return f"{city}: {report}"

    return Agent(
        name="demo",
        model=served_model(base_url),
        prompt="You are brief.",
        tools=[weather],
        max_tokens=max_tokens,
    )


def served_model(base_url: str) -> Anthropic:
    """The model of the demo."""
    return Anthropic("smollm2-135m", api_key="not-a-key", base_url=base_url)


def recorded(tempo: Tempo) -> Callable[[Received], Reply]:
    """Answers each request with the recording that fits it, at the tempo."""

    def answer(request: Received) -> Reply:
        name = recording_for(request.body)
        silent = SILENT_AFTER if name == "story" and not tempo.frame else None
        return RawReply(read_recording(name), pace=Pace(delay=tempo.frame), fault=Fault(stall_after=silent))

    return answer


def recording_for(body: object) -> str:
    """The recording that answers a request: by what the user said last, else by the tool results that it brings."""
    for text in _last_texts(body):
        if text in RECORDINGS:
            return RECORDINGS[text]
    return "weather-answer"


def read_recording(name: str) -> bytes:
    """The bytes of a recorded stream."""
    return files("agentrio.cli").joinpath("recordings", f"{name}.sse").read_bytes()


def _last_texts(body: Any) -> Iterable[str]:
    """The texts of the user since the model last spoke."""
    for message in reversed(body["messages"]):
        if message["role"] != "user":
            return
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from (block["text"] for block in blocks if block["type"] == "text")
