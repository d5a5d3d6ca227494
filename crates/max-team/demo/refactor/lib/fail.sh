# fail WORDS: what went wrong, and the end.
fail() {
    echo "box: $1" >&2
    exit 2
}
