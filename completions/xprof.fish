# SPDX-License-Identifier: GPL-2.0-or-later
#
# fish completion for xprof. Commands, options and choices are asked from the program itself:
#	xprof --list-cmds		NAME <tab> summary
#	xprof [COMMAND] --list-opts	OPTION[=] <tab> KIND <tab> help
# where KIND is none, flag (also --no-NAME), value, file, data, pid, or "=" and the choices.

# The kind of an option ("--freq" or "-F") in the list given as further arguments.
function __xprof_kind
    for line in $argv[2..-1]
        set -l field (string split \t -- $line)
        if test (string trim --right --chars '=' -- $field[1]) = "$argv[1]"
            echo $field[2]
            return
        end
    end
end

# The option at the end of a word whose value is the next word.
function __xprof_wants_value
    set -l names $argv[1]
    string match -q -- '--*' $argv[1]
    or set names -(string split '' -- (string sub -s 2 -- $argv[1]))
    for i in (seq (count $names))
        switch (__xprof_kind $names[$i] $argv[2..-1])
            case '' none flag
                continue
        end
        test $i -eq (count $names)
        and echo -- $names[$i]
        return
    end
end

function __xprof_pids
    # After the last comma of a list.
    set -l before (string match -r '^.*,' -- $argv[1])
    for dir in (string match -r '^/proc/[0-9]+$' -- /proc/*)
        test -e $dir/exe
        and read -l comm 2>/dev/null <$dir/comm
        and printf '%s%s\t%s\n' "$before" (string replace /proc/ '' $dir) $comm
    end
end

# Sample files, and the directories on the way to them.
function __xprof_data_files
    __fish_complete_path $argv[1] | string match -r '.*(?:\.data|\.data\.old|/)(?:\t.*)?$'
end

# Values of a kind, each with prefix $argv[3] ("--name=" or nothing).
function __xprof_value
    switch $argv[1]
        case '=*'
            printf "$argv[3]%s\n" (string split , -- (string sub -s 2 -- $argv[1]))
        case pid
            printf "$argv[3]%s\n" (__xprof_pids $argv[2])
        case data
            printf "$argv[3]%s\n" (__xprof_data_files $argv[2])
        case file
            printf "$argv[3]%s\n" (__fish_complete_path $argv[2])
    end
end

function __xprof_options
    for line in $argv[2..-1]
        set -l field (string split \t -- $line)
        printf '%s\t%s\n' $field[1] $field[3]
        # Offered only to who asks: they would double the list.
        if test $field[2] = flag; and string match -q -- '--no*' $argv[1]
            and string match -q -- '--*' $field[1]
            printf '%s\tnot: %s\n' --no-(string sub -s 3 -- $field[1]) $field[3]
        end
    end
end

function __xprof_operand
    switch $argv[1]
        case record
            if test (count $argv) -gt 2
                complete -C (string join ' ' -- (string escape -- $argv[3..-1]) $argv[2])
            else
                __fish_complete_command
            end
        case report
            __xprof_data_files "$argv[2]"
        case help
            $__xprof_program --list-cmds 2>/dev/null
    end
end

function __xprof_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -g __xprof_program (string replace -r '^~' $HOME -- $words[1])
    set -l cmd
    set -l option
    set -l list ($__xprof_program --list-opts 2>/dev/null)
    for i in (seq 2 (count $words))
        set -l word $words[$i]
        if test -n "$option"
            set option
        else if test -n "$cmd"; and test "$word" = --
            __xprof_operand $cmd "$cur" $words[(math $i + 1)..-1]
            return
        else if string match -q -- '-?*' $word
            string match -q -- '--*=*' $word
            or set option (__xprof_wants_value $word $list)
        else if test -z "$cmd"
            set cmd $word
            set list ($__xprof_program $cmd --list-opts 2>/dev/null)
        else
            __xprof_operand $cmd "$cur" $words[$i..-1]
            return
        end
    end
    if test -n "$option"
        __xprof_value (__xprof_kind $option $list) "$cur" ''
    else if string match -q -- '--*=*' $cur
        set -l part (string split -m 1 = -- $cur)
        __xprof_value "$(__xprof_kind $part[1] $list)" "$part[2]" "$part[1]="
    else if string match -q -- '-*' $cur
        __xprof_options "$cur" $list
    else if test -z "$cmd"
        $__xprof_program --list-cmds 2>/dev/null
    else
        __xprof_operand $cmd "$cur"
    end
end

complete -c xprof -f -a '(__xprof_complete)'
