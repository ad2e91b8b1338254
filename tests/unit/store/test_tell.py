"""When other processes are told (R-1)."""

import asyncio

from psych_runtime.errors import StoreUnavailable
from psych_runtime.store._notices import News
from psych_runtime.store.sql._tell import Teller

ONE = ("acme", "one")
TWO = ("acme", "two")


class Told:
    """What was told, each message when it is let."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self.fails = False

    async def tell(self, news: News) -> None:
        self.news.append(news)
        if self.fails:
            raise StoreUnavailable(problem="away")


async def test_r_1_what_happens_meanwhile_goes_with_the_next_message() -> None:
    """The first at once, the last when the handle is closed; nothing is said twice."""
    told = Told()
    teller = Teller(told.tell)
    teller.add(News({ONE: 1}, over=frozenset(), work=True))
    await asyncio.sleep(0)
    teller.add(News({ONE: 2}, over=frozenset()))
    teller.add(News({TWO: 5}, {ONE: 2}, frozenset({TWO})))
    teller.add(News({ONE: 3}, over=frozenset()))
    await teller.stop()
    assert told.news == [
        News({ONE: 1}, {}, frozenset(), work=True),
        News({ONE: 3, TWO: 5}, {ONE: 2}, frozenset({TWO}), work=False),
    ]


async def test_r_1_no_news_is_no_message() -> None:
    """A commit that was refused tells nobody."""
    told = Told()
    teller = Teller(told.tell)
    teller.add(News({}, over=frozenset()))
    await teller.stop()
    assert told.news == []


async def test_r_1_a_message_that_is_lost_is_not_sent_again() -> None:
    """It is a hint; the next goes all the same."""
    told = Told()
    told.fails = True
    teller = Teller(told.tell)
    teller.add(News({ONE: 1}, over=frozenset()))
    await asyncio.sleep(0)
    teller.add(News({ONE: 2}, over=frozenset()))
    await teller.stop()
    assert [news.heads for news in told.news] == [{ONE: 1}, {ONE: 2}]
