# next_hour HH: the hour after it.
next_hour() {
    echo $(( ($1 + 1) % 24 ))
}
