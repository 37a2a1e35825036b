#include "dataset/pack.h"
#define NOT(f) bool f(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e) { (void)o,(void)r; return ls_pack_end(p, ls_fail(e, LS_EXIT_DATA, "not yet"), e); }
NOT(ls_pack_table) NOT(ls_pack_lines) NOT(ls_pack_tokens) NOT(ls_pack_text) NOT(ls_pack_arrays)
