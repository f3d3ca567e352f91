# The bash of a context: runs one request after the other in a shell that keeps its variables,
# functions and directory. Requests and frames are as in context.py. Our descriptors are not open
# while a command runs; SIGINT makes the sourced command return.
exec 200<&0 201>&1 202>&2 </dev/null
unset BASH_EXECUTION_STRING
__holt_end() {
	local rc=$? LC_ALL=C cwd=$PWD body
	[ -n "$__holt_token" ] || return "$rc"
	cwd=${cwd//\\/\\\\}
	cwd=${cwd//\"/\\\"}
	cwd=${cwd//[[:cntrl:]]/?}
	body="{\"count\":$__holt_count,\"exitCode\":$rc,\"cwd\":\"$cwd\"}"
	((${#body} <= 4000)) || body="{\"count\":$__holt_count,\"exitCode\":$rc}"
	printf '\x1e%se0000' "$__holt_token" >&202
	printf '\x1e%se%04x%s' "$__holt_token" "${#body}" "$body" >&201
	__holt_token=
	return "$rc"
}
__holt_size() {
	local LC_ALL=C
	__holt_length=${#1}
}
__holt_count=0 __holt_token= __holt_rc=0
trap __holt_end EXIT
while IFS= read -r -d '' -u 200 __holt_code; do
	__holt_head=${__holt_code%%$'\n'*}
	read -r __holt_word __holt_next __holt_want __holt_mode <<<"$__holt_head"
	if [[ $__holt_word == mark ]]; then
		printf '\x1e%sm0000' "$__holt_next" >&201
		continue
	fi
	__holt_code=${__holt_code#*$'\n'}
	__holt_size "$__holt_code"
	[[ $__holt_word == run && $__holt_length == "$__holt_want" ]] || continue
	__holt_token=$__holt_next
	((++__holt_count))
	trap 'return 130' INT
	(exit "$__holt_rc") # what $? says first
	source /dev/fd/63 63<<<"$__holt_code" 200<&- 201>&- 202>&-
	__holt_end
	__holt_rc=$?
	trap '' INT
done
