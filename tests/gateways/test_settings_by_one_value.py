"""Settings that a tuning sets by a single value: words of `rgw_frontends`, lines of HAProxy."""

import pytest
from pydantic import ValidationError

from weighbridge.gateways.haproxy.front import HaproxySettings
from weighbridge.gateways.rgw.config import frontend
from weighbridge.gateways.rgw.settings import RadosgwSettings


def test_further_words_of_the_front_end_come_last() -> None:
    settings = {"frontend_options": {"request_timeout_ms": 0, "max_connection_backlog": 128}}
    assert frontend(RadosgwSettings.model_validate(settings), "10.0.0.1", 8000) == (
        "beast endpoint=10.0.0.1:8000 tcp_nodelay=1 request_timeout_ms=0 max_connection_backlog=128"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"frontend_options": {"request_timeot_ms": 0}},
            "beast has no 'request_timeot_ms' .did you mean 'request_timeout_ms'",
        ),
        (
            {"frontend": "civetweb", "frontend_options": {"max_connection_backlog": 1}},
            "civetweb has no 'max_connection_backlog'",
        ),
        ({"frontend_options": {"port": 80}}, "beast has no 'port'"),
        ({"frontend_options": {"request_timeout_ms": "0, beast"}}, "'0, beast' is not one word"),
        ({"frontend_options": {"request_timeout_ms": ""}}, "'' is not one word"),
    ],
)
def test_words_that_the_front_end_does_not_know_are_refused(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        RadosgwSettings.model_validate(settings)


def test_a_single_line_of_haproxy_needs_no_list() -> None:
    settings = HaproxySettings.model_validate(
        {"options": {"backend": "option http-no-delay", "defaults": ["a b", "c"]}}
    )
    assert settings.options == {"backend": ("option http-no-delay",), "defaults": ("a b", "c")}
    with pytest.raises(ValidationError, match="not one line"):
        HaproxySettings.model_validate({"options": {"backend": "a\nb"}})
    with pytest.raises(ValidationError, match="valid dictionary"):
        HaproxySettings.model_validate({"options": "option http-no-delay"})
