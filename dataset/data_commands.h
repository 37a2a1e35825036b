/* dataset/data_commands.h -- what lowerset data does, for the command line: this header includes
 * none of the runtime's, whose names are also the compiler's. */
#ifndef LS_DATASET_DATA_COMMANDS_H
#define LS_DATASET_DATA_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

/* Sizes are 0 where they are not given. */
typedef struct LsPackOptions {
    const char *const *source;
    int sources;
    const char *to;
    /* pictures */
    int width, height; /* to which they are stretched */
    int side;          /* or to which the short side goes */
    int crop_width, crop_height;
    int channels;      /* 1, 3 */
    const char *masks; /* folder; NULL */
    bool skip_bad;
    /* tables */
    const char *label_column;           /* name, or number from 1 on; NULL: no label */
    const char *categories, *leave_out; /* columns, with commas between; NULL */
    bool one_hot;
    const char *missing; /* mean, drop, a number; NULL: an error */
    /* tokens and text */
    bool characters; /* a text's, with an alphabet; else its bytes */
    int64_t length;  /* tokens of a row of JSON lines; 0: of the longest sample */
    bool share_rows;
    const char *raw; /* element type of bare tokens; NULL */
    /* all */
    const char *input_name, *label_name; /* of fields; NULL: as the kind of source says */
    const char *like; /* packed data set whose classes and columns are taken; NULL */
    int threads;
    /* Tells how far it is: samples, and how many there will be. May be NULL. */
    void (*progress)(void *to, int64_t done, int64_t all);
    void *progress_to;
    void (*note)(void *to, const char *text); /* a line about the data */
} LsPackOptions;

typedef struct LsPackResult {
    int64_t samples, bytes, skipped;
} LsPackResult;

enum { LS_PACK_WHY = 600 };
/* Makes one packed data set of other files. The exit code, with a sentence in `why`: 8 for data, 2
 * for options that do not go with the sources, 1 where the file cannot be written. */
int ls_pack_run(const LsPackOptions *o, LsPackResult *r, char why[LS_PACK_WHY]);
/* Describes a packed data set on stdout, in words or as JSON; check: its values, too. Likewise. */
int ls_pack_show(const char *path, bool check, bool json, char why[LS_PACK_WHY]);

#endif
