"""Tries every attack again that once got through, and says of each whether it is held: needs root,
images and ten minutes.

    python tests/system/attacks.py [NUMBER...]

An attack is a line here and a test in the room that it was on.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ATTACKS: Final = {
    "a measured host writes files of the conductor": (
        "topologies/test_ssh_connection.py common/test_safe_files.py"
    ),
    "a host's logs lead elsewhere": (
        "topologies/test_deployment.py::*link* system/test_lab.py::*link*"
    ),
    "a full disk, or what nobody foresaw, ends in a traceback": (
        "weighbridge/test_command.py::*nobody_foresaw* "
        "weighbridge/test_command.py::*full_disk* system/test_full_disks.py"
    ),
    "an error shows a credential": "common/test_endpoint.py drivers/locust/test_client.py",
    "a password in the place of COSBench": (
        "weighbridge/test_command.py::*password* common/test_endpoint.py"
    ),
    "a value becomes another line of a configuration file": "gateways/test_haproxy.py",
    "a received run folder leads elsewhere or never ends": "results/test_received_folder.py",
    "a lab host changes the machine": "system/test_confinement.py topologies/test_lab_host.py",
    "a host's shell prints a stray line": "topologies/test_ssh_connection.py",
    "a stranger speaks to Locust's master": "drivers/locust/test_driver_faults.py",
    "another user holds a lock": (
        "common/test_safe_files.py topologies/test_lab_cgroup.py results/run/test_store.py::*lock*"
    ),
    "a COSBench file shows secrets": "suites/test_importer.py",
    "a state file is half written": (
        "topologies/test_deployment.py::*record* weighbridge/test_run_folder_states.py"
    ),
    "`down` takes what is at work": "weighbridge/test_command.py::*down_leaves*",
    "a chart that fails costs the table": (
        "weighbridge/cli/test_results.py results/show/test_chart.py"
    ),
    "text turns its direction, forges a line, or is a formula": (
        "results/show/test_tables.py results/test_received_folder.py::*line_of_its_own*"
    ),
    "stray and endless files in COSBench's archive, a key in its logs": (
        "drivers/cosbench/test_archive.py"
    ),
    "a suite without bounds": (
        "suites/test_suite.py topologies/test_loader.py "
        "weighbridge/tuning/test_tuning_preparation.py"
    ),
    "an output replaces a record of a run": (
        "weighbridge/cli/test_results.py::*among_the_records* "
        "weighbridge/cli/test_compare_runs.py::*overwrite*"
    ),
    "an option that names nothing": "weighbridge/test_command.py",
    "packages that nobody pinned": "weighbridge/test_requirements.py topologies/test_images.py",
    "the oldest versions that are allowed": "system/test_lowest_versions.py",
    "a dead daemon that `status` lists": (
        "topologies/test_lab_host.py::*daemons_are_alive* "
        "topologies/test_ssh_daemons.py system/test_up.py "
        "system/test_ssh_around.py::*killed_conductor*"
    ),
    "a real host names a folder of the conductor to be removed": (
        "topologies/test_ssh_around.py::*label*"
    ),
    "a host's folders are too deep to be removed": (
        "common/test_safe_files.py topologies/test_lab_cgroup.py::*whatever_its_folder*"
    ),
    "a forged claim has any folder removed": "topologies/test_lab_cgroup.py::*not_a_deployments*",
    "claims and images of another user": "weighbridge/test_command.py::*somebody_else_can*",
    "a module in the working folder is imported": (
        "results/test_received_folder.py::*is_imported* results/test_received_folder.py::*python*"
    ),
    "programs inherit secrets": "gateways/test_existing.py::*programs_on_this*",
    "a refusal repeats a secret of a URL": (
        "weighbridge/test_command.py::*secret_of_a_url* results/show/test_influx.py::*invalid_url*"
    ),
    "a server's storage URL is no URL": (
        "common/test_exchange.py::*storage_url* drivers/locust/test_client.py::*storage_url*"
    ),
    "a local user fills the page of a run": "weighbridge/test_live_page.py",
    "an interrupt or a lost terminal is an internal error": (
        "common/test_cleanup.py weighbridge/test_command.py::*imports* "
        "weighbridge/test_command.py::*terminal_that*"
    ),
    "a measured host stops answering, or answers with what are no counters": (
        "weighbridge/test_line.py::*stops_answering* "
        "topologies/test_ssh_connection.py::*stops_answering* "
        "topologies/test_ssh_connection.py::*invalid_counters*"
    ),
    "a probe or a log without an end": (
        "weighbridge/conductor/test_telemetry.py::*without_an_end* "
        "topologies/test_ssh_connection.py::*hole_in_a_log*"
    ),
    "a measured host says more than it can have used": (
        "weighbridge/conductor/test_telemetry.py::*beyond_what*"
    ),
    "a key of ssh, a token or authorities that are a pipe, or never end": (
        "topologies/test_ssh_connection.py::*locked_key* results/show/test_influx.py::*never_end*"
    ),
    "a thread dies and nobody sees it": "weighbridge/test_requirements.py::*thread_that_dies*",
    "a store sends without an end, or answers nothing": (
        "weighbridge/test_line.py::*store_sends_without_an_end* "
        "gateways/capabilities/test_asking.py::*unanswered*"
    ),
    "a file of keys or authorities is a pipe": (
        "gateways/test_existing_credentials.py::*is_a_pipe* "
        "weighbridge/test_endpoint_line.py::*is_a_pipe*"
    ),
    "a driver's seconds do not agree with its tally": (
        "results/figures/test_validity.py::*than_their_tally*"
    ),
    "a COSBench file measures something else": (
        "suites/test_importer.py::*another* suites/test_importer.py::*written_for*"
    ),
    "a line of HAProxy has no effect": "gateways/test_haproxy.py::*ignores*",
    "a fact of HAProxy is not what its options say": "gateways/test_haproxy.py::*override*",
    "a profile is read by half, a Keystone's URL not known": (
        "gateways/test_existing_credentials.py::*aws_tools* "
        "gateways/test_existing_credentials.py::*keystone*"
    ),
    "a check accepts what the engine refuses": (
        "drivers/locust/test_client.py::*certificate* drivers/locust/test_client.py::*refuses* "
        "gateways/test_existing.py::*engine_would*"
    ),
    "YAML's own numbers and booleans": "common/test_document.py::*only_yaml_takes*",
    "variables that change what an SDK sends": "drivers/locust/test_client.py::*checksums_are*",
    "a store accepts a delete and keeps the bucket, or lists without an end": (
        "gateways/test_existing.py::*whatever_was* gateways/test_existing.py::*endless_list*"
    ),
    "an answer is no HTTP, no TLS that is taken, or a page of something in between": (
        "gateways/test_existing.py::*users_terms*"
    ),
    "a URL in capitals, with a zone, or percent-encoded": (
        "common/test_endpoint.py::*url* gateways/test_existing_credentials.py::*capitals*"
    ),
    "an openrc file is read by half": (
        "gateways/test_existing_credentials.py::*application* "
        "gateways/test_existing_credentials.py::*default_domain* "
        "gateways/test_existing_credentials.py::*missing*"
    ),
    "a fault of options is shown in a shipped file": ("suites/test_suite.py::*where_it_was_given*"),
    "buckets that a killed run left": (
        "weighbridge/test_line.py::*clean* system/test_existing.py::*swept*"
    ),
    "a run's name is a command when a shell completes it": "weighbridge/cli/test_files.py::*runs*",
    "an InfluxDB answers without an end, elsewhere, or with the token": (
        "results/show/test_influx.py"
    ),
    "an address that is in use, a name that is too long": "weighbridge/test_command.py::*usage*",
}
"""Where each is held: files of tests, separated by spaces, with a pattern of a test's name."""


def held(targets: list[str]) -> tuple[bool, str]:
    """Whether all its tests passed, and the last line that pytest printed; a target without a test
    is a failure.
    """
    for target in targets:
        file, _, name = target.partition("::")
        words = ["-k", name.strip("*")] if name else []
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        line = [*pytest, str(ROOT / "tests" / file), *words]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return False, f"{target}: {done.stdout.strip().splitlines()[-1]}"
    return True, ""


def main(asked: list[str]) -> int:
    through = 0
    for number, (about, targets) in enumerate(ATTACKS.items(), start=1):
        if asked and str(number) not in asked:
            continue
        good, why = held(targets.split())
        through += not good
        sys.stdout.write(
            f"{number:2}  {'held' if good else 'GOT THROUGH'}  {about}{f': {why}' if why else ''}\n"
        )
        sys.stdout.flush()
    return min(through, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
