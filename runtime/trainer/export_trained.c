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

static void put_front(LsOut *o, const LsMemory *m, const LsFront *f)
{
    ls_export_copy(o, m, m->p->file.onnx, f->head_at);
    ls_out_write(o, f->head, f->nhead);
    ls_out_write(o, f->bytes, f->n);
    ls_export_copy(o, m, m->p->file.onnx + f->graph_at, m->p->file.bytes - f->graph_at);
}

static void put_model(LsOut *o, const LsMemory *m, const LsFront *f)
{
    static const unsigned char value = LS_FRONT_VALUE;
    const int64_t shift = f != NULL ? ls_front_shift(f) : 0;
    if (f != NULL)
        put_front(o, m, f);
    else
        ls_export_copy(o, m, m->p->file.onnx, m->p->file.bytes);
    for (uint32_t k = 0; f != NULL && k < f->ninput; k++)
        ls_out_patch(o, (int64_t)f->input[k] + shift, &value, 1);
    for (uint32_t k = 0; k < m->p->nstate + m->p->npacked; k++)
        if (ls_is_exported(m->p, k))
            ls_export_patch(o, m, ls_exported(m->p, k), ls_exported(m->p, k)->onnx_offset + shift);
    for (uint32_t k = 0; k < m->p->adapters.nmerged; k++)
        ls_export_merged(o, m, &m->p->adapters.merged[k],
                         ls_exported(m->p, m->p->adapters.merged[k].weight)->onnx_offset + shift);
}

static void put_metadata(LsOut *o, const LsProgram *p, const LsAlphabet *a,
                         const LsExportForm *form)
{
    put_alphabet(o, p, a);
    if (form->nnotes > 0)
        ls_out_write(o, form->notes, form->nnotes);
}

static bool write_model(const LsMemory *m, const LsAlphabet *alphabet, const LsExportForm *form,
                        const char *path, LsError *e)
{
    const LsDataType type = form->type;
    LsOut o;
    if (!ls_out_open(&o, path, e))
        return false;
    bool ok = true;
    if (type == LS_DT_REAL)
        put_model(&o, m, form->front);
    else
        ok = ls_export_narrow(&o, m, type, NULL, path, e);
    put_metadata(&o, m->p, alphabet, form);
    if (!ok || !ls_device_ok(m->device, e))
        o.err = EIO;            /* so that no incomplete file is left */
    return ls_out_commit(&o, e) && ok;
}

/* The model and, beside it, the data of its tensors. */
static bool write_pair(const LsMemory *m, const LsAlphabet *alphabet, const LsExportForm *form,
                       const char *path, LsError *e)
{
    const LsDataType type = form->type;
    LsOut model, data;
    LsExternal x = {0};
    if (!ls_out_open(&model, path, e))
        return false;
    bool ok = ls_export_narrow(&model, m, type, &x, path, e);
    const bool open = ok && ls_out_open(&data, x.path, e);
    put_metadata(&model, m->p, alphabet, form);
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
    return form->external ? write_pair(m, alphabet, form, path, e)
                          : write_model(m, alphabet, form, path, e);
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
