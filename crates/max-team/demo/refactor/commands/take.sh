if [ -z "${1-}" ]; then
    echo "take: missing name!!" >&2
    exit 3
fi
echo "$1 is out of the box"
