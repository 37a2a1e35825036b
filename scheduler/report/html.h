/* scheduler/report/html.h -- what the HTML reports and pictures share: escaping, sizes, style.
 *
 * Names come from models, which may come from anywhere: whatever is printed of them goes through
 * ls_page_text or ls_page_json. */
#ifndef LS_SCHEDULER_REPORT_HTML_H
#define LS_SCHEDULER_REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

/* As text or attribute of HTML and SVG; bytes that are no UTF-8, and control characters, become
 * U+FFFD. NULL is "". */
void ls_page_text(FILE *to, const char *s);

/* As a string of JSON within a script element, which nothing in it can end. */
void ls_page_json(FILE *to, const char *s);

/* "1.25 GiB"; wherever sizes are told, in texts for terminals too. */
const char *ls_page_bytes(char text[24], int64_t bytes);
/* The same in the unit that `like` bytes have, so that two sizes can be compared. */
const char *ls_page_bytes_like(char text[24], int64_t bytes, int64_t like);

/* Doctype to the opened body: no scripts and styles but the page's own, nothing from a network. */
void ls_page_head(FILE *to, const char *title);

/* Colours for light and dark, as variables and as classes f-NAME, to fill, and s-NAME, to stroke
 * with; and what else pictures need. Within a style element, of a page or of an SVG file. */
void ls_page_colours(FILE *to);

#endif
