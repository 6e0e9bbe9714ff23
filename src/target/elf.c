// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading ELF images with every offset checked (System V ABI, chapters 4 and 5; glibc's <elf.h>).
 *
 * Headers are copied out of the image with memcpy, since a hostile file may place them unaligned.
 * Offsets and sizes are compared by subtraction from the image's size, never by adding them up.
 */
#include "target/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool inside(const struct xp_elf *elf, uint64_t offset, uint64_t n)
{
	return offset <= elf->size && n <= elf->size - offset;
}

static int read_header(struct xp_elf *elf, struct xp_err *err)
{
	Elf64_Ehdr eh = { 0 };

	if (elf->size >= sizeof(eh))
		memcpy(&eh, elf->data, sizeof(eh));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0)
		return xp_err_set(err, ENOEXEC, "not an ELF file");
	elf->header = eh;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64)
		return xp_err_set(err, ENOEXEC, "not a 64-bit ELF file");
	if (eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return xp_err_set(err, ENOEXEC, "not a little-endian ELF file");
	if (eh.e_phnum == 0)
		return 0;
	/* PN_XNUM, "the number is elsewhere", is above the limit too. */
	if (eh.e_phnum > XP_ELF_PHNUM_MAX)
		return xp_err_set(err, ENOEXEC, "damaged ELF file: %u program headers", eh.e_phnum);
	if (eh.e_phentsize != sizeof(Elf64_Phdr) ||
	    !inside(elf, eh.e_phoff, (uint64_t)eh.e_phnum * sizeof(Elf64_Phdr)))
		return xp_err_set(err, ENOEXEC, "damaged ELF file: program headers past its end");
	return 0;
}

/* read_header() has seen to it that every index below e_phnum is there. */
static Elf64_Phdr program_header(const struct xp_elf *elf, const Elf64_Ehdr *eh, size_t i)
{
	Elf64_Phdr ph;

	memcpy(&ph, elf->data + eh->e_phoff + i * sizeof(ph), sizeof(ph));
	return ph;
}

/* A file that is shorter than its segments say keeps the part that is there. */
static uint64_t clip(const struct xp_elf *elf, uint64_t offset, uint64_t n)
{
	if (offset >= elf->size)
		return 0;
	return n < elf->size - offset ? n : elf->size - offset;
}

static int read_segments(struct xp_elf *elf, const Elf64_Ehdr *eh)
{
	elf->segments = calloc(eh->e_phnum + 1u, sizeof(*elf->segments));
	if (!elf->segments)
		return -ENOMEM;
	for (size_t i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr ph = program_header(elf, eh, i);
		struct xp_segment *s = &elf->segments[elf->nsegments];

		if (ph.p_type != PT_LOAD || ph.p_vaddr > UINT64_MAX - ph.p_memsz ||
		    ph.p_filesz > ph.p_memsz)
			continue;
		s->offset = ph.p_offset;
		s->filesz = clip(elf, ph.p_offset, ph.p_filesz);
		s->vaddr = ph.p_vaddr;
		s->memsz = ph.p_memsz;
		s->exec = ph.p_flags & PF_X;
		elf->nsegments++;
	}
	return 0;
}

/*
 * Looks for the GNU build id in one note segment. Name and descriptor are padded to the segment's
 * alignment, which is 4, or 8 for .note.gnu.property (System V ABI for x86-64, "Note section").
 */
static bool find_build_id(struct xp_elf *elf, const uint8_t *p, size_t n, size_t align)
{
	while (n >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr nh;
		uint64_t desc, next;

		memcpy(&nh, p, sizeof(nh));
		desc = (sizeof(nh) + (uint64_t)nh.n_namesz + align - 1) & -(uint64_t)align;
		next = (desc + nh.n_descsz + align - 1) & -(uint64_t)align;
		if (desc > n || nh.n_descsz > n - desc)
			return false;
		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 &&
		    memcmp(p + sizeof(nh), "GNU", 4) == 0 && nh.n_descsz > 0 &&
		    nh.n_descsz <= XP_BUILD_ID_MAX) {
			memcpy(elf->build_id, p + desc, nh.n_descsz);
			elf->build_id_len = nh.n_descsz;
			return true;
		}
		if (next >= n)
			return false;
		p += next;
		n -= next;
	}
	return false;
}

static void read_build_id(struct xp_elf *elf, const Elf64_Ehdr *eh)
{
	for (size_t i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr ph = program_header(elf, eh, i);

		if (ph.p_type == PT_NOTE && inside(elf, ph.p_offset, ph.p_filesz) &&
		    find_build_id(elf, elf->data + ph.p_offset, ph.p_filesz,
				  ph.p_align == 8 ? 8 : 4))
			return;
	}
}

/* Takes over elf; on failure it is freed. */
static int finish(struct xp_elf **out, struct xp_elf *elf, struct xp_err *err)
{
	Elf64_Ehdr eh;
	int rc = read_header(elf, err);

	if (rc)
		goto out;
	eh = elf->header;
	elf->machine = eh.e_machine;
	elf->type = eh.e_type;
	elf->entry = eh.e_entry;
	rc = read_segments(elf, &eh);
	if (rc) {
		xp_err_sys(err, -rc, "cannot read its segments");
		goto out;
	}
	read_build_id(elf, &eh);
	elf_version(EV_CURRENT);
	/* libelf only reads an image opened this way. */
	elf->elf = elf_memory((char *)(uintptr_t)elf->data, elf->size);
	if (!elf->elf)
		rc = xp_err_set(err, ENOEXEC, "damaged ELF file: %s", elf_errmsg(-1));
out:
	if (rc) {
		xp_elf_free(elf);
		elf = NULL;
	}
	*out = elf;
	return rc;
}

/* Reads size bytes from the start of the file; fewer when it has become shorter. */
static int read_whole(int fd, uint8_t *to, size_t size, size_t *got)
{
	for (*got = 0; *got < size;) {
		ssize_t n = pread(fd, to + *got, size - *got, (off_t)*got);

		if (n == 0)
			break;
		if (n > 0)
			*got += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int load(struct xp_elf *elf, int fd, size_t size)
{
	uint8_t *p;
	int rc;

	if (size > XP_ELF_COPY_MAX) {
		rc = xp_filemap_open(&elf->map, fd, size, false);
		if (rc)
			return rc;
		elf->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		elf->data = elf->map.data;
		elf->size = size;
		return 0;
	}
	p = malloc(size + 1);
	if (!p)
		return -ENOMEM;
	rc = read_whole(fd, p, size, &elf->size);
	elf->data = p;
	return rc;
}

static struct xp_elf *new_elf(void)
{
	struct xp_elf *elf = calloc(1, sizeof(*elf));

	if (elf)
		elf->fd = -1;
	return elf;
}

int xp_elf_open_fd(struct xp_elf **out, int fd, struct xp_err *err)
{
	struct xp_elf *elf;
	struct stat st;
	int rc;

	*out = NULL;
	if (fstat(fd, &st) < 0)
		return xp_err_sys(err, errno, "cannot stat");
	if (!S_ISREG(st.st_mode))
		return xp_err_set(err, ENOEXEC, "not a regular file");
	elf = new_elf();
	if (!elf)
		return xp_err_sys(err, ENOMEM, "cannot open");
	rc = load(elf, fd, (size_t)st.st_size);
	if (rc) {
		xp_elf_free(elf);
		return xp_err_sys(err, -rc, "cannot read");
	}
	return finish(out, elf, err);
}

int xp_elf_open_path(struct xp_elf **out, const char *path, struct xp_err *err)
{
	int fd, rc;

	*out = NULL;
	/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return xp_err_sys(err, errno, "cannot open %s", path);
	rc = xp_elf_open_fd(out, fd, err);
	if (rc)
		xp_err_prepend(err, "%s", path);
	close(fd);
	return rc;
}

int xp_elf_open_mem(struct xp_elf **out, const void *data, size_t size, struct xp_err *err)
{
	struct xp_elf *elf;
	uint8_t *copy;

	*out = NULL;
	elf = new_elf();
	copy = malloc(size + 1);
	if (!elf || !copy) {
		free(elf);
		free(copy);
		return xp_err_sys(err, ENOMEM, "cannot open");
	}
	if (size)
		memcpy(copy, data, size);
	elf->data = copy;
	elf->size = size;
	return finish(out, elf, err);
}

void xp_elf_free(struct xp_elf *elf)
{
	if (!elf)
		return;
	if (elf->elf)
		elf_end(elf->elf);
	if (elf->map.data)
		xp_filemap_close(&elf->map);
	else
		free((void *)(uintptr_t)elf->data);
	if (elf->fd >= 0)
		close(elf->fd);
	free(elf->segments);
	free(elf);
}

bool xp_elf_vaddr_of_offset(const struct xp_elf *elf, uint64_t offset, uint64_t *vaddr)
{
	for (size_t i = 0; i < elf->nsegments; i++) {
		const struct xp_segment *s = &elf->segments[i];

		if (s->exec && offset >= s->offset && offset - s->offset < s->filesz) {
			*vaddr = s->vaddr + (offset - s->offset);
			return true;
		}
	}
	return false;
}

const uint8_t *xp_elf_at_vaddr(const struct xp_elf *elf, uint64_t vaddr, size_t n)
{
	for (size_t i = 0; i < elf->nsegments; i++) {
		const struct xp_segment *s = &elf->segments[i];
		uint64_t into = vaddr - s->vaddr;

		if (vaddr >= s->vaddr && into < s->filesz && n <= s->filesz - into)
			return elf->data + s->offset + into;
	}
	return NULL;
}

/*
 * The number of section headers. e_shnum 0 with a table stands for more than 65,279 sections: no
 * linked file has that many, and it is taken for none.
 */
size_t xp_elf_section_count(const struct xp_elf *elf)
{
	Elf64_Ehdr eh = elf->header;

	if (eh.e_shoff == 0 || eh.e_shentsize != sizeof(Elf64_Shdr) ||
	    !inside(elf, eh.e_shoff, (uint64_t)eh.e_shnum * sizeof(Elf64_Shdr)))
		return 0;
	return eh.e_shnum;
}

static Elf64_Shdr section_header(const struct xp_elf *elf, size_t i)
{
	Elf64_Ehdr eh = elf->header;
	Elf64_Shdr sh;

	memcpy(&sh, elf->data + eh.e_shoff + i * sizeof(sh), sizeof(sh));
	return sh;
}

/* A section's name; NULL when it does not end inside the table of names, or is absurdly long. */
static const char *section_name(const struct xp_elf *elf, const Elf64_Shdr *sh)
{
	Elf64_Ehdr eh = elf->header;
	Elf64_Shdr names;
	const char *name;
	size_t left;

	if (eh.e_shstrndx >= eh.e_shnum)
		return NULL;
	names = section_header(elf, eh.e_shstrndx);
	if (names.sh_type != SHT_STRTAB || !inside(elf, names.sh_offset, names.sh_size) ||
	    sh->sh_name >= names.sh_size)
		return NULL;
	name = (const char *)elf->data + names.sh_offset + sh->sh_name;
	left = names.sh_size - sh->sh_name;
	return memchr(name, 0, left < 1024 ? left : 1024) ? name : NULL;
}

bool xp_elf_section_at(const struct xp_elf *elf, size_t i, const char **name,
		       struct xp_section *out)
{
	Elf64_Shdr sh;

	if (i >= xp_elf_section_count(elf))
		return false;
	sh = section_header(elf, i);
	*name = section_name(elf, &sh);
	if (!*name || sh.sh_addr > UINT64_MAX - sh.sh_size)
		return false;
	if (sh.sh_type != SHT_NOBITS && !inside(elf, sh.sh_offset, sh.sh_size))
		return false;
	*out = (struct xp_section){
		.data = sh.sh_type == SHT_NOBITS ? NULL : elf->data + sh.sh_offset,
		.size = sh.sh_size,
		.addr = sh.sh_addr,
		.type = sh.sh_type,
		.link = sh.sh_link,
		.flags = sh.sh_flags,
		.entsize = sh.sh_entsize,
	};
	return true;
}

bool xp_elf_section(const struct xp_elf *elf, const char *name, struct xp_section *out)
{
	size_t n = xp_elf_section_count(elf);

	for (size_t i = 1; i < n; i++) {
		const char *found;

		if (xp_elf_section_at(elf, i, &found, out) && strcmp(found, name) == 0)
			return true;
	}
	memset(out, 0, sizeof(*out));
	return false;
}

bool xp_elf_eh_frame_hdr(const struct xp_elf *elf, struct xp_section *out)
{
	Elf64_Ehdr eh = elf->header;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph = program_header(elf, &eh, i);

		if (ph.p_type != PT_GNU_EH_FRAME || !inside(elf, ph.p_offset, ph.p_filesz))
			continue;
		out->data = elf->data + ph.p_offset;
		out->size = ph.p_filesz;
		out->addr = ph.p_vaddr;
		return true;
	}
	return false;
}

void xp_elf_build_id_hex(const struct xp_elf *elf, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < elf->build_id_len; i++) {
		*out++ = digits[elf->build_id[i] >> 4];
		*out++ = digits[elf->build_id[i] & 15];
	}
	*out = 0;
}
