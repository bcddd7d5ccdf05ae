#!/bin/sh
# Install missing packages, create the virtual environment, and build the engine, the FastCGI responder and
# the program of disks with a model.
# Run by `make setup`; safe to repeat.
#
#   scripts/setup.sh          to run Weighbridge
#   scripts/setup.sh test     also to test it: linters, a browser, independent load generators
#
# VENV (.venv), CARGO_TARGET_DIR and pip's own cache settings are respected.
set -eu
cd "$(dirname "$0")/.."
purpose=${1:-run}
venv=${VENV:-.venv}
least_rust=1.85 # required by the engine's pyo3 and its edition

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 2; }
lacks() { ! command -v "$1" >/dev/null 2>&1 && ! [ -x "/usr/sbin/$1" ] && ! [ -x "/sbin/$1" ]; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1; then sudo "$@"
  else fail "needs root to run: $*"; fi
}

# at_least HAVE WANT: whether the dotted version HAVE is at least WANT
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

rust_is_enough() {
  # Ubuntu's versioned toolchains put no rustc and no cargo into the PATH, but into a folder of their own.
  for folder in /usr/lib/rust-*/bin; do
    case :$PATH: in *:$folder:*) ;; *) ! [ -x "$folder/rustc" ] || PATH="$PATH:$folder" ;; esac
  done
  command -v cargo >/dev/null 2>&1 && command -v rustc >/dev/null 2>&1 &&
    at_least "$(rustc --version 2>/dev/null | cut -d' ' -f2)" "$least_rust"
}

wanted=""
# Packages for single tests that this release does not have, a line each, below what they were looked for in: they are not
# looked for again there, and tests that need them are skipped.
sources=$(cat /etc/os-release /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | cksum)
absent=""
if [ "$(head -n 1 "$venv/.setup-absent" 2>/dev/null)" = "$sources" ]; then
  absent=$(sed 1d "$venv/.setup-absent" | tr '\n' ' ')
fi
# want COMMAND PACKAGE; two commands may be in one package
want() { case "$wanted $absent " in *" $2 "*) ;; *) lacks "$1" && wanted="$wanted $2" ;; esac; return 0; }

want runc runc
want mmdebstrap mmdebstrap
want ip iproute2
want tc iproute2
want nsenter util-linux
want setpriv util-linux
want mkfs.xfs xfsprogs
want gpg gpg
want ssh openssh-client
want cc gcc
[ -e /usr/include/features.h ] || wanted="$wanted libc6-dev" # gcc links with it, the responder statically
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || wanted="$wanted debian-archive-keyring"
[ -e /usr/share/distro-info/ubuntu.csv ] || wanted="$wanted distro-info-data" # mmdebstrap knows Ubuntu's suites by it
# The engine is built for Python's stable ABI and does not need python3-dev.
needed=$wanted # to run at all; what follows is for single tests
if [ "$purpose" = test ]; then
  want wrk wrk
  want curl curl
  want git git
  want chromium chromium
  want chromedriver chromium-driver
  want soffice libreoffice-impress
  want pdftoppm poppler-utils
  # Slides use Arial: without a font of the same metrics, lines break differently here.
  fc-list ':family=Liberation Sans' 2>/dev/null | grep -q . || wanted="$wanted fonts-liberation"
  # Decks are also shown without Arial and its like: then in this one.
  fc-list ':family=DejaVu Sans' 2>/dev/null | grep -q . || wanted="$wanted fonts-dejavu-core"
  want victoria-metrics victoria-metrics
  want influxd influxdb
  want haproxy haproxy
fi

# The packages of a recent Rust toolchain, tried in this order: Debian's default, Debian's for browsers (where the
# default is older), Ubuntu's versioned ones.
rust_packages() {
  for names in "rustc cargo rust-clippy rustfmt" \
               "rustc-web cargo-web rust-web-clippy rustfmt-web" \
               "rustc-1.89 cargo-1.89 rust-1.89-clippy rustfmt-1.89" \
               "rustc-1.85 cargo-1.85 rust-1.85-clippy rustfmt-1.85"; do
    set -- $names
    version=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
    case $version in ""|"(none)") continue ;; esac
    if at_least "$version" "$least_rust"; then
      if [ "$purpose" = test ]; then echo "$names"; else echo "$1 $2"; fi
      return 0
    fi
  done
  return 1
}

rust_lacking=no
rust_is_enough || rust_lacking=yes
if [ "$purpose" = test ] && ! { cargo clippy --version && cargo fmt --version; } >/dev/null 2>&1; then rust_lacking=yes; fi

python_wanted=""
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then python_wanted="python3 python3-venv"; fi

install() {
  say "installing $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends "$@" >/dev/null
}

if [ -n "$wanted$python_wanted" ] || [ "$rust_lacking" = yes ]; then
  command -v apt-get >/dev/null 2>&1 || fail "missing:$wanted $python_wanted (Rust >= $least_rust missing: \
$rust_lacking), and there is no apt-get: install them with this system's package manager and run this again"
  say "updating the package lists"
  as_root apt-get update -qq
  if [ "$rust_lacking" = yes ]; then
    rust=$(rust_packages) ||
      fail "no package of this release has Rust >= $least_rust; install it (with rustup) and run this again"
    wanted="$wanted $rust"
  fi
  # One unknown name, and apt-get installs nothing.
  there=""
  for name in $wanted; do
    case $(apt-cache policy "$name" 2>/dev/null | sed -n 's/^ *Candidate: //p') in
      ""|"(none)")
        case " $needed " in *" $name "*) fail "this release has no package $name, which is needed" ;; esac
        say "this release has no package $name: tests that need it are skipped"
        absent="$absent $name" ;;
      *) there="$there $name" ;;
    esac
  done
  wanted=$there
  # shellcheck disable=SC2086
  [ -z "$python_wanted" ] || install $python_wanted
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "needs Python >= 3.11; this is $(python3 --version)"

# One stamp per purpose, of everything the result depends on, so that a second `make compare` starts at once.
stamp="$venv/.setup-$purpose"
responder=gateways/apache/responder
vdisk=topologies/lab/vdisk
lock=requirements.lock
[ "$purpose" != test ] || lock=requirements-test.lock
now=$(cat pyproject.toml "$lock" Cargo.toml Cargo.lock drivers/engine/Cargo.toml drivers/engine/src/*.rs \
  drivers/engine/src/*/*.rs $responder/Cargo.toml $responder/src/*.rs $vdisk/Cargo.toml $vdisk/src/*.rs | cksum)-$(pwd)
# A run records the version of the code that makes it, which has the commit in it.
commit=$(git rev-parse HEAD 2>/dev/null || true)
stale=no
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$now" ] || ! ls drivers/engine/_native*.so >/dev/null 2>&1; then stale=yes; fi
if ! [ -x gateways/apache/fastcgi_responder ] || ! [ -x topologies/lab/vdisk_server ]; then stale=yes; fi

build_vdisk() { cargo build --quiet --release --manifest-path $vdisk/Cargo.toml >/dev/null 2>&1 || true; }
# It needs no Python: where nothing is to be installed first, it is begun while the virtual environment is created, which
# takes one CPU some seconds.
building=""
if [ "$stale" = yes ] && [ -z "$wanted" ] && rust_is_enough; then
  build_vdisk &
  building=$!
fi
if ! [ -x "$venv/bin/python" ]; then
  say "creating the virtual environment $venv"
  python3 -m venv "$venv"
fi
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }

# Python packages are downloaded while system packages are installed.
fetching=""
if [ "$stale" = yes ]; then
  say "installing Python packages into $venv"
  # Modules are compiled when they are first imported: most never are. Those of load generators are imported at every
  # start, in hosts that cannot write here, and take three seconds to compile.
  {
    pip install --no-compile --require-hashes --requirement "$lock" &&
      "$venv/bin/python" -c "import locust, locust.contrib.fasthttp, pydantic, rich.console"
  } &
  fetching=$!
fi
# shellcheck disable=SC2086
[ -z "$wanted" ] || install $wanted
if ! rust_is_enough; then
  version=$(rustc --version 2>/dev/null) ||
    fail "needs Rust >= $least_rust; $(command -v rustc || echo rustc) does not run (rustup without a toolchain?): \
repair it, or put another first in PATH"
  fail "needs Rust >= $least_rust; this is $version ($(command -v rustc))"
fi

# The Rust parts take longer than the Python packages: both at once, with the flags that pip's build below uses, which
# then has little left to do. It says what is wrong if this fails.
if [ "$stale" = yes ]; then
  say "building the engine, the FastCGI responder and the disks' program (a minute or two)"
  python=$(cd "$venv" && pwd)/bin/python
  [ -z "$building" ] || wait "$building"
  build_vdisk # at once, if it was built
  {
    PYO3_PYTHON=$python PYTHON_SYS_EXECUTABLE=$python PYO3_BUILD_EXTENSION_MODULE=1 cargo rustc --quiet --release --lib \
      --crate-type cdylib --features "python pyo3/extension-module" --manifest-path drivers/engine/Cargo.toml
    cargo build --quiet --release --manifest-path $responder/Cargo.toml \
      --config 'build.rustflags=["-C", "target-feature=+crt-static"]'
  } >/dev/null 2>&1 || true
fi
[ -z "$fetching" ] || wait "$fetching" || fail "Python packages could not be installed (see above)"

if [ "$stale" = yes ] || [ "$(cat "$venv/.setup-commit" 2>/dev/null || true)" != "$commit" ]; then
  pip install --no-build-isolation --no-deps --editable .
  printf '%s' "$now" >"$stamp"
  printf '%s' "$commit" >"$venv/.setup-commit"
fi
# shellcheck disable=SC2086
printf '%s\n' "$sources" $absent >"$venv/.setup-absent"
say "ready"
