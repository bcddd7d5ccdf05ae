"""A planned RGW and its rendered ceph.conf, without hosts."""

from dataclasses import dataclass

from weighbridge.gateways.rgw.plan import CONF
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwPlacement, RgwSettings

STORES = ("store-1", "store-2", "store-3")
PLACE = RgwPlacement(mon="store-1", osd=STORES, radosgw=("gateway-1",))


@dataclass(frozen=True)
class Spot:
    name: str
    address: str
    disks: tuple[str, ...] = ()


SITES = {
    "gateway-1": Spot("gateway-1", "10.0.0.9"),
    **{
        name: Spot(name, f"10.0.0.{index}", ("/dev/wb0", "/dev/wb1"))
        for index, name in enumerate(STORES, 1)
    },
}


def rgw(
    settings: dict[str, object] | RgwSettings | None = None,
    release: str = "ceph-16",
    **place: object,
) -> Rgw:
    where = RgwPlacement.model_validate({**PLACE.model_dump(), **place})
    return Rgw(
        release,
        where,
        settings
        if isinstance(settings, RgwSettings)
        else RgwSettings.model_validate(settings or {}),
    )


def conf(
    settings: dict[str, object] | RgwSettings, release: str = "ceph-16", **place: object
) -> dict[str, dict[str, str]]:
    text = next(
        one.text for one in rgw(settings, release, **place).render(SITES) if one.path == CONF
    )
    sections: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            sections[line[1:-1]] = current = {}
        elif line:
            name, _, value = line.partition(" =")
            current[name] = value.strip()
    return sections
