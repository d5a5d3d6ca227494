# total ITEM...: the sum of a cart, in cents.
total() {
    sum=0
    for item in "$@"; do
        price=${item%%:*}
        sum=$((sum + price))
    done
    echo "$sum"
}
