/* scheduler/report/page_texts.h -- the files of this folder that pages consist of, as text
 * (base/embed.sh). */
#ifndef LS_SCHEDULER_REPORT_PAGE_TEXTS_H
#define LS_SCHEDULER_REPORT_PAGE_TEXTS_H

extern const char ls_text_page_css[], ls_text_picture_css[];
extern const char ls_text_page_head_html[];     /* doctype and head, up to the title */
extern const char ls_text_plan_page_js[];

#endif
