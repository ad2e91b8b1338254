"""How hard property tests try: the same few examples every time, more with another profile.

`--hypothesis-profile=long -o faulthandler_timeout=0` tries harder by as much as the profile's
`max_examples` is more than Hypothesis' default, takes other examples in each run, and makes a
failing one small. Without it a failure is told as it was found, at once.
"""

from typing import Final

from hypothesis import HealthCheck, Phase, settings

__all__ = ["effort"]

_DEFAULT_EXAMPLES: Final = 100


def effort(examples: int, *, steps: int = 50) -> settings:
    """Return settings for `examples` examples, machines of at most `steps` steps each."""
    factor = max(1, settings().max_examples // _DEFAULT_EXAMPLES)
    phases = [Phase.explicit, Phase.generate]
    return settings(
        max_examples=examples * factor,
        stateful_step_count=steps,
        derandomize=factor == 1,
        database=None,
        deadline=None,
        phases=phases if factor == 1 else [*phases, Phase.shrink],
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
