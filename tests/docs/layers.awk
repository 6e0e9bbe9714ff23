# SPDX-License-Identifier: GPL-2.0-or-later
#
# Prints every #include that breaks the layers; the input's file names are relative to the top of the
# tree. An arrow may only point down: a folder includes itself and what its line below lists.

BEGIN {
	may["base"] = "base"
	may["profile"] = "profile base"
	may["target"] = "target profile base bpf/unwind.h"
	may["store"] = "store profile base"
	may["output"] = "output profile base"
	may["tui"] = "tui profile base"
	may["runtime"] = "runtime target profile base bpf"
	may["collect"] = "collect runtime target profile base bpf xprof.skel.h xprof-stop.skel.h"
	may["cmd"] = "cmd tui output store collect runtime target profile base config.h"
	may["main.c"] = "cmd base config.h"
	may["bpf"] = "bpf"
	# Outside libraries, and who may know them; what is not here belongs to the C library or the kernel.
	library("^bpf/", "collect bpf")
	library("curses|^panel\\.h|^menu\\.h", "tui")
	library("^libelf|^gelf|^elfutils/|^dwarf\\.h|^capstone|demangle\\.h", "target")
	library("^zstd", "store")
	library("^zlib|^protobuf-c", "store output")
}

function library(pattern, owners)
{
	patterns[++libraries] = pattern
	owner[libraries] = owners
}

function listed(list, word,	n, i, words)
{
	n = split(list, words, " ")
	for (i = 1; i <= n; i++)
		if (words[i] == word)
			return 1
	return 0
}

# "src/cmd/top.c" is in cmd, "src/main.c" in main.c, "bpf/abi.h" in bpf.
function folder_of(file,	parts)
{
	split(file, parts, "/")
	return parts[1] == "src" ? parts[2] : parts[1]
}

function outside(name,	i)
{
	for (i = 1; i <= libraries; i++)
		if (name ~ patterns[i] && !listed(owner[i], folder))
			return 1
	return 0
}

# A name without a folder is that of a neighbour or a generated file.
function inside(name,	first)
{
	first = name
	if (!sub(/\/.*/, "", first))
		return folder != "bpf" && !listed(may[folder], name)
	return !listed(may[folder], first) && !listed(may[folder], name)
}

FNR == 1 {
	folder = folder_of(FILENAME)
	if (!(folder in may))
		print FILENAME ": folder " folder " is in no layer"
}

/^[ \t]*#[ \t]*include/ {
	name = $0
	sub(/^[^<"]*[<"]/, "", name)
	sub(/[>"].*/, "", name)
	if ($0 ~ /</ ? outside(name) : inside(name))
		print FILENAME ":" FNR ": " folder " may not include " name
}
