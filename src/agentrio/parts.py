"""What messages are made of."""

from .domain.parts import (
    CallError as CallError,
    File as File,
    Image as Image,
    Part as Part,
    RawBlock as RawBlock,
    Text as Text,
    Thinking as Thinking,
    ToolCall as ToolCall,
    ToolResult as ToolResult,
)
