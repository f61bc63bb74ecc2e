"""How many messages do many wishes become? Enough that every free worker finds one, and no more."""

from __future__ import annotations

import time
from collections.abc import Callable

from autoxrd.jobs.celery_queue import QUEUED_AT_MOST, Broker, Nudger

from .servers import Redis


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_a_burst_of_wishes_fills_the_queue_and_no_wish_is_forgotten(redis_server: Redis) -> None:
    broker = Broker(redis_server.url)
    nudger = Nudger(broker)
    nudger.start()
    for name in ("light", "engine"):
        nudger.nudge(name)
    assert eventually(lambda: broker.waiting(["light", "engine"]) == {"light": 1, "engine": 1})
    for _ in range(3):
        nudger.nudge()
    assert eventually(lambda: broker.waiting(["light"])["light"] == 4), "one message each while there are few"
    for _ in range(500):
        nudger.nudge()
    assert eventually(lambda: broker.waiting(["light"])["light"] == QUEUED_AT_MOST)
    nudger.nudge("model")
    nudger.stop()
    assert broker.waiting(["light", "model"]) == {"light": QUEUED_AT_MOST, "model": 1}, "sent before the end"


def test_a_wish_that_redis_cannot_take_breaks_nothing(redis_server: Redis) -> None:
    broker = Broker(redis_server.url)
    nudger = Nudger(broker)
    nudger.start()
    redis_server.stop()
    nudger.nudge()
    time.sleep(0.2)
    redis_server.start()

    def taken() -> bool:
        nudger.nudge()
        return broker.waiting(["light"])["light"] > 0

    assert eventually(taken)
    nudger.stop()
