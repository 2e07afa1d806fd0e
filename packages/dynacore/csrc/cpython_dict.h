/* The layout of dicts since 3.11: keys that may be shared, with the values beside them. */

static Word
word_now(const void *address)
{
    return (Word){address, *(const uint64_t *)address};
}

static int
has_shared_keys(PyObject *dict)
{
    return ((PyDictObject *)dict)->ma_values != NULL;
}

int
cpython_dict_value_words(PyObject *dict, PyObject *key, Word *words)
{
    PyDictObject *table = (PyDictObject *)dict;
    PyDictKeysObject *keys = table->ma_keys;
    PyDictUnicodeEntry *entries = DK_IS_UNICODE(keys) ? DK_UNICODE_ENTRIES(keys) : NULL;
    Py_ssize_t i = 0;
    while (entries != NULL && i < keys->dk_nentries && entries[i].me_key != key) {
        i++;
    }
    if (entries == NULL || i == keys->dk_nentries) {
        return 0;
    }
    words[0] = word_now(&table->ma_keys);
    if (has_shared_keys(dict)) { /* shared keys are only ever added to: the place stays the key's */
        words[1] = word_now(&table->ma_values);
        words[2] = word_now(&table->ma_values->values[i]);
        return 3;
    }
    words[1] = word_now(&keys->dk_nentries); /* the keys may be others at the same address, and fewer */
    words[2] = word_now(&entries[i].me_key);
    words[3] = word_now(&entries[i].me_value);
    return 4;
}
