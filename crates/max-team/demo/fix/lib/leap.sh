# is_leap YEAR: whether it has a 29th of February.
is_leap() {
    [ $(($1 % 4)) -eq 0 ]
}
