. tests/expect.sh
expect "2024" "2024 is a leap year" "$(sh leap.sh 2024)"
expect "2023" "2023 is no leap year" "$(sh leap.sh 2023)"
