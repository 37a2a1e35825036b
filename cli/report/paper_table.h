/* cli/report/paper_table.h -- the table of Kusumoto et al. 2019 on our graphs, with auto beside
 * it. */
#ifndef LS_CLI_REPORT_PAPER_TABLE_H
#define LS_CLI_REPORT_PAPER_TABLE_H

#include "cli/options/options.h"

/* Plans the model of the options, or the seven networks of the paper at its sizes. Writes Markdown
 * to stdout or --output. 0 or the exit code. */
int ls_paper_table(const LsOptions *o);

#endif
