"""``agentrio chat``: a person, or a pipe, talks to a model."""
