. tests/expect.sh
expect "all notes" "buy milk
call Ada
milk the cow" "$(NOTES=tests/sample.txt sh notes.sh list)"
