#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Stacks of Ruby reach their outermost function and Ruby frames their place among native ones: every shape
# of program, with the interpreter and with YJIT. What cannot be joined is a switch of fibers, is marked
# and is rare.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
: "${RUBY:=ruby3.1}"
need_program "$RUBY"
shapes=$here/../workloads/ruby/shapes.rb

# attach SHAPE [OPTION]: records the running program
attach()
{
	local tries=0
	: >"$tmp/ready"
	spawn "$RUBY" --disable-gems $2 "$shapes" "$1" >"$tmp/ready"
	while [ ! -s "$tmp/ready" ] && [ $tries -lt 100 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	record "$tmp/data" -F 997 -d 0.8 -p $spawned
	kill -KILL $spawned
	is "$status" 0 "$label: status" || diag "$err"
	folded "$tmp/data"
}

# Where a stack begins: glibc's start of a thread has no symbol.
roots_awk='
function root(first) {
	if (first == "_start")
		return "native"
	if (first ~ /^(start_thread|clone3?|\[libc\.so\.6\+0x[0-9a-f]+\])$/)
		return "native"
	return "other"
}
'

# whole LABEL: all samples begin where a thread does, 99.5 % of them
whole()
{
	cmp_num "$(awk "$folded_awk $roots_awk"' { split_line($0); n += count; good += count * (root(frame[2]) == "native") }
		END { print good + 0, "*", 100 / (n ? n : 1) }' "$stacks")" ">=" 99.5 "$1: stacks begin where their thread does" ||
		diag "$(cut -d';' -f2 "$stacks" | sort | uniq -c | sort -rn | head -5)"
}

# have_ruby LABEL: all stacks have Ruby frames; a thread that has just been made has none yet
have_ruby()
{
	cmp_num "$(samples '!/;(<main>|block |Object#|Enumerator|\(garbage)/') * 200" "<=" "$(samples)" \
		"$1: stacks have Ruby frames" ||
		diag "$(grep -vE ';(<main>|block |Object#|Enumerator|\(garbage)' "$stacks" | head -2)"
}

# joined LABEL: every stack has Ruby frames, nothing unmerged
joined()
{
	is "$(samples '/\[unmerged: /')" 0 "$1: every Ruby frame is placed by address" ||
		diag "$(grep '\[unmerged: ' "$stacks" | head -2)"
	have_ruby "$1"
}

# switches LABEL: only switches of fibers are unmerged or cut, and not many. The switch itself has no unwind
# information: a sample in it is cut there, whichever fiber's frames the thread had.
switches()
{
	local all marked switch='/\[unmerged: fiber switch\]|\[truncated: no unwind information\];coroutine_transfer[; ]/'
	all=$(samples)
	marked=$(samples "$switch")
	is "$(samples '/\[unmerged: / && !/\[unmerged: fiber switch\]/')" 0 "$1: only fiber switches are unmerged"
	is "$(samples "/\[truncated: / && !$switch")" 0 "$1: only fiber switches are cut" ||
		diag "$(grep '\[truncated: ' "$stacks" | head -2)"
	cmp_num "$marked * 100" "<=" "$all * 6" "$1: few fiber switches"
	have_ruby "$1"
	diag "$1: $marked of $all in a switch"
}

# known LABEL: every frame has a name; half-pushed frames, a JIT compiler's, are innermost
known()
{
	is "$(samples '/\[unknown/')" 0 "$1: no unknown frame" || diag "$(grep '\[unknown' "$stacks" | head -2)"
	is "$(samples '/\[half-pushed frame\].*;(Object#|block |<main>)/')" 0 "$1: half-pushed frames are innermost" ||
		diag "$(grep '\[half-pushed frame\].*;(Object#|block )' "$stacks" | head -2)"
	diag "$1: $(samples '/\[half-pushed frame\]/') of $(samples) with a half-pushed frame"
}

# chain LABEL: the callers that a program has are the only ones. When YJIT has moved on to a frame that it has
# not filled yet, the frame is still the one that was there before; so the innermost may be wrong, rarely.
chain()
{
	local wrong stale
	wrong=$(awk -F ';' '
		BEGIN {
			caller["Object#second"] = "Object#first"
			caller["Object#third"] = "Object#second"
			caller["block in Object#first"] = "Object#second"
			caller["Object#first"] = "block in Object#calls"
			caller["Array#each"] = "Object#third"
			caller["block in Object#third"] = "Array#each"
			caller["Object#is_prime"] = "block in Object#sum_of_primes"
			caller["Object#sum_of_primes"] = "block in Object#prime"
			caller["block in Object#calls"] = caller["block in Object#prime"] = "Object#again"
		}
		{
			sub(/ [0-9]+$/, "")
			for (i = NF; i > 2 && !($i in caller); i--)
				;
			for (leaf = i; i > 2; i--)
				if ($i in caller && $(i - 1) != caller[$i])
					print (i == leaf ? "leaf" : "inner"), $i " called by " $(i - 1)
		}' "$stacks")
	stale=$(echo "$wrong" | grep -c '^leaf')
	is "$(echo "$wrong" | grep '^inner')" "" "$1: every caller is one the program has"
	case $1 in
	*--yjit) cmp_num "$stale * 100" "<=" "$(samples)" "$1: and few leaves are stale" ;;
	*) is "$stale" 0 "$1: and of the leaf" ;;
	esac || diag "$wrong"
}

for option in "" --yjit; do
	if [ -n "$option" ] && ! "$RUBY" $option -e 1 2>/dev/null; then
		skip yjit "this Ruby has no YJIT" "$RUBY $option"
		continue
	fi
	for shape in prime calls gc thr threads sort jit deep fibers; do
		label="$shape${option:+ $option}"
		attach "$shape" $option
		cmp_num "$(samples)" -ge 50 "$label: samples"
		case $shape in
		fibers)
			switches "$label"
			;;
		threads)
			joined "$label"
			;;
		*)
			whole "$label"
			joined "$label"
			;;
		esac
		case $shape in
		prime | calls) chain "$label" ;;
		esac
		known "$label"
	done
done
done_testing
