# notes.sh add WORDS | list
file=${NOTES:-notes.txt}
case ${1-} in
    add)
        shift
        echo "$*" >> "$file" ;;
    list)
        while read -r line; do echo "$line"; done < "$file" ;;
    *)
        echo "usage: notes.sh add WORDS | list" >&2
        exit 2 ;;
esac
