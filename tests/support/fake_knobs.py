"""The parameters of a made-up gateway: their values, and what each does to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weighbridge.common.structure import Scope
from weighbridge.results.run.trial import Fragment, LayoutVariant, Winner
from weighbridge.suites.tuning import Level, Parameter, Setting

BASELINE: Final = "rgw-beast"


@dataclass(frozen=True)
class Knob:
    """A parameter: its value in the layout, and how much faster each value tried makes it."""

    key: str
    was: Setting | None
    faster: Mapping[Setting, float]
    effect: str = "Made up."
    trap: str = ""
    scope: Scope = "restart"
    cpu: float = 1.0
    """CPU per operation with any of the values, relative to the baseline."""
    erring: bool = False
    """Whether requests fail with it."""
    fails: str = ""
    """Why the gateway does not start with it."""
    also: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def parameter(self) -> Parameter:
        return Parameter(
            key=self.key,
            values=tuple(Level(value=value, also=dict(self.also)) for value in self.faster),
            option=self.key.rpartition(".")[2],
            default=self.was,
            effect=self.effect,
            trap=self.trap,
            reference="made up",
        )

    @property
    def variants(self) -> tuple[LayoutVariant, ...]:
        return tuple(self._variant(value) for value in self.faster)

    def _variant(self, value: Setting) -> LayoutVariant:
        word = str(value).lower().replace(".", "-").strip("-")
        name = f"{BASELINE}-{self.key.rpartition('.')[2].replace('_', '-')}-{word}"
        return LayoutVariant(name=name[:40].strip("-"), settings={self.key: value, **self.also})


KNOBS: Final = (
    Knob("radosgw.threads", 512, {64: 1.0, 16: 0.62}, "Requests at once.", "Too few block."),
    Knob("radosgw.tcp_nodelay", was=True, faster={False: 0.71}, effect="Small answers go at once."),
    Knob("radosgw.max_concurrent_requests", 1024, {64: 1.22, 256: 1.1}, "A bound.", cpu=0.9),
    Knob("options.client.rgw_get_obj_window_size", "16MiB", {"1MiB": 0.93, "64MiB": 1.0}),
    Knob("options.client.objecter_inflight_ops", None, {256: 1.0, 4096: 1.0}),
    Knob("options.client.rgw_cache_enabled", was=None, faster={False: 0.55}, cpu=1.6),
    Knob("radosgw.ops_log", was=False, faster={True: 0.985}, cpu=1.05),
    Knob("radosgw.gc.processor_period", 3600, {600: 1.0}, "None: the dummy.", scope="nothing"),
    Knob("radosgw.index_shards", 11, {1: 1.0, 64: 0.96}, scope="buckets"),
    Knob("radosgw.chunk", "4MiB", {"1MiB": 1.0}, scope="buckets", also={"radosgw.stripe": "1MiB"}),
    Knob("radosgw.request_timeout_ms", 65000, {5: 1.3}, trap="Cuts slow clients.", erring=True),
    Knob(
        "radosgw.frontend_backlog",
        None,
        {-1: 1.0},
        fails="radosgw on gateway-1 ended with 22: invalid argument",
    ),
)
FEW: Final = KNOBS[1:3]
"""One that harms and one that helps: enough for a winner, and soon measured and judged."""


def knob_of(variant: LayoutVariant, knobs: Sequence[Knob]) -> Knob | None:
    """The knob that a setting turns; None for the baseline."""
    return next((knob for knob in knobs if knob.key in variant.settings), None)


def winner_of(knobs: Sequence[Knob], variants: Sequence[LayoutVariant]) -> Winner | None:
    """The best values of all knobs that make the gateway faster and break nothing."""
    settings: dict[str, Setting] = {}
    for variant in variants:
        knob = knob_of(variant, knobs)
        if knob is None or knob.erring or knob.fails:
            continue
        best = max(knob.faster, key=lambda value: knob.faster[value])
        if knob.faster[best] > 1.05 and variant.settings[knob.key] == best:
            settings |= variant.settings
    if not settings:
        return None
    lines = [
        f"rgw {key.rpartition('.')[2].replace('_', ' ')} = {value}"
        for key, value in settings.items()
    ]
    text = "\n".join(("# Made up, with the evidence above each line.", "[client]", *lines, ""))
    return Winner(
        arm=LayoutVariant(name=f"{BASELINE}-tuned", settings=settings),
        reason=f"The best value of each setting that is better: {', '.join(settings)}.",
        fragments=(Fragment(name="ceph.conf", text=text),),
    )
