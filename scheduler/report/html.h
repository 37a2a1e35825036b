/* scheduler/report/html.h -- shared parts of the HTML reports and pictures: escaping, sizes, style.
 *
 * Names come from models, which may come from anywhere, so all names are printed through
 * ls_page_text or ls_page_json. */
#ifndef LS_SCHEDULER_REPORT_HTML_H
#define LS_SCHEDULER_REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

/* Prints s as text or attribute of HTML and SVG. Invalid UTF-8 and control characters become
 * U+FFFD. NULL prints "". */
void ls_page_text(FILE *to, const char *s);

/* Prints s as a JSON string that cannot end the script element around it. */
void ls_page_json(FILE *to, const char *s);

/* Writes "1.25 GiB" to text and returns it; for all printed sizes, on terminals too. */
const char *ls_page_bytes(char text[24], int64_t bytes);
/* The same in the unit for `like` bytes, so that two sizes can be compared. */
const char *ls_page_bytes_like(char text[24], int64_t bytes, int64_t like);

/* Prints doctype to opened body. The page allows only its own scripts and styles, and no
 * network. */
void ls_page_head(FILE *to, const char *title);

/* Prints the style of pictures into a style element of a page or an SVG file: colours for light and
 * dark, as variables and as classes f-NAME (fill) and s-NAME (stroke), and the rest. */
void ls_page_colours(FILE *to);

#endif
