/* cli/option_groups/data_group.c -- see the header. */
#include "cli/option_groups/data_group.h"

#include "cli/option_groups/option_rows.h"

#define AT(field) offsetof(LsDataGroup, field)
static const LsOption data[] = {
    {"--size", NULL, "HxW|N", TEXT, AT(size), LS_CMD_DATA,
     "size of all pictures: stretched to height H and width W; or the short side to N, of which "
     "the centre of N x N is kept, or that of --crop"},
    {"--crop", NULL, "HxW|N", TEXT, AT(crop), LS_CMD_DATA,
     "keep the centre of each picture, after --size"},
    {"--channels", NULL, "N", INTEGER(1, 3), AT(channels), LS_CMD_DATA,
     "1: grey; 3: red, green, blue (default)"},
    {"--masks", NULL, "DIR", TEXT, AT(masks), LS_CMD_DATA,
     "the target of each picture is the PNG of its name in DIR: the numbers of its palette or its "
     "grey values are classes"},
    {"--skip-bad", NULL, NULL, FLAG, AT(skip_bad), LS_CMD_DATA,
     "leave out pictures that cannot be read, and list them (default: the first one is an error)"},
    {"--label-column", NULL, "NAME|N", TEXT, AT(label_column), LS_CMD_DATA,
     "column of a table that is the target, by its name or its number from 1 on"},
    {"--categories", NULL, "NAME,...", TEXT, AT(categories), LS_CMD_DATA,
     "columns of a table whose numbers are names; columns of other text are categories anyway"},
    {"--leave-out", NULL, "NAME,...", TEXT, AT(leave_out), LS_CMD_DATA,
     "columns of a table that are passed over"},
    {"--one-hot", NULL, NULL, FLAG, AT(one_hot), LS_CMD_DATA,
     "columns of categories become a 0 or 1 for each category (default: its number)"},
    {"--missing", NULL, "mean|drop|X", TEXT, AT(missing), LS_CMD_DATA,
     "what stands for an empty number of a table: the column's mean, the number X, or drop the row "
     "(default: it is an error)"},
    {"--text", NULL, "bytes|characters", TEXT, AT(text), LS_CMD_DATA,
     "tokens of a text: its bytes, 0 to 255 (default), or the numbers of the characters that "
     "occur"},
    {"--raw", NULL, "TYPE", TEXT, AT(raw), LS_CMD_DATA,
     "element type of tokens without a header: uint16 (default), uint32, int32, int64"},
    {"--length", NULL, "N", INTEGER(1, MOST_BATCH), AT(length), LS_CMD_DATA,
     "tokens of a row of JSON lines (default: those of the longest sample)"},
    {"--pack", NULL, NULL, FLAG, AT(pack), LS_CMD_DATA,
     "samples of JSON lines share rows, with the field segments"},
    {"--like", NULL, "FILE.lsd", TEXT, AT(like), LS_CMD_DATA,
     "take classes, or columns and their categories, from another packed data set"},
    {"--input-name", NULL, "NAME", TEXT, AT(input_name), LS_CMD_DATA,
     "name of the field of inputs (default: image, x, or as the source says)"},
    {"--label-name", NULL, "NAME", TEXT, AT(label_name), LS_CMD_DATA,
     "name of the field of targets (default: label, or as the source says)"},
    {"--threads", NULL, "N", INTEGER(1, 1024), AT(threads), LS_CMD_DATA,
     "threads that read pictures (default: all cores); the file does not depend on it"},
    {"--check", NULL, NULL, FLAG, AT(check), LS_CMD_DATA,
     "show: compare all values with their checksums"},
};
const LsOptionGroup ls_data_group = GROUP("Data", data);
