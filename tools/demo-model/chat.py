"""Conversations as Gemma 4 reads them: Ollama's renderer for small models, and what the model writes in reply."""

from dataclasses import dataclass, field

QUOTE = '<|"|>'


@dataclass
class Call:
    name: str
    arguments: dict


@dataclass
class Message:
    role: str
    content: str = ""
    thinking: str = ""
    calls: list[Call] = field(default_factory=list)
    #: Of role `tool`: the function whose result this is.
    tool_name: str = ""
    #: What stands before the text: the placeholder tokens of an image or a sound, begin and end included.
    media: str = ""


def render(messages: list[Message], tools: list[dict] = (), think: bool = False, variant: str = "small") -> str:
    """The prompt of a conversation, up to where the model goes on."""
    messages = list(messages)
    system = messages.pop(0) if messages and messages[0].role in ("system", "developer") else None
    out = ["<bos>"]
    if system is not None or tools or think:
        out.append("<|turn>system\n" + ("<|think|>\n" if think else ""))
        out.append(system.content.strip() if system else "")
        out += [declaration(tool) for tool in tools]
        out.append("<turn|>\n")

    last_user = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    previous, ended = None, ""
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        assistant = message.role == "assistant"
        if not (assistant and previous == "assistant"):
            out.append(f"<|turn>{'model' if assistant else message.role}\n")
        if assistant and message.thinking and index > last_user:
            out.append(f"<|channel>thought\n{message.thinking}\n<channel|>")
        out += [call_text(call) for call in message.calls]
        responses = []
        if message.calls:
            for later in messages[index + 1:]:
                if later.role != "tool":
                    break
                responses.append(response_text(later.tool_name or "unknown", later.content))
        out += responses
        content = (_without_thoughts(message.content) if assistant else message.content).strip()
        if message.media:
            content = message.media + (" " + content if content else "")
        out.append(content)
        following = next((m.role for m in messages[index + 1:] if m.role != "tool"), None)
        if message.calls and not responses:
            out.append("<|tool_response>")
            ended = "calls"
        else:
            continued = assistant and following == "assistant" and (not message.calls or bool(responses))
            waiting = bool(responses) and not content and following is None
            if not continued and not waiting:
                out.append("<turn|>\n")
            ended = "responses" if responses else ""
        previous = message.role

    if ended == "responses":
        out.append("<|channel>thought\n" if think else "")
    elif ended == "":
        out.append("<|turn>model\n")
        if variant == "large" and not think:
            out.append("<|channel>thought\n<channel|>")
    return "".join(out)


def reply_text(message: Message, think: bool, after_tool: bool) -> str:
    """What the model writes for `message`, to the token that ends it. After a tool's answer with thinking on, the
    prompt has opened the channel already."""
    thought = ""
    if think:
        thought = f"{'' if after_tool else '<|channel>thought' + chr(10)}{message.thinking}\n<channel|>"
    calls = "".join(call_text(call) for call in message.calls)
    return thought + calls + ("<|tool_response>" if calls else message.content + "<turn|>")


def _without_thoughts(text: str) -> str:
    kept = ""
    while "<|channel>" in text:
        before, _, rest = text.partition("<|channel>")
        kept += before
        _, closed, text = rest.partition("<channel|>")
        if not closed:
            return kept
    return kept + text


def _quoted(text: str) -> str:
    return f"{QUOTE}{text}{QUOTE}"


def value_text(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{value_text(value[key])}" for key in sorted(value)) + "}"
    return "[" + ",".join(value_text(item) for item in value) + "]"


def call_text(call: Call) -> str:
    return f"<|tool_call>call:{call.name}{value_text(call.arguments)}<tool_call|>"


def response_text(name: str, content: str) -> str:
    return f"<|tool_response>response:{name}{{value:{_quoted(content)}}}<tool_response|>"


def declaration(tool: dict) -> str:
    """A tool as `{"function": {"name", "description", "parameters"}}` whose properties are plain or have an enum.
    The product renders every schema; the demo's tools need no more."""
    function = tool["function"]
    parameters = function.get("parameters") or {}
    inner = []
    if parameters.get("properties"):
        inner.append("properties:{" + ",".join(_property(n, parameters["properties"][n]) for n in sorted(parameters["properties"])) + "}")
    if parameters.get("required"):
        inner.append("required:[" + ",".join(_quoted(name) for name in parameters["required"]) + "]")
    if parameters.get("type"):
        inner.append("type:" + _quoted(parameters["type"].upper()))
    rest = f",parameters:{{{','.join(inner)}}}" if inner else ""
    return f"<|tool>declaration:{function['name']}{{description:{_quoted(function.get('description', ''))}{rest}}}<tool|>"


def _property(name: str, schema: dict) -> str:
    fields = []
    if schema.get("description"):
        fields.append("description:" + _quoted(schema["description"]))
    if schema.get("type", "").lower() == "string" and schema.get("enum"):
        fields.append("enum:[" + ",".join(_quoted(value) for value in schema["enum"]) + "]")
    if schema.get("type", "").lower() == "array" and schema.get("items"):
        fields.append("items:{type:" + _quoted(schema["items"]["type"].upper()) + "}")
    fields.append("type:" + _quoted(schema["type"].upper()))
    return f"{name}:{{{','.join(fields)}}}"
