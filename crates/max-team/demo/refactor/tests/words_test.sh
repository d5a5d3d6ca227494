. tests/expect.sh
expect "put" "tea is in the box" "$(sh commands/put.sh tea)"
expect "take" "tea is out of the box" "$(sh commands/take.sh tea)"
expect "find" "looking for tea" "$(sh commands/find.sh tea)"
