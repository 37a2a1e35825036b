/* cli/options/settings.h -- parts of ls_options_pipeline (cli/options/options.h): option texts to
 * numbers and structs. */
#ifndef LS_CLI_OPTIONS_SETTINGS_H
#define LS_CLI_OPTIONS_SETTINGS_H

#include "cli/options/options.h"

/* These set what the options say. 0, or the exit code after a message. */
int ls_settings_import(LsCtx *cx, const LsOptions *o, LsImportOptions *im);
int ls_settings_loss(LsCtx *cx, const LsOptions *o, LsLossOptions *loss);

#endif
