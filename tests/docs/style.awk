# SPDX-License-Identifier: GPL-2.0-or-later
#
# Prints what breaks the limits of style: functions above 80 lines (120 in bpf/, whose walkers are
# bounded by hand), files above 600, gotos to anything but out (in bpf/ a jump may be the way to the
# next program), and files without a licence line. A body is what lies between "{" and "}" in the first column.

function end_of_file()
{
	if (file && lines > 600)
		print file ": " lines " lines"
}

FNR == 1 {
	end_of_file()
	file = FILENAME
	most = file ~ /(^|\/)bpf\// ? 120 : 80
	start = 0
	if ($0 !~ /SPDX-License-Identifier: GPL-2\.0-or-later/)
		print file ": no licence in line 1"
}

{ lines = FNR }

/^{$/ { start = FNR }
/^}/ {
	if (start && FNR - start - 1 > most)
		print file ":" start ": a function of " FNR - start - 1 " lines"
	start = 0
}

most == 80 && /^[ \t]*goto / && !/^[ \t]*goto out;/ { print file ":" FNR ":" $0 }

END { end_of_file() }
