#!/bin/sh
# Build the wheel and the sdist into dist/. Run by `make wheel`, which installs what this needs.
#
# The wheel is for every Python from 3.11 on (the engine is built against the stable ABI), and for every Linux whose
# libc is at least what its programs need: auditwheel finds out, and names the wheel after it.
set -eu
cd "$(dirname "$0")/.."
bin=$(cd "${VENV:-.venv}/bin" && pwd)
rm -rf build/lib build/bdist.* build/temp.* dist # else modules that are gone would come along
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/python" -m pip --quiet --disable-pip-version-check wheel --no-deps --no-build-isolation --wheel-dir "$work" .
PATH="$bin:$PATH" auditwheel repair --wheel-dir dist "$work"/*.whl
"$bin/python" -c 'from setuptools.build_meta import build_sdist; print("dist/" + build_sdist("dist"))' | tail -n 1
