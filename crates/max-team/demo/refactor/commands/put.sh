if [ -z "${1-}" ]; then
    echo "ERROR - put what?"
    exit 1
fi
echo "$1 is in the box"
