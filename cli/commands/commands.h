/* cli/commands/commands.h -- one function per command: takes main's argv, returns the exit code. */
#ifndef LS_CLI_COMMANDS_COMMANDS_H
#define LS_CLI_COMMANDS_COMMANDS_H

int ls_compile_main(int argc, char **argv);
int ls_check_main(int argc, char **argv);
int ls_calibrate_main(int argc, char **argv);
int ls_dp_main(int argc, char **argv);
int ls_data_main(int argc, char **argv);
int ls_plan_main(int argc, char **argv);
int ls_sweep_main(int argc, char **argv);
int ls_inspect_main(int argc, char **argv);
int ls_ops_main(int argc, char **argv);
int ls_targets_main(int argc, char **argv);
int ls_explain_main(int argc, char **argv);

#endif
