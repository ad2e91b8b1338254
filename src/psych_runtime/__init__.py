"""Psych Runtime: durable AI agents inside your own product.

    import asyncio
    from psych_runtime import AgentSpec, ModelRef, session
    from psych_runtime.testing import FakeModel

    async def main() -> None:
        model = FakeModel().turn(text="Hello.")
        spec = AgentSpec(name="hello", instructions="Be brief.", model=ModelRef(model="any"))
        async with session(model) as s:
            print((await s.ask(spec, "Hi")).text)

    asyncio.run(main())
"""
