/* dataset/pack_source.h -- makes one packed data set of other files. */
#ifndef LS_DATASET_PACK_SOURCE_H
#define LS_DATASET_PACK_SOURCE_H

#include "dataset/data_commands.h"
#include "dataset/packed_writer.h"

/* An error is LS_EXIT_DATA, LS_EXIT_USAGE for options that do not go with the sources, or
 * LS_EXIT_FAIL where the file cannot be written. */
bool ls_pack(const LsPackOptions *o, LsPackResult *r, LsError *e);

__attribute__((format(printf, 2, 3))) void ls_pack_note(const LsPackOptions *o, const char *fmt,
                                                        ...);
/* ---- kinds of sources, a file each; they end the file ---- */
bool ls_pack_pictures(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e);
bool ls_pack_table(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e);
bool ls_pack_lines(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e);
bool ls_pack_tokens(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e);
bool ls_pack_text(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e);
bool ls_pack_arrays(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e);

#endif
