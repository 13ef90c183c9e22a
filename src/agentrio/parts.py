"""What messages are made of."""

from .domain.parts import (
    CallError,
    File,
    Image,
    Part,
    RawBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

__all__ = [
    "CallError",
    "File",
    "Image",
    "Part",
    "RawBlock",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
]
