. lib/total.sh
. tests/expect.sh
expect "three coffees" 750 "$(total 250:3)"
expect "one without a count" 250 "$(total 250)"
