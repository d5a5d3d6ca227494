# expect WHAT WANTED GOT: says what is wrong and ends the test.
expect() {
    [ "$2" = "$3" ] && return
    echo "$1: wanted '$2', got '$3'"
    exit 1
}
