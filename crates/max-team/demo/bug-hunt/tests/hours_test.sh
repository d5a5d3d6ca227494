. lib/hours.sh
. tests/expect.sh
expect "seven" 8 "$(next_hour 07)"
expect "midnight" 0 "$(next_hour 23)"
