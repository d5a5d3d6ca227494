# Runs every test; exit 1 if one fails.
failed=0
for test in tests/*_test.sh; do
    if sh "$test"; then
        echo "ok   $test"
    else
        echo "FAIL $test"
        failed=1
    fi
done
exit $failed
