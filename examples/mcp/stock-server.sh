#!/bin/sh
# A small MCP server: the stock of a shop. Each line of its input is one JSON-RPC message, each line of its output an answer.
orders=orders.txt

tools='{"tools":[
{"name":"stock_of","description":"How many of an item are in stock.","annotations":{"readOnlyHint":true},
"inputSchema":{"type":"object","properties":{"item":{"type":"string"}},"required":["item"]}},
{"name":"list_items","description":"The items that the shop sells.","annotations":{"readOnlyHint":true},
"inputSchema":{"type":"object","properties":{}}},
{"name":"order","description":"Orders more of an item from the supplier.","annotations":{"destructiveHint":false},
"inputSchema":{"type":"object","properties":{"item":{"type":"string"},"count":{"type":"integer"}},
"required":["item","count"]}}]}'

prompts='{"prompts":[{"name":"check","description":"Checks whether an item lasts for a week.",
"arguments":[{"name":"item","required":true}]}]}'

text() { result="{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }

value() { # the value of a key in $line: a word or a number
  found=${line#*"\"$1\":"}
  [ "$found" = "$line" ] && { found=; return; }
  found=${found#\"}
  found=${found%%[\",\}]*}
}

call() {
  value item
  case $line in
    *'"name":"list_items"'*) text "lamp, chair, desk" ;;
    *'"name":"stock_of"'*)
      case $found in
        lamp) text "lamp: 2 in stock, about 5 are sold in a week" ;;
        chair) text "chair: 40 in stock" ;;
        desk) text "desk: 7 in stock" ;;
        *) text "there is no such item: $found" ;;
      esac ;;
    *'"name":"order"'*)
      item=$found
      value count
      echo "$found x $item" >> "$orders"
      text "ordered: $found x $item, here on Thursday" ;;
    *) text "there is no such tool" ;;
  esac
}

while IFS= read -r line; do
  value id
  id=$found
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"stock","version":"1.0"}}' ;;
    *'"method":"tools/list"'*) result=$(printf '%s' "$tools" | tr -d '\n') ;;
    *'"method":"tools/call"'*) call ;;
    *'"method":"prompts/list"'*) result=$(printf '%s' "$prompts" | tr -d '\n') ;;
    *'"method":"prompts/get"'*)
      value item
      said="Does the stock of $found last for a week? If not, say how many to order."
      result="{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"$said\"}}]}" ;;
    *'"method":"resources/read"'*)
      result='{"contents":[{"uri":"shop://hours","mimeType":"text/plain","text":"Monday to Friday, 9 to 18"}]}' ;;
    *'"method":"notifications/'*) continue ;;
    *)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id"
      continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
