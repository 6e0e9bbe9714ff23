/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * C++: names with namespaces and templates, virtual calls, lambdas, exceptions thrown through frames.
 *
 * usage: cxx [CPU-SECONDS]
 *
 * The names in the truth lines are the demangled ones, without parameters.
 */
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "truth.h"

static volatile long sum;

namespace outer {
namespace inner {

template <typename T, int N> struct Engine {
	NOINLINE T turn(unsigned long n)
	{
		BURN(n);
		return static_cast<T>(n) + N;
	}
};

} // namespace inner

struct Shape {
	virtual ~Shape() {}
	virtual int area(unsigned long n) = 0;
};

struct Square : Shape {
	NOINLINE int area(unsigned long n) override
	{
		BURN(n);
		return 4;
	}
};

} // namespace outer

NOINLINE void thrower(int depth)
{
	std::string guard("destroyed while the exception passes, and longer than a small string");

	sum += static_cast<long>(guard.size());
	if (depth == 0)
		throw std::runtime_error("end of the road");
	thrower(depth - 1);
	sum += 1;
}

NOINLINE int catcher()
{
	for (int i = 0; i < 20; i++) {
		try {
			thrower(10);
		} catch (const std::exception &e) {
			sum += e.what()[0];
		}
	}
	return 1;
}

NOINLINE bool sort_order(int a, int b)
{
	BURN(10);
	return a < b;
}

NOINLINE int sorter()
{
	std::vector<int> v;

	for (int i = 0; i < 400; i++)
		v.push_back(i * 7919 % 401);
	std::sort(v.begin(), v.end(), sort_order);
	return v[0];
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	struct truth t[] = { { "outer::inner::Engine<long, 7>::turn", 0 },
			     { "outer::Square::area", 0 },
			     { "catcher", 0 },
			     { "sorter", 0 } };
	outer::inner::Engine<long, 7> engine;
	outer::Shape *square = new outer::Square;

	while (truth_now() < seconds) {
		TRUTH(&t[0], sum += engine.turn(truth_length()));
		TRUTH(&t[1], sum += square->area(truth_length()));
		TRUTH(&t[2], sum += catcher());
		for (int i = 0; i < 5; i++)
			TRUTH(&t[3], sum += sorter());
	}
	delete square;
	truth_print(t, 4);
	return 0;
}
