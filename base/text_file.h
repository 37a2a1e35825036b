/* base/text_file.h -- a whole file of text, such as one of JSON. */
#ifndef LS_BASE_TEXT_FILE_H
#define LS_BASE_TEXT_FILE_H

#include "base/reason.h"

/* Up to its end or its first NUL; free() it. NULL with a sentence when it cannot be read or is
 * empty. */
char *ls_text_file(const char *path, const LsWhy *why);

#endif
