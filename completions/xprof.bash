# SPDX-License-Identifier: GPL-2.0-or-later
#
# bash completion for xprof. Commands, options and choices are asked from the program itself:
#	xprof --list-cmds		NAME <tab> summary
#	xprof [COMMAND] --list-opts	OPTION[=] <tab> KIND <tab> help
# where KIND is none, flag (also --no-NAME), value, file, data, pid, or "=" and the choices.

# The kind of one option in the list ("--freq" or "-F"); empty when there is none.
_xprof_kind() {
	local spelling kind rest
	while IFS=$'\t' read -r spelling kind rest; do
		if [[ ${spelling%=} == "$1" ]]; then
			printf '%s' "$kind"
			return
		fi
	done <<<"$2"
}

# The option at the end of a word whose value is the next word ("-qF" gives -F); empty when none.
_xprof_wants_value() {
	local word=$1 list=$2 i
	if [[ $word == --* ]]; then
		case $(_xprof_kind "$word" "$list") in
		'' | none | flag) ;;
		*) printf '%s' "$word" ;;
		esac
		return
	fi
	for ((i = 1; i < ${#word}; i++)); do
		case $(_xprof_kind "-${word:i:1}" "$list") in
		'' | none | flag) ;;
		*)
			((i + 1 == ${#word})) && printf '%s' "-${word:i:1}"
			return
			;;
		esac
	done
}

# Sets COMPREPLY to process ids, after what is already there of a comma list. Ids are shown with
# their names; a name is never inserted, since ids differ before it.
_xprof_pids() {
	local cur=$1 done= dir pid comm
	COMPREPLY=()
	if [[ $cur == *,* ]]; then
		done=${cur%,*},
		cur=${cur##*,}
	fi
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		[[ $pid == "$cur"* && -e $dir/exe ]] || continue
		read -r comm 2>/dev/null <"$dir/comm" || continue
		COMPREPLY+=("$done$pid ($comm)")
	done
	# Alone, or inserted as they are (menu completion, insert all): without the name.
	if ((${#COMPREPLY[@]} == 1 || COMP_TYPE == 37 || COMP_TYPE == 42)); then
		COMPREPLY=("${COMPREPLY[@]%% (*}")
	fi
	compopt -o nospace 2>/dev/null
}

_xprof_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_xprof_data_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(
		compgen -d -- "$1"
		compgen -f -X '!*.data?(.old)' -- "$1"
	)
}

_xprof_value() {
	case $1 in
	=*) mapfile -t COMPREPLY < <(compgen -W "${1//[=,]/ }" -- "$2") ;;
	pid) _xprof_pids "$2" ;;
	data) _xprof_data_files "$2" ;;
	file) _xprof_files "$2" ;;
	esac
}

_xprof_options() {
	local cur=$1 list=$2 spelling kind rest
	local -a names=()
	while IFS=$'\t' read -r spelling kind rest; do
		names+=("$spelling")
		# Offered only to who asks: they would double the list.
		[[ $cur == --no* && $kind == flag && $spelling == --* ]] &&
			names+=("--no-${spelling#--}")
	done <<<"$list"
	mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$cur")
	[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}

_xprof_commands() {
	local cmd summary
	local -a names=()
	while IFS=$'\t' read -r cmd summary; do
		names+=("$cmd")
	done < <("$1" --list-cmds 2>/dev/null)
	mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$2")
}

# An operand of a command; the first one is word number $3.
_xprof_operand() {
	case $1 in
	record)
		if declare -F _command_offset >/dev/null; then
			_command_offset "$3"
		elif ((COMP_CWORD == $3)); then
			mapfile -t COMPREPLY < <(compgen -c -- "$2")
		else
			_xprof_files "$2"
		fi
		;;
	report) _xprof_data_files "$2" ;;
	help) _xprof_commands "$prog" "$2" ;;
	esac
}

_xprof() {
	local prog=${COMP_WORDS[0]/#\~/$HOME} cur=${COMP_WORDS[COMP_CWORD]}
	local cmd= list= option= first=0 i word extglob
	COMPREPLY=()
	extglob=$(shopt -p extglob)
	shopt -s extglob
	list=$("$prog" --list-opts 2>/dev/null)
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $word == '=' && -n $option ]]; then
			continue		# "--name=value" comes as three words
		elif [[ -n $option ]]; then
			option=
		elif [[ -n $cmd && $word == -- ]]; then
			first=$((i + 1))
			break
		elif [[ $word == -?* ]]; then
			option=$(_xprof_wants_value "$word" "$list")
		elif [[ -z $cmd ]]; then
			cmd=$word
			list=$("$prog" "$cmd" --list-opts 2>/dev/null)
		else
			first=$i
			break
		fi
	done
	[[ $cur == '=' && -n $option ]] && cur=
	if ((first)); then
		_xprof_operand "$cmd" "$cur" "$first"
	elif [[ -n $option ]]; then
		_xprof_value "$(_xprof_kind "$option" "$list")" "$cur"
	elif [[ $cur == -* ]]; then
		_xprof_options "$cur" "$list"
	elif [[ -z $cmd ]]; then
		_xprof_commands "$prog" "$cur"
	else
		_xprof_operand "$cmd" "$cur" "$COMP_CWORD"
	fi
	eval "$extglob"
}

complete -F _xprof xprof
