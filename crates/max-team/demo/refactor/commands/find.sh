[ -n "${1-}" ] || exit 1
echo "looking for $1"
