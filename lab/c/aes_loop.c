/* The loop of table A (2007) around aes_plain_modes.c, the same for both places. */
#include "aes_plain.h"

void aes_plain_loop(const struct aes_plain_key *key, const aes_u8 *iv, aes_u8 *buffer,
                    aes_size byte_count, aes_size call_bytes, aes_u64 turns)
{
    aes_size offset;

    for (; turns; turns--) {
        for (offset = 0; offset + call_bytes <= byte_count; offset += call_bytes)
            aes_plain_cbc_encrypt(key, iv, buffer + offset, call_bytes);
        for (offset = 0; offset + call_bytes <= byte_count; offset += call_bytes)
            aes_plain_cbc_decrypt(key, iv, buffer + offset, call_bytes);
    }
}
