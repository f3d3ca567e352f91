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
# The first $1 bytes of the code are not of it: they become the head.
__holt_cut() {
	local LC_ALL=C
	__holt_head=${__holt_code:0:$1}
	__holt_code=${__holt_code:$1}
}
# A run's own variables: $1 has them as lines; __holt_undo says what they were before.
__holt_set() {
	local line name value was
	__holt_undo=
	while IFS= read -r line; do
		name=${line%%=*}
		printf -v value %b "${line#*=}"
		if [[ -v $name ]]; then
			was=$(declare -p "$name")
			__holt_undo+="unset $name; ${was/#declare/declare -g}"$'\n'
		else
			__holt_undo+="unset $name"$'\n'
		fi
		export "$name=$value" 2>/dev/null
	done <<<"${1%$'\n'}"
}
__holt_count=0 __holt_token= __holt_rc=0
trap __holt_end EXIT
while IFS= read -r -d '' -u 200 __holt_code; do
	__holt_head=${__holt_code%%$'\n'*}
	read -r __holt_word __holt_next __holt_want __holt_mode __holt_env <<<"$__holt_head"
	if [[ $__holt_word == mark ]]; then
		__holt_head="{\"count\":$__holt_count}"
		printf '\x1e%sm%04x%s' "$__holt_next" "${#__holt_head}" "$__holt_head" >&201
		continue
	fi
	__holt_code=${__holt_code#*$'\n'}
	__holt_size "$__holt_code"
	[[ $__holt_word == run && $__holt_length == "$__holt_want" ]] || continue
	__holt_token=$__holt_next
	((++__holt_count))
	__holt_undo=
	if [[ $__holt_env ]]; then
		__holt_cut "$__holt_env"
		__holt_set "$__holt_head"
	fi
	trap 'return 130' INT
	(exit "$__holt_rc") # what $? says first
	source /dev/fd/63 63<<<"$__holt_code" 200<&- 201>&- 202>&-
	__holt_end
	__holt_rc=$?
	[[ -z $__holt_undo ]] || eval "$__holt_undo" 2>/dev/null
	trap '' INT
done
