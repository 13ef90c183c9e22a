"""Ids that follow from their place, so that a resumed run makes the same ones."""

from __future__ import annotations


def run_id(session: str, number: int) -> str:
    """The id of a session's run; runs are numbered from 1."""
    return f"{session}-r{number}"


def call_id(run: str, round: int, index: int) -> str:
    """The id of a tool call: its run, its round from 1, its place in the response from 0."""
    return f"c_{run}_{round}_{index}"


def prompt_id(run: str) -> str:
    """The id of the message that a run answers."""
    return f"{run}-p"


def queued_id(session: str, number: int) -> str:
    """The id of a message that waits to be sent: a session numbers them from 1."""
    return f"{session}-q{number}"


def assistant_id(run: str, round: int, attempt: int) -> str:
    """The id of a response: each attempt at a round's model call has its own."""
    return f"{run}-{round}a{attempt}"


def results_id(run: str, round: int) -> str:
    """The id of the message that holds a round's tool results."""
    return f"{run}-{round}t"
