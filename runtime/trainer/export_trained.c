/* runtime/trainer/export_trained.c -- the embedded ONNX file, with the float32 data of every state
 * tensor replaced. */
#include "runtime/base/file.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/trainer/export_adapter.h"
#include "runtime/trainer/export_narrow.h"
#include "runtime/trainer/export_values.h"
#include "runtime/trainer/export_trained.h"
#include "runtime/trainer/member_view.h"

#include <errno.h>

/* Writes the alphabet, unless the model contains one: it is then the alphabet of the training. */
static void put_alphabet(LsOut *o, const LsProgram *p, const LsAlphabet *a)
{
    LsAlphabet there;
    unsigned char text[LS_ALPHABET_TEXT + 64];
    ls_alphabet_of_onnx(&there, p->file.onnx, p->file.bytes);
    if (ls_alphabet_count(a) > 0 && !ls_alphabet_same(a, &there))
        ls_out_write(o, text, ls_alphabet_metadata(a, text));
}

static void put_model(LsOut *o, const LsMemory *m)
{
    ls_export_copy(o, m, m->p->file.onnx, m->p->file.bytes);
    for (uint32_t k = 0; k < m->p->nstate + m->p->npacked; k++)
        if (ls_is_exported(m->p, k))
            ls_export_patch(o, m, ls_exported(m->p, k), ls_exported(m->p, k)->onnx_offset);
    for (uint32_t k = 0; k < m->p->adapters.nmerged; k++)
        ls_export_merged(o, m, &m->p->adapters.merged[k],
                         ls_exported(m->p, m->p->adapters.merged[k].weight)->onnx_offset);
}

static bool write_model(const LsMemory *m, const LsAlphabet *alphabet, LsDataType type,
                        const char *path, LsError *e)
{
    LsOut o;
    if (!ls_out_open(&o, path, e))
        return false;
    bool ok = true;
    if (type == LS_DT_REAL)
        put_model(&o, m);
    else
        ok = ls_export_narrow(&o, m, type, NULL, path, e);
    put_alphabet(&o, m->p, alphabet);
    if (!ok || !ls_device_ok(m->device, e))
        o.err = EIO;            /* so that no incomplete file is left */
    return ls_out_commit(&o, e) && ok;
}

/* The model and, beside it, the data of its tensors. */
static bool write_pair(const LsMemory *m, const LsAlphabet *alphabet, LsDataType type,
                       const char *path, LsError *e)
{
    LsOut model, data;
    LsExternal x = {0};
    if (!ls_out_open(&model, path, e))
        return false;
    bool ok = ls_export_narrow(&model, m, type, &x, path, e);
    const bool open = ok && ls_out_open(&data, x.path, e);
    put_alphabet(&model, m->p, alphabet);
    if (open)
        ls_external_write(&data, m, type, &x);
    ls_external_close(&x);
    ok = open && ls_device_ok(m->device, e);
    if (!ok)
        model.err = EIO;        /* so that nothing is left */
    return (open ? ls_out_commit_both(&data, &model, e) : ls_out_commit(&model, e)) && ok;
}

static bool write_form(const LsMemory *m, const LsAlphabet *alphabet, const LsExportForm *form,
                       const char *path, LsError *e)
{
    return form->external ? write_pair(m, alphabet, form->type, path, e)
                          : write_model(m, alphabet, form->type, path, e);
}

bool ls_export(const LsMemory *m, int64_t member, const LsAlphabet *alphabet,
               const LsExportForm *form, const char *path, LsError *e)
{
    if (m->p->ensemble.members == 0)
        return write_form(m, alphabet, form, path, e);
    LsMember one;
    const bool ok = ls_member_open(&one, m, member, e)
                    && write_form(&one.memory, alphabet, form, path, e);
    ls_member_close(&one);
    return ok;
}
