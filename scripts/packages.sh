# Sourced by other scripts: installs what building needs and this machine lacks, from the packages of Debian or Ubuntu.

say() { printf '\n== %s\n' "$*"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

install_packages() {
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing: $*; install what provides it, then start this script again" >&2
    exit 1
  fi
  say "installing $*"
  [ -n "${apt_updated:-}" ] || { as_root apt-get update -qq; apt_updated=1; }
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

need_package() { # command, package
  command -v "$1" >/dev/null 2>&1 || install_packages "$2"
}

# Debian has `rustup` since version 13; before, it comes from rustup.rs. Cargo then installs the version in `rust-toolchain.toml`.
need_rust() {
  PATH="$PATH:$HOME/.cargo/bin"
  command -v cargo >/dev/null 2>&1 && return
  install_packages ca-certificates curl
  if [ -n "$(apt-cache search --names-only '^rustup$')" ]; then
    install_packages rustup
  else
    say "installing rustup from https://rustup.rs"
    curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y -q --profile minimal --default-toolchain none
  fi
}

# A C compiler with the headers of the C library, git and Rust.
need_build_tools() {
  command -v cc >/dev/null 2>&1 || install_packages gcc libc6-dev
  need_package git git
  need_rust
}
