"""What agentrio costs beside the least that the same work can cost, and beside the official SDK: ``make bench``."""
