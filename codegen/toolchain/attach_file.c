/* codegen/toolchain/attach_file.c -- see attach_file.h. */
#include "codegen/toolchain/attach_file.h"

#include "runtime/base/attached_file.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static bool put(int fd, const void *bytes, size_t n, int64_t at)
{
    const char *from = bytes;
    for (ssize_t done; n > 0; from += done, at += done, n -= (size_t)done) {
        done = pwrite(fd, from, n, (off_t)at);
        if (done < 0 && errno != EINTR)
            return false;
        done = done < 0 ? 0 : done;
    }
    return true;
}

/* Sets place and size of the section. Tools that lay a program out anew keep its alignment. */
static bool set_entry(int fd, int64_t entry, int64_t offset, int64_t bytes)
{
    const Elf64_Off place = (Elf64_Off)offset;
    const Elf64_Xword size = (Elf64_Xword)bytes, align = LS_ATTACHED_ALIGN;
    return put(fd, &place, sizeof place, entry + (int64_t)offsetof(Elf64_Shdr, sh_offset))
        && put(fd, &size, sizeof size, entry + (int64_t)offsetof(Elf64_Shdr, sh_size))
        && put(fd, &align, sizeof align, entry + (int64_t)offsetof(Elf64_Shdr, sh_addralign));
}

static bool attach(LsCtx *cx, FILE *to, const LsAttached *a, const LsOnnxForm *form)
{
    struct stat st;
    if (fstat(fileno(to), &st) != 0)
        return false;
    const int64_t at = (st.st_size + PAGE - 1) / PAGE * PAGE;
    return fseeko(to, (off_t)(at + form->shift), SEEK_SET) == 0 && ls_onnx_form_put(cx, form, to)
           && fflush(to) == 0
           && set_entry(fileno(to), a->entry, at, form->shift + form->bytes);
}

bool ls_attach_form(LsCtx *cx, const char *program, const LsOnnxForm *form)
{
    LsAttached a;
    bool is_elf = true, ok = false;
    FILE *to = fopen(program, "r+be");
    if (to != NULL && !ls_attached_find(fileno(to), &a, &is_elf))
        errno = ENOEXEC;
    else if (to != NULL)
        ok = attach(cx, to, &a, form);
    if (to != NULL && fclose(to) != 0)
        ok = false;
    return ok || !is_elf
           || ls_error(cx, LS_NOWHERE, LS_E_IO, NULL,
                       "cannot attach the initial weights to '%s': %s", program, strerror(errno));
}
