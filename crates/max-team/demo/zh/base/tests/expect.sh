# expect 名称 期望 实际：不符时说明，并结束测试。
expect() {
    [ "$2" = "$3" ] && return
    echo "$1：应为 '$2'，实际为 '$3'"
    exit 1
}
