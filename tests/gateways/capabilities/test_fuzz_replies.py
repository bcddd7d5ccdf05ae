"""Mutated lines of the program that asks: a valid reply of the right capability, or a refusal."""

from __future__ import annotations

from typing import Final

from tests.mutation import Dice, bounded, cases, wrong_json
from weighbridge.gateways.capabilities.asking import NoReply, reply_of

REPLY: Final = {
    "key": "s3-delete",
    "answer": {"outcome": "refused", "status": 501, "code": "NotImplemented", "text": "not here"},
    "alive": True,
    "left": ["wb-0123abcd-capability-3: 403 AccessDenied"],
}


@cases
def test_any_line_is_a_reply_with_harmless_text_or_refused(dice: Dice) -> None:
    line = wrong_json(dice, REPLY)
    with bounded():
        try:
            reply = reply_of(line, "s3-delete")
        except NoReply:
            return
    assert reply.key == "s3-delete"
    assert reply.answer.why.isprintable()
    assert len(reply.answer.why) < 300
