. tests/expect.sh
expect "by name" "Hello, Ada!" "$(sh greet.sh Ada)"
