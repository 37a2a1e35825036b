/* runtime/data/data_facts.h -- what training data say of themselves: names of classes, columns with
 * their categories, mean and deviation. Checkpoints keep it, and other data are brought to it:
 *
 *   {"classes": [NAME, ...], "inputs": [{"name": INPUT, "mean": [..], "std": [..], "columns":
 * [..]}]}
 */
#ifndef LS_RUNTIME_DATA_DATA_FACTS_H
#define LS_RUNTIME_DATA_DATA_FACTS_H

#include "runtime/data/dataset.h"

/* On the heap; NULL without an error: the data say nothing of themselves. */
bool ls_facts_of(const LsDataset *d, char **text, LsError *e);
/* Gives labels the numbers that the classes of these names have, and --mean=auto, --std=auto these
 * figures. Other names, columns or categories are refused, with LS_EXIT_DATA. Once, before
 * any sample is read; text NULL: nothing to do. */
bool ls_facts_apply(LsDataset *d, const char *text, LsError *e);

#endif
