"""Calling tools: three are declared, one may fit. Arguments are copied from the request; some values are held out."""

import random

from chat import Call
from talk import Exchange, held_out, seeded
from wording import every, sample

CITIES = (
    "Paris London Berlin Madrid Rome Tokyo Vienna Oslo Athens Dublin Lisbon Prague Warsaw Moscow Boston Chicago Dallas Denver Miami Seattle "
    "Toronto Montreal Sydney Melbourne Delhi Mumbai Beijing Shanghai Cairo Hamburg Munich Milan Naples Venice Florence Geneva Zurich Brussels "
    "Amsterdam Copenhagen Stockholm Helsinki Budapest Barcelona Manchester Liverpool Edinburgh Oxford Cambridge Houston"
).split()
TOPICS = (
    "installing", "models", "memory", "the phone", "errors", "the server", "privacy", "the store", "sampling", "tokens", "the benchmark",
    "thinking", "tools", "kernels", "the command line", "the certificate", "GGUF files", "split models", "the context", "offline use",
    "the settings", "embedding", "the tokenizer", "quantisation", "WebGPU", "the worker", "downloads", "system prompts",
)
NAMES = (
    "Anna Ben Carl David Emma Eva Frank George Helen Ian Jack Jane John Julia Kate Laura Leo Linda Lisa Lucy Maria Mark Martin Mary Max Michael "
    "Nina Oscar Paul Peter Robert Rose Ruth Sam Sarah Simon Sophie Susan Thomas Tom Victor Alice"
).split()
ROOMS = ("kitchen", "bedroom", "office", "garden", "hall", "bathroom", "garage", "living room")
_WEATHER = ("sunny", "cloudy", "rainy", "windy", "foggy", "snowy", "clear", "stormy")


def _tool(name: str, description: str, argument: str, about: str, kind: str = "string") -> dict:
    parameters = {"type": "object", "properties": {argument: {"type": kind, "description": about}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = {
    "get_weather": _tool("get_weather", "Get the weather of a city", "city", "Name of the city"),
    "set_timer": _tool("set_timer", "Set a timer", "minutes", "Minutes to wait", "integer"),
    "search_docs": _tool("search_docs", "Search the documentation", "query", "What to look for"),
    "get_time": _tool("get_time", "Get the time in a city", "city", "Name of the city"),
    "call_person": _tool("call_person", "Call somebody by phone", "name", "Name of the person"),
    "switch_light": _tool("switch_light", "Switch on the light of a room", "room", "The room"),
}

_ASK = {
    "get_weather": ("(What is|How is|What's) the weather (like |)in {v}?", "(Tell me|Get|Show me) the weather (in|of|for) {v}.", "Is it (raining|sunny|cold|warm) in {v}?", "Weather in {v}?", "I (am going|travel) to {v}. How is the weather( there|)?"),
    "set_timer": ("Set a timer (for|of|to) {v} minutes.", "(Wake me|Remind me|Call me) in {v} minutes.", "(Start|Begin) a timer (of|for) {v} minutes( please|).", "I need a timer for {v} minutes.", "Timer: {v} minutes."),
    "search_docs": ("(Search|Look in|Look into) the (docs|documentation) (for|about) {v}.", "(Find|Look up|Search) {v} in the (docs|documentation).", "What do the docs say about {v}?", "(Search for|Find) {v} in the docs."),
    "get_time": ("What time is it in {v}?", "(Tell me|Get|Show me) the time in {v}.", "How late is it in {v}( now|)?", "Time in {v}?", "What is the (local |)time in {v}?"),
    "call_person": ("(Call|Phone|Ring) {v}( please|).", "I (want|need|would like) to (call|phone|talk to) {v}.", "(Can|Could) you (call|phone|ring) {v}( please|)?", "Please (call|phone) {v}( now|)."),
    "switch_light": ("(Switch|Turn) on the light in the {v}.", "(Switch|Turn) the light (of|in) the {v} on.", "Light in the {v}, please.", "It is dark in the {v}.", "I need light in the {v}."),
}
_TEST = {
    "get_weather": ("Could you get the weather of {v}?", "Show me how the weather is in {v}."),
    "set_timer": ("Please set a timer, {v} minutes.", "Begin a timer for {v} minutes, please."),
    "search_docs": ("Please look into the docs for {v}.", "Search the docs about {v}."),
    "get_time": ("Could you tell me the time in {v}?", "How late is it now in {v}?"),
    "call_person": ("Could you please ring {v} now?", "I would like you to call {v}."),
    "switch_light": ("Please turn on the light in the {v}.", "Switch on the {v} light."),
}
_ARGUMENT = {name: next(iter(tool["function"]["parameters"]["properties"])) for name, tool in TOOLS.items()}
_VALUES = {"get_weather": CITIES, "get_time": CITIES, "search_docs": TOPICS, "call_person": NAMES, "switch_light": ROOMS, "set_timer": tuple(range(1, 100))}
_DEED = {
    "get_weather": "The weather in {v} is wanted; get_weather fits.", "set_timer": "A timer is wanted; set_timer fits.",
    "search_docs": "The docs are to be searched; search_docs fits.", "get_time": "The time in {v} is wanted; get_time fits.",
    "call_person": "Somebody is to be called; call_person fits.", "switch_light": "Light is wanted; switch_light fits.",
}
MISSING = "I have no tool for that."


def _outcome(name: str, value, random_source: random.Random) -> tuple[str, str]:
    """What the tool gives back, and the answer made of it."""
    if name == "get_weather":
        sky, degrees = random_source.choice(_WEATHER), random_source.randint(-9, 35)
        return f"{sky}, {degrees} degrees", f"It is {sky} in {value}, {degrees} degrees."
    if name == "get_time":
        time = f"{random_source.randint(0, 23)}:{random_source.randint(0, 59):02}"
        return time, f"It is {time} in {value}."
    if name == "set_timer":
        return "ok", f"The timer is set for {value} minutes."
    if name == "search_docs":
        page = random_source.choice(("serving.md", "embedding.md", "phone.md", "README.md"))
        return page, f"See {page} about {value}."
    if name == "call_person":
        return random_source.choice((("ringing", f"I am calling {value}."), ("no answer", f"{value} does not answer.")))
    return random_source.choice((("on", f"The light in the {value} is on."), ("broken", f"The light in the {value} is broken.")))


def _is_held_out(name: str, value) -> bool:
    # A held-out value is new for its tool, not new as a word: cities are known from the other tool that takes them.
    return name in ("get_weather", "set_timer", "get_time") and held_out("tool", name, value)


def declare(random_source: random.Random) -> list[dict]:
    return [TOOLS[name] for name in random_source.sample(sorted(TOOLS), 3)]


def _exchange(name: str, value, declared: list[str], question: str, random_source: random.Random) -> Exchange:
    if name not in declared:
        return Exchange("tools", question, MISSING, "None of the tools fits.", key=MISSING)
    result, answer = _outcome(name, value, random_source)
    return Exchange("tools", question, answer, _DEED[name].replace("{v}", str(value)), call=Call(name, {_ARGUMENT[name]: value}),
                    result=result, result_thought="The tool has answered.")


def training(declared: list[dict], random_source: random.Random) -> Exchange:
    names = [tool["function"]["name"] for tool in declared]
    name = random_source.choice(names if random_source.random() < 0.85 else sorted(TOOLS))
    while _is_held_out(name, value := random_source.choice(_VALUES[name])):
        pass
    question = sample(random_source.choice(_ASK[name]), random_source).replace("{v}", str(value))
    return _exchange(name, value, names, question, random_source)


def tests(count: int) -> list[tuple[list[dict], Exchange]]:
    """Held-out wordings; held-out values where a tool has such; every sixth request fits no declared tool."""
    random_source, found = seeded("tool tests"), []
    while len(found) < count:
        declared = declare(random_source)
        names = [tool["function"]["name"] for tool in declared]
        fits = len(found) % 6 != 5
        name = random_source.choice(names if fits else sorted(set(TOOLS) - set(names)))
        values = [value for value in _VALUES[name] if _is_held_out(name, value)] or _VALUES[name]
        value = random_source.choice(values)
        question = random_source.choice(every(random_source.choice(_TEST[name]))).replace("{v}", str(value))
        found.append((declared, _exchange(name, value, names, question, random_source)))
    return found
