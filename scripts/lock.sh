#!/bin/sh
# Update requirements.lock (to run), requirements-history.lock (what `history` needs besides), requirements-test.lock
# (also to test) and requirements-docs.lock (only the site): every Python package with its version and hashes, as
# pyproject.toml's ranges resolve today, for all platforms and without addresses. Run by `make lock`.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip --quiet --disable-pip-version-check install 'uv>=0.5'
# The package itself is built without isolation, so its build requirements are locked as well.
"$python" -c '
import pathlib, tomllib
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
print("\n".join(project["build-system"]["requires"]))' >"$work/build.in"
for extra in docs history; do
  "$python" -c '
import pathlib, sys, tomllib
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
print("\n".join(project["project"]["optional-dependencies"][sys.argv[1]]))' $extra >"$work/$extra.in"
done

lock() { # lock FILE WHAT...
  out=$1
  shift
  "$python" -m uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --no-annotate \
    --no-emit-index-url --no-emit-find-links --python-version 3.11 --output-file "$out" "$@"
}
lock requirements-test.lock --extra test pyproject.toml "$work/build.in"
lock requirements.lock --extra all --constraint requirements-test.lock pyproject.toml "$work/build.in"
lock requirements-history.lock --constraint requirements-test.lock "$work/history.in"
lock requirements-docs.lock "$work/docs.in"
