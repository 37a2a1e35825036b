/* base/plain_text.h -- text with names from a file that someone else wrote, for a terminal. */
#ifndef LS_BASE_PLAIN_TEXT_H
#define LS_BASE_PLAIN_TEXT_H

#include <stdio.h>

/* Prints s, a line at most: control characters and bytes that are not UTF-8 as \xNN, and the middle of words of more than
 * 400 bytes as "...". */
void ls_plain_text(FILE *to, const char *s);

#endif
