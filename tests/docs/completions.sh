#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The three shells offer what the program has: commands, options, choices, files and processes.

. "$(dirname "$0")/../lib/tap.sh"
: "${top_srcdir:=$here/../..}"
need_xprof

# The program under test is the first "xprof" in PATH.
mkdir "$tmp/bin" "$tmp/dir"
ln -s "$XPROF" "$tmp/bin/xprof"
PATH=$tmp/bin:$PATH
export PATH
completions=$(cd "$top_srcdir/completions" && pwd)
cd "$tmp/dir" || exit 99
touch one.data two.data.old other.txt

# bash_offers WORD...: what is offered for the last word, sorted, on one line.
bash_offers()
{
	bash --norc -c '
		source "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
		_xprof
		((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"
	' "$completions/xprof.bash" "$@" | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//'
}

# fish_offers LINE
fish_offers()
{
	HOME=$tmp fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$completions/xprof.fish" \
		"$1" 2>&1 | cut -f 1 | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//'
}

# zsh_offers LINE: completes it in a terminal of its own and takes down what is added.
zsh_offers()
{
	: >"$tmp/hits"
	cat >"$tmp/.zshrc" <<-EOF
	PS1= fpath=('$completions' \$fpath)
	autoload -Uz compinit && compinit -u -D
	show() {
		compadd() {
			local -a hits
			if [[ \${@[(I)-[OAD]]} -gt 0 ]]; then
				builtin compadd "\$@"
				return
			fi
			builtin compadd -O hits "\$@"
			((\$#hits)) && print -rl -- \$hits >>$tmp/hits
			builtin compadd "\$@"
		}
		_main_complete
		print >$tmp/done
	}
	zle -C show complete-word show
	bindkey '^T' show
	print >$tmp/ready
	EOF
	rm -f "$tmp/ready" "$tmp/done"
	ZDOTDIR=$tmp TERM=dumb zsh -f -c '
		zmodload zsh/zpty
		zpty z "TERM=dumb zsh -i"
		for ((i = 0; i < 200; i++)); do [[ -e $1/ready ]] && break; sleep 0.05; done
		sleep 0.1
		zpty -w -n z "$2"$'"'\\C-t'"'
		for ((i = 0; i < 200; i++)); do [[ -e $1/done ]] && break; sleep 0.05; done
		zpty -d z
	' zsh "$tmp" "$1" </dev/null
	LC_ALL=C sort -u "$tmp/hits" | grep . | tr '\n' ' ' | sed 's/ $//'
}

# What the program has, in the same form.
commands=$("$XPROF" --list-cmds | cut -f 1 | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')
options()
{
	"$XPROF" "$1" --list-opts | cut -f 1 | grep "$2" | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//'
}
record=$(options record '^--')
formats=$("$XPROF" report --list-opts | awk -F '\t' '$1 == "--format=" { print substr($2, 2) }' |
	tr ',' '\n' | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')
like "$commands" '*record*' "there are commands to offer"
like "$record" '*--freq=*' "there are options to offer"

if command -v bash >/dev/null; then
	run bash -n "$completions/xprof.bash"
	is "$status$err" 0 "bash: syntax"
	is "$(bash_offers xprof '')" "$commands" "bash: commands"
	is "$(bash_offers xprof help '')" "$commands" "bash: commands of help"
	is "$(bash_offers xprof record --)" "$record" "bash: options"
	is "$(bash_offers xprof report --no-chi)" "--no-children" "bash: switches can be switched off"
	is "$(bash_offers xprof report --format = '')" "$formats" "bash: choices behind ="
	is "$(bash_offers xprof report -qf '')" "$formats" "bash: choices as the next word"
	is "$(bash_offers xprof report '')" "one.data two.data.old" "bash: sample files"
	is "$(bash_offers xprof report -i o)" "one.data" "bash: sample files as a value"
	is "$(bash_offers xprof record -o ot)" "other.txt" "bash: any file to write"
	is "$(bash_offers xprof record -p $$)" "$$" "bash: a process"
	is "$(bash_offers xprof record -p 1,$$)" "1,$$" "bash: a further process"
	is "$(bash_offers xprof record -F 99 -- xprof)" "xprof" "bash: the command to record"
	is "$(bash_offers xprof record ls --fre)" "" "bash: options of the command are its own"
	is "$(bash_offers xprof nonsense -)" "" "bash: nothing for an unknown command"
else
	skip bash "bash is not installed" "bash"
fi

if command -v fish >/dev/null; then
	run fish --no-config --no-execute "$completions/xprof.fish"
	is "$status$err" 0 "fish: syntax"
	is "$(fish_offers 'xprof ')" "$commands" "fish: commands"
	is "$(fish_offers 'xprof help ')" "$commands" "fish: commands of help"
	is "$(fish_offers 'xprof record --')" "$record" "fish: options"
	is "$(fish_offers 'xprof report --no-chi')" "--no-children" "fish: switches can be switched off"
	is "$(fish_offers 'xprof report -qf ')" "$formats" "fish: choices as the next word"
	is "$(fish_offers 'xprof report --format=fold')" "--format=folded" "fish: choices behind ="
	is "$(fish_offers 'xprof report ')" "one.data two.data.old" "fish: sample files"
	is "$(fish_offers "xprof record -p 1,$$")" "1,$$" "fish: a further process"
	is "$(fish_offers 'xprof record -F 99 xprof')" "xprof" "fish: the command to record"
else
	skip fish "fish is not installed" "fish"
fi

if command -v zsh >/dev/null; then
	run zsh -n "$completions/_xprof"
	is "$status$err" 0 "zsh: syntax"
	is "$(zsh_offers 'xprof ')" "$commands" "zsh: commands"
	is "$(zsh_offers 'xprof record --')" "$(echo "$record" | tr -d =)" "zsh: options"
	is "$(zsh_offers 'xprof report --no-chi')" "--no-children" "zsh: switches can be switched off"
	is "$(zsh_offers 'xprof report --format=')" "$formats" "zsh: choices behind ="
	is "$(zsh_offers 'xprof report ')" "one.data two.data.old" "zsh: sample files"
	is "$(zsh_offers "xprof record -p 1,$$")" "$$" "zsh: a further process"
	is "$(zsh_offers 'xprof record -F 99 -- xprof')" "xprof" "zsh: the command to record"
else
	skip zsh "zsh is not installed" "zsh"
fi

done_testing
