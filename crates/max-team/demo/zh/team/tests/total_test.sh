. lib/total.sh
. tests/expect.sh
expect "三杯咖啡" 750 "$(total 250:3)"
expect "没有写数量的条目" 250 "$(total 250)"
