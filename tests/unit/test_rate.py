"""How the token bucket and the back-off space things out."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavetank.kube.rate import Backoff, TokenBucket
from wavetank.testing.virtual_time import run_in_virtual_time


def test_a_burst_goes_through_and_the_rest_keeps_to_the_rate_in_order() -> None:
    passed: list[tuple[int, float]] = []

    async def taker(bucket: TokenBucket, number: int) -> None:
        await bucket.take()
        passed.append((number, asyncio.get_running_loop().time()))

    async def main() -> None:
        bucket = TokenBucket(rate=10, burst=3)
        await asyncio.gather(*(taker(bucket, number) for number in range(7)))

    run_in_virtual_time(main())

    assert [number for number, _ in passed] == list(range(7))
    assert [at for _, at in passed] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3, 0.4])


def test_a_quiet_time_fills_the_bucket_but_not_beyond_the_burst() -> None:
    async def main() -> list[float]:
        bucket = TokenBucket(rate=1, burst=2)
        for _ in range(2):
            await bucket.take()
        await asyncio.sleep(3600)
        return [await bucket.take() for _ in range(4)]

    assert run_in_virtual_time(main()) == pytest.approx([0, 0, 1, 1])


@given(
    takers=st.integers(1, 200),
    rate=st.floats(0.5, 500),
    burst=st.integers(1, 50),
)
def test_no_window_sees_more_than_the_burst_and_the_rate_allow(
    takers: int, rate: float, burst: int
) -> None:
    moments: list[float] = []

    async def taker(bucket: TokenBucket) -> None:
        await bucket.take()
        moments.append(asyncio.get_running_loop().time())

    async def main() -> None:
        bucket = TokenBucket(rate, burst)
        await asyncio.gather(*(taker(bucket) for _ in range(takers)))

    run_in_virtual_time(main())

    assert moments[-1] >= (takers - burst) / rate - 1e-6


@given(failures=st.integers(1, 10_000), draw=st.floats(0, 1))
def test_a_delay_lies_in_the_upper_half_of_its_range_however_many_failures(
    failures: int, draw: float
) -> None:
    delay = Backoff(first_seconds=1, most_seconds=60).delay(failures, lambda: draw)

    full = min(60.0, 2.0 ** min(failures - 1, 20))
    assert full / 2 <= delay <= full


@pytest.mark.parametrize(("rate", "burst"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_a_bucket_that_could_never_give_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        TokenBucket(rate, burst)
