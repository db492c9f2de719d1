// SPDX-License-Identifier: GPL-2.0-only
/*
 * aestest: AES in plain C in the kernel, to be measured against the same code in a user program.
 * README.md tells what is written to and read from /proc/aestest.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "aes_plain.h"

/* Data of a request: more than the longest message that is compared. */
#define DATA_MAX (2 << 20)

/* Turns between two looks at whether others want the processor. */
#define TURNS_AT_ONCE 64

enum { ENCRYPT, DECRYPT, LOOP };

struct request {
	u32 operation;
	u32 call_bytes;
	u64 turns;
	u8 key[32];
	u8 iv[AES_BLOCK];
};

/* Of one open file. */
struct session {
	struct mutex lock;
	struct aes_plain_key key;
	u64 nanoseconds;
	size_t byte_count;
	u8 *data;
};

static int run_loop(struct session *session, const struct request *request)
{
	u64 left = request->turns;

	if (!request->call_bytes || request->call_bytes % AES_BLOCK)
		return -EINVAL;
	while (left) {
		u64 turns = min_t(u64, left, TURNS_AT_ONCE);

		aes_plain_loop(&session->key, request->iv, session->data, session->byte_count,
			       request->call_bytes, turns);
		left -= turns;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int run(struct session *session, const struct request *request)
{
	u64 start;
	int error = 0;

	aes_plain_expand(&session->key, request->key, sizeof(request->key));
	start = ktime_get_ns();
	switch (request->operation) {
	case ENCRYPT:
		aes_plain_cbc_encrypt(&session->key, request->iv, session->data,
				      session->byte_count);
		break;
	case DECRYPT:
		aes_plain_cbc_decrypt(&session->key, request->iv, session->data,
				      session->byte_count);
		break;
	case LOOP:
		error = run_loop(session, request);
		break;
	default:
		error = -EINVAL;
	}
	session->nanoseconds = ktime_get_ns() - start;
	return error;
}

static int aestest_open(struct inode *inode, struct file *file)
{
	struct session *session = kzalloc(sizeof(*session), GFP_KERNEL);

	if (!session)
		return -ENOMEM;
	mutex_init(&session->lock);
	file->private_data = session;
	return 0;
}

static int aestest_release(struct inode *inode, struct file *file)
{
	struct session *session = file->private_data;

	kvfree(session->data);
	kfree_sensitive(session);
	return 0;
}

static ssize_t aestest_write(struct file *file, const char __user *from, size_t count,
			     loff_t *position)
{
	struct session *session = file->private_data;
	struct request request;
	size_t byte_count;
	int error;
	u8 *data;

	if (count < sizeof(request) || count - sizeof(request) > DATA_MAX)
		return -EMSGSIZE;
	byte_count = count - sizeof(request);
	if (byte_count % AES_BLOCK)
		return -EINVAL;
	if (copy_from_user(&request, from, sizeof(request)))
		return -EFAULT;
	data = kvmalloc(max_t(size_t, byte_count, 1), GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	if (copy_from_user(data, from + sizeof(request), byte_count)) {
		kvfree(data);
		return -EFAULT;
	}
	mutex_lock(&session->lock);
	kvfree(session->data);
	session->data = data;
	session->byte_count = byte_count;
	error = run(session, &request);
	mutex_unlock(&session->lock);
	memzero_explicit(&request, sizeof(request));
	/* The answer is read from its beginning. */
	*position = 0;
	return error ? error : count;
}

/* The whole answer, or nothing. */
static ssize_t aestest_read(struct file *file, char __user *to, size_t count, loff_t *position)
{
	struct session *session = file->private_data;
	ssize_t result;

	mutex_lock(&session->lock);
	result = sizeof(session->nanoseconds) + session->byte_count;
	if (!session->data)
		result = 0;
	else if (count < result)
		result = -EMSGSIZE;
	else if (copy_to_user(to, &session->nanoseconds, sizeof(session->nanoseconds)) ||
		 copy_to_user(to + sizeof(session->nanoseconds), session->data,
			      session->byte_count))
		result = -EFAULT;
	mutex_unlock(&session->lock);
	return result;
}

static const struct proc_ops operations = {
	.proc_open = aestest_open,
	.proc_release = aestest_release,
	.proc_read = aestest_read,
	.proc_write = aestest_write,
};

/* SP 800-38A, F.2.5, the first block. */
static int __init self_test(void)
{
	static const u8 key_bytes[32] __initconst = {
		0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae,
		0xf0, 0x85, 0x7d, 0x77, 0x81, 0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61,
		0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4,
	};
	static const u8 iv[AES_BLOCK] __initconst = {
		0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
		0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
	};
	static const u8 plaintext[AES_BLOCK] __initconst = {
		0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96,
		0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a,
	};
	static const u8 ciphertext[AES_BLOCK] __initconst = {
		0xf5, 0x8c, 0x4c, 0x04, 0xd6, 0xe5, 0xf1, 0xba,
		0x77, 0x9e, 0xab, 0xfb, 0x5f, 0x7b, 0xfb, 0xd6,
	};
	struct aes_plain_key *key = kmalloc(sizeof(*key), GFP_KERNEL);
	u8 data[AES_BLOCK];
	int error = -EBADMSG;

	if (!key)
		return -ENOMEM;
	memcpy(data, plaintext, AES_BLOCK);
	aes_plain_expand(key, key_bytes, sizeof(key_bytes));
	aes_plain_cbc_encrypt(key, iv, data, AES_BLOCK);
	if (memcmp(data, ciphertext, AES_BLOCK))
		goto out;
	aes_plain_cbc_decrypt(key, iv, data, AES_BLOCK);
	if (!memcmp(data, plaintext, AES_BLOCK))
		error = 0;
out:
	if (error)
		pr_err("aestest: wrong on a published vector; not loaded\n");
	kfree(key);
	return error;
}

static int __init aestest_init(void)
{
	int error;

	aes_plain_prepare();
	error = self_test();
	if (error)
		return error;
	return proc_create("aestest", 0600, NULL, &operations) ? 0 : -ENOMEM;
}

static void __exit aestest_exit(void)
{
	remove_proc_entry("aestest", NULL);
}

module_init(aestest_init);
module_exit(aestest_exit);
MODULE_DESCRIPTION("AES in plain C, in the loop of table A");
MODULE_LICENSE("GPL");
