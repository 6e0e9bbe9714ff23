# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares the shares of functions in folded stacks with the truth.
#
# usage: awk -v name=LABEL [-v by=comm] -f shares.awk TRUTH FOLDED
#
# TRUTH has lines "truth NAME SECONDS". A sample belongs to NAME when a frame is NAME, or NAME followed
# by "(" or "::h" (C++ parameters, a Rust hash); with by=comm when its thread has that name. Of n samples
# that belong to any of the names, those of one with share p are binomial: 4 sigma, and half a sample for
# the rounding, is what chance explains. Prints one line for each name, status 1 when one is outside.

FNR == NR {
	if ($1 != "truth")
		next
	seconds = $NF
	label = $0
	sub(/^truth /, "", label)
	sub(/ [^ ]*$/, "", label)
	if (!(label in truth))
		order[++names] = label
	truth[label] += seconds
	total += seconds
	next
}

function is_name(frame, label) {
	if (frame == label)
		return 1
	if (index(frame, label) != 1)
		return 0
	return substr(frame, length(label) + 1) ~ /^(\(|::h[0-9a-f]+$)/
}

function owner(n,    i, j) {
	if (by == "comm")
		return (frame[1] in truth) ? frame[1] : ""
	for (i = n; i > 1; i--)
		for (j = 1; j <= names; j++)
			if (is_name(frame[i], order[j]))
				return order[j]
	return ""
}

{
	count = $0
	sub(/^.* /, "", count)
	stack = $0
	sub(/ [0-9]+$/, "", stack)
	who = owner(split(stack, frame, ";"))
	all += count
	if (who == "")
		next
	got[who] += count
	owned += count
}

END {
	if (owned < 200 || total <= 0) {
		printf "%s: only %d of %d samples are in known functions\n", name, owned, all
		exit 1
	}
	for (j = 1; j <= names; j++) {
		p = truth[order[j]] / total
		off = got[order[j]] - owned * p
		limit = 4 * sqrt(owned * p * (1 - p)) + 0.5
		bad = off > limit || -off > limit
		failed = failed || bad
		printf "%s: %-38s truth %6.2f %%, sampled %6.2f %% (%d of %d)%s\n", name, order[j],
		       100 * p, 100 * got[order[j]] / owned, got[order[j]], owned,
		       bad ? "  <- outside 4 sigma" : ""
	}
	if (owned < 0.97 * all) {
		printf "%s: %d of %d samples are in no known function\n", name, all - owned, all
		failed = failed || owned < 0.90 * all
	}
	exit failed
}
