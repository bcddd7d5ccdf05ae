"""The list of attacks names tests that exist, whatever these are renamed to."""

import importlib.util
import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_attack_names_a_test_that_exists() -> None:
    spec = importlib.util.spec_from_file_location("attacks", TESTS / "system" / "attacks.py")
    assert spec is not None
    assert spec.loader is not None
    attacks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(attacks)
    targets = " ".join(attacks.ATTACKS.values()).split()
    assert targets
    for target in targets:
        file, _, name = target.partition("::")
        tests = re.findall(r"^def (test_\w+)", (TESTS / file).read_text(), re.MULTILINE)
        assert any(name.strip("*") in test for test in tests), target
