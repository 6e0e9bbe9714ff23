/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sample file, as xprof-data(5) describes it to strangers: keep both in step.
 *
 * Any change to what a reader of this version understands is a new version.
 */
#ifndef XP_STORE_FORMAT_H
#define XP_STORE_FORMAT_H

#include <stdint.h>

#define XP_STORE_VERSION 1
#define XP_STORE_MAGIC 0x43705889u		/* bytes 89 58 70 43: never text, never cut to 7 bits */
#define XP_STORE_IDENT "xprof-data\n"		/* start of the header chunk's payload */
#define XP_STORE_IDENT_LEN 11

/* Chunk header, little-endian. */
enum xp_store_header {
	XP_STORE_AT_MAGIC = 0,			/* u32 */
	XP_STORE_AT_KIND = 4,			/* u8, enum xp_store_kind */
	XP_STORE_AT_CODEC = 5,			/* u8, enum xp_store_codec */
	XP_STORE_AT_ZERO = 6,			/* u16, 0 */
	XP_STORE_AT_NUMBER = 8,			/* u32: chunks are counted from 0 */
	XP_STORE_AT_RAW = 12,			/* u32: payload bytes when decompressed */
	XP_STORE_AT_STORED = 16,		/* u32: payload bytes in the file */
	XP_STORE_AT_CRC = 20,			/* u32: CRC-32 of the 20 bytes above and the payload */
	XP_STORE_HEADER_SIZE = 24
};

enum xp_store_kind {
	XP_STORE_HEADER = 'H',			/* first chunk: ident, u32 version */
	XP_STORE_DATA = 'D',			/* records */
	XP_STORE_END = 'E',			/* last chunk: totals */
};

enum xp_store_codec { XP_STORE_PLAIN, XP_STORE_ZSTD };

#define XP_STORE_CHUNK_MAX (1u << 20)		/* raw and stored payload */
#define XP_STORE_STRING_MAX 65536u		/* longer strings are cut by the writer */
#define XP_STORE_DEPTH_MAX 262144u		/* frames of one stack */
#define XP_STORE_FACTS_MAX 2048u		/* meta and counter records in a chunk; keys in all */

/*
 * What the chunks in the first so many bytes of a file may hold in all, decompressed: a small file
 * must not fill the memory of its reader. Real recordings compress to a tenth at best.
 */
static inline uint64_t xp_store_raw_max(uint64_t bytes)
{
	return (16u << 20) + 256 * bytes;
}

/* Records of data chunks: a tag byte, then LEB128 fields. */
enum xp_store_record {
	XP_STORE_STRING = 1,			/* length, bytes */
	XP_STORE_DSO,				/* path, build id */
	XP_STORE_FRAME,				/* kind (u8), runtime, name, file, line, dso + 1 or 0, addr */
	XP_STORE_STACK,				/* own id - parent's id or 0 for a root, frame */
	XP_STORE_THREAD,			/* pid, tid, comm */
	XP_STORE_META,				/* key, value */
	XP_STORE_COUNTER,			/* key, value (a number) */
	/* A sample: this bit and flags; |time - previous time| in us, thread, stack, then as flagged. */
	XP_STORE_SAMPLE = 0x80,
	XP_STORE_SAMPLE_WEIGHT = 1,		/* weight, else 1 */
	XP_STORE_SAMPLE_STATE = 2,		/* state (u8), else running */
	XP_STORE_SAMPLE_EARLIER = 4,		/* the time went back */
};

#endif
