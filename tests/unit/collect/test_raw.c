/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/raw: a ring record is believed only when every count fits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "collect/raw.h"

/* A record in memory of exactly its size, so that a read past it is seen. */
static struct xp_raw_sample *make_record(uint16_t nkernel, uint16_t nnative, size_t size)
{
	struct xp_raw_sample *head = malloc(size ? size : 1);
	struct xp_raw_sample whole = { .kind = XP_RAW_SAMPLE, .time = 77, .pid = 1, .tid = 2,
				       .nkernel = nkernel, .nnative = nnative,
				       .end = XP_END_OUTERMOST };

	assert_non_null(head);
	memset(head, 0x5a, size);
	memcpy(head, &whole, size < sizeof(whole) ? size : sizeof(whole));
	return head;
}

static size_t need(uint16_t nkernel, uint16_t nnative)
{
	return sizeof(struct xp_raw_sample) + nkernel * 8ul + nnative * 16ul;
}

static bool parses(const void *data, size_t size)
{
	struct xp_raw raw;
	bool ok = xp_raw_parse(data, size, &raw);

	for (uint16_t i = 0; ok && i < raw.head->nkernel; i++)
		assert_int_equal(raw.kernel[i], 0x5a5a5a5a5a5a5a5aull);
	for (uint16_t i = 0; ok && i < raw.head->nnative; i++)
		assert_int_equal(raw.native[i].sp_flags, 0x5a5a5a5a5a5a5a5aull);
	return ok;
}

static void the_parts_follow_each_other(void **state)
{
	struct xp_raw_sample *head = make_record(2, 3, need(2, 3));
	uint64_t *words = (uint64_t *)(head + 1);
	struct xp_raw raw;

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		words[i] = i + 1;
	assert_true(xp_raw_parse(head, need(2, 3), &raw));
	assert_ptr_equal(raw.head, head);
	assert_int_equal(raw.kernel[0], 1);
	assert_int_equal(raw.kernel[1], 2);
	assert_int_equal(raw.native[0].pc, 3);
	assert_int_equal(raw.native[0].sp_flags, 4);
	assert_int_equal(raw.native[2].pc, 7);
	free(head);
}

static void every_truncation_is_seen(void **state)
{
	(void)state;
	for (size_t size = 0; size <= need(3, 4) + 8; size++) {
		struct xp_raw_sample *head = make_record(3, 4, size);

		assert_int_equal(parses(head, size), size >= need(3, 4));
		free(head);
	}
}

static void every_count_is_checked(void **state)
{
	static const uint16_t counts[] = { 0, 1, 2, 126, 127, 128, 1535, 1536, 4096, 0x7fff, 0x8000,
					   0xffff };
	const size_t n = sizeof(counts) / sizeof(*counts);

	(void)state;
	for (size_t i = 0; i < n * n; i++) {
		uint16_t nkernel = counts[i / n], nnative = counts[i % n];
		size_t size = need(nkernel, nnative);
		struct xp_raw_sample *head = make_record(nkernel, nnative, size);

		assert_true(parses(head, size));
		assert_false(parses(head, size - 1));
		free(head);
	}
}

static void kinds_and_ends(void **state)
{
	struct xp_raw_sample *head = make_record(0, 0, need(0, 0));

	(void)state;
	for (unsigned end = 0; end < 256; end++) {
		head->end = (uint8_t)end;
		assert_int_equal(parses(head, need(0, 0)), end < XP_END_REASONS);
	}
	head->end = 0;
	for (uint32_t kind = 0; kind < 5; kind++) {
		head->kind = kind;
		assert_int_equal(parses(head, need(0, 0)), kind == XP_RAW_SAMPLE);
		assert_int_equal(xp_raw_kind(head, 4), kind);
		assert_int_equal(xp_raw_kind(head, 3), 0);
	}
	assert_int_equal(xp_raw_kind(head, 0), 0);
	free(head);
}

static void every_end_has_its_words(void **state)
{
	(void)state;
	for (int i = 0; i < XP_END_REASONS; i++) {
		assert_true(*xp_end_text((enum xp_end)i));
		assert_true(*xp_end_name((enum xp_end)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(xp_end_name((enum xp_end)i),
						xp_end_name((enum xp_end)k));
	}
	assert_string_equal(xp_end_text(XP_END_REASONS), "unknown reason");
	assert_string_equal(xp_end_name((enum xp_end)255), "unknown");
	assert_true(xp_end_complete(XP_END_NONE));
	assert_true(xp_end_complete(XP_END_OUTERMOST));
	assert_true(xp_end_complete(XP_END_FP_ZERO));
	assert_true(xp_end_complete(XP_END_FIBER));
	assert_false(xp_end_complete(XP_END_TOO_DEEP));
	assert_false(xp_end_complete(XP_END_NO_PROCESS));
	assert_false(xp_end_complete(XP_END_BACKWARDS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parts_follow_each_other),
		cmocka_unit_test(every_truncation_is_seen),
		cmocka_unit_test(every_count_is_checked),
		cmocka_unit_test(kinds_and_ends),
		cmocka_unit_test(every_end_has_its_words),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
