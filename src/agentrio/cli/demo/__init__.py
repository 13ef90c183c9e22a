"""``agentrio demo``: a play in three scenes, with a real model's recorded words."""
