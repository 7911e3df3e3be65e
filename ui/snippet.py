"""Settings as a runnable program: an agent of your own with exactly this memory."""

from __future__ import annotations

from pprint import pformat

from memory_core.models.catalogue import LOCAL, OFFLINE, OPENAI, ModelChoice
from memory_core.settings import MemorySettings
from memory_core.strategies import LAYERED, Setup
from ui.snippet_strategy import strategy_snippet

_PROGRAM = '''"""An agent with the memory that was set in Memory Inspector."""

import asyncio
{imports}

settings = MemorySettings({settings})
llm = {llm}
memory = LayeredMemory.from_defaults(settings=settings, llm=llm, folder="my_memory")
agent = FunctionAgent(llm=llm, tools=[])


async def main() -> None:
    for text in ("Hi, I'm Dana and I can't eat nuts.", "What can't I eat?"):
        print(await agent.run(user_msg=text, memory=memory))
    print(memory.session.last_trace.assembly.tokens_by_source())


asyncio.run(main())
'''


def snippet(settings: MemorySettings, model: ModelChoice, setup: Setup | None = None) -> str:
    """Return the program. Keys are read from the environment, never written.

    ``setup`` is the strategy in use, where it is another than our own memory.
    """
    if setup is not None and setup.strategy != LAYERED:
        return strategy_snippet(setup, model, settings.system_prompt, _model(model))
    defaults = MemorySettings().to_json()
    changed = {k: v for k, v in settings.to_json().items() if v != defaults[k]}
    lines = "".join(f"\n    {name}={_literal(value)}," for name, value in changed.items())
    lines = f"{lines}\n" if lines else ""
    where, llm = _model(model)
    imports = "\n".join(
        sorted(
            {
                "from llama_index.core.agent.workflow import FunctionAgent",
                "from memory_core.memory import LayeredMemory",
                "from memory_core.settings import MemorySettings",
                where,
            }
        )
    )
    return _PROGRAM.format(imports=f"\n{imports}", settings=lines, llm=llm)


def _model(model: ModelChoice) -> tuple[str, str]:
    """Return the import of the model's class and the expression that makes it."""
    if model.kind == OFFLINE:
        return (
            "from memory_core.models.offline.llm import OfflineLLM",
            f"OfflineLLM(context_window={model.context_window})",
        )
    if model.kind == OPENAI:
        return (
            "from llama_index.llms.openai import OpenAI",
            f"OpenAI(model={model.model!r})  # reads OPENAI_API_KEY",
        )
    url = model.base_url if model.kind != LOCAL else "http://127.0.0.1:8080/v1"
    like = (
        f"OpenAILike(\n    model={model.model!r},\n    api_base={url!r},\n"
        f'    api_key=os.environ.get("OPENAI_LIKE_API_KEY", "none"),\n'
        f"    context_window={model.context_window},\n    is_chat_model=True,\n"
        f"    is_function_calling_model={model.function_calling},\n)"
    )
    return "import os\nfrom llama_index.llms.openai_like import OpenAILike", like


def _literal(value: object) -> str:
    return pformat(value, width=80, sort_dicts=False)
