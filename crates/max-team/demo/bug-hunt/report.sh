. lib/hours.sh
next=$(next_hour "$1") || exit 1
echo "next report at $next:00"
