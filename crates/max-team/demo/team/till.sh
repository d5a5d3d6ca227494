. lib/total.sh
total "$@"
