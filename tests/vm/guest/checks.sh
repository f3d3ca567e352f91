# For jobs that are shell: each check prints `ok 1 ...` or `failed 1 ...`.
# shellcheck shell=bash
holt=$HOLT_BUILD/holt

check() { # what, wanted exit status, pattern in the output, command...
	local what=$1 want=$2 pattern=$3 out rc
	shift 3
	out=$("$@" 2>&1)
	rc=$?
	case $rc:$out in
	$want:*$pattern*) echo "ok 1 $what" ;;
	*) echo "failed 1 $what: ended with $rc: $out" ;;
	esac
}

check_not() { # what, pattern that must not be in the output, command...
	local what=$1 pattern=$2 out
	shift 2
	out=$("$@" 2>&1)
	case $out in
	*$pattern*) echo "failed 1 $what: $out" ;;
	*) echo "ok 1 $what" ;;
	esac
}
