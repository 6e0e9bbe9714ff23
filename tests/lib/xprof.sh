# SPDX-License-Identifier: GPL-2.0-or-later
#
# What end-to-end tests do with xprof, on top of tap.sh.
#
#   record FILE ARGUMENT...      records quietly; status in $status, messages in $tmp/err, the command's
#                                output in $tmp/out
#   folded FILE                  the folded report into FILE.folded; its path in $stacks
#   samples [PATTERN]            samples of $stacks whose folded line matches an awk pattern
#   with_frame NAME              samples that have this frame anywhere
#   with_leaf NAME               ... as the leaf
#   unknown                      samples with a frame "[unknown]"; while exec replaces a process its user
#                                registers lead nowhere, so those do not count
#   truncated                    samples with a mark "[truncated: ...]"
#   complete_enough NAME [PERCENT]   checks that the share of whole stacks is at least 99.5 %

. "$(dirname "$0")/../lib/tap.sh"

folded_awk='
function split_line(line) {
	count = line; sub(/^.* /, "", count)
	stack = line; sub(/ [0-9]+$/, "", stack)
	depth = split(stack, frame, ";")
}
'

record()
{
	record_file=$1
	shift
	run "$XPROF" record -q -o "$record_file" "$@"
}

folded()
{
	stacks=$1.folded
	"$XPROF" report -i "$1" --folded >"$stacks" 2>"$tmp/report.err" </dev/null
	report_status=$?
}

samples()
{
	awk "$folded_awk"' '"${1:-1}"' { split_line($0); n += count } END { print n + 0 }' "$stacks"
}

with_frame()
{
	FRAME=$1 awk "$folded_awk"' {
		split_line($0)
		for (i = 2; i <= depth; i++)
			if (frame[i] == ENVIRON["FRAME"]) { n += count; break }
	} END { print n + 0 }' "$stacks"
}

with_leaf()
{
	FRAME=$1 awk "$folded_awk"' {
		split_line($0)
		if (frame[depth] == ENVIRON["FRAME"]) n += count
	} END { print n + 0 }' "$stacks"
}

unknown()
{
	samples '/;\[unknown\]/ && !/execve/'
}

truncated()
{
	samples '/;\[truncated: /'
}

# Says which reasons cut how many stacks, for a failed check.
truncated_reasons()
{
	awk "$folded_awk"' {
		split_line($0)
		if (match($0, /\[truncated: [^]]*\]/))
			n[substr($0, RSTART, RLENGTH)] += count
	} END { for (r in n) print n[r], r }' "$stacks"
}

complete_enough()
{
	local all cut
	all=$(samples)
	cut=$(truncated)
	if [ "$all" -lt 50 ]; then
		ok 1 "$1: enough samples"
		diag "only $all samples; $(cat "$tmp/err")"
		return
	fi
	cmp_num "$cut * 100" "<=" "$all * (100 - ${2:-99.5})" "$1: ${2:-99.5} % of stacks are whole" ||
		true
	[ "$cut" = 0 ] || diag "$1: $cut of $all cut: $(truncated_reasons | tr '\n' ' ')"
}
