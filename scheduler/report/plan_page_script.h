/* scheduler/report/plan_page_script.h -- what moves in the page of a plan: the step under the pointer, the
 * table of nodes. */
#ifndef LS_SCHEDULER_REPORT_PLAN_PAGE_SCRIPT_H
#define LS_SCHEDULER_REPORT_PLAN_PAGE_SCRIPT_H

/* JavaScript. Reads the JSON of the element "data" (scheduler/report/plan_page.c) and writes text
 * nodes only, so that no name can become markup. */
extern const char *const ls_report_script;

#endif
