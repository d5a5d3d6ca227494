. lib/leap.sh
if is_leap "$1"; then echo "$1 is a leap year"; else echo "$1 is no leap year"; fi
