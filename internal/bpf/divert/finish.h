/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* finish.h: the kernel ends the sockets of a dead agent with FIN. Where the stream was cut, that becomes RST. */
#ifndef SCAFFOLD_DIVERT_FINISH_H
#define SCAFFOLD_DIVERT_FINISH_H

#include "../include/csum.h"
#include "../include/drop.h"
#include "segment.h"

#define TCP_URG 0x20
#define CHECKSUM_AT 16
#define FLAGS_AT 13

/* IPv4's ::ffff twice is 0 in one's complement: the sum is the same for both families. */
static __always_inline __u64 pseudo(const struct segment *s, __u32 len)
{
	struct addr local, remote;

	__builtin_memcpy(&local, s->ends.local, 16);
	__builtin_memcpy(&remote, s->ends.remote, 16);
	return pseudo_sum(&local, &remote, len, PROTO_TCP);
}

/* sum_head adds the TCP header; a multiple of four bytes, at most 60. */
static __always_inline int sum_head(struct __sk_buff *skb, const struct segment *s, __u64 *sum)
{
	for (__u32 i = 0; i < 15; i++) {
		__u32 word;

		if (i * 4 >= s->head)
			break;
		if (bpf_skb_load_bytes(skb, s->l4 + i * 4, &word, 4))
			return -1;
		*sum += word;
	}
	return 0;
}

/* set_length says that the packet ends with its TCP header. */
static __always_inline int set_length(struct __sk_buff *skb, const struct segment *s)
{
	__u16 was, is;

	if (s->family == 6) {
		is = bpf_htons(s->l4 + s->head - s->l3 - IP6_LEN);
		return bpf_skb_store_bytes(skb, s->l3 + 4, &is, sizeof(is), 0);
	}
	is = bpf_htons(s->l4 + s->head - s->l3);
	if (bpf_skb_load_bytes(skb, s->l3 + 2, &was, sizeof(was)) || bpf_l3_csum_replace(skb, s->l3 + 10, was, is, sizeof(is)))
		return -1;
	return bpf_skb_store_bytes(skb, s->l3 + 2, &is, sizeof(is), 0);
}

/*
 * become_reset makes the segment an RST with the same sequence number and without data, which the receiver believes once it
 * has all that was sent before (RFC 5961 §3.2). A checksum that a device completes on the way is the pseudo header's sum.
 */
static __always_inline int become_reset(struct __sk_buff *skb, const struct segment *s)
{
	__u32 tail = s->l4 + s->head;
	__u8 flags = (s->flags & ~(TCP_FIN | TCP_PSH | TCP_URG)) | TCP_RST;
	__u16 sum, none = 0;
	__u64 whole = pseudo(s, s->head);

	if (bpf_skb_load_bytes(skb, s->l4 + CHECKSUM_AT, &sum, sizeof(sum)))
		return -1;
	int unfinished = sum == fold(pseudo(s, s->end - s->l4));

	if (skb->len > tail && bpf_skb_change_tail(skb, tail, 0))
		return -1;
	if (set_length(skb, s) || bpf_skb_store_bytes(skb, s->l4 + FLAGS_AT, &flags, sizeof(flags), 0))
		return -1;
	if (bpf_skb_store_bytes(skb, s->l4 + CHECKSUM_AT, &none, sizeof(none), 0))
		return -1;
	if (!unfinished && sum_head(skb, s, &whole))
		return -1;
	sum = fold(whole);
	if (!unfinished)
		sum = ~sum;
	return bpf_skb_store_bytes(skb, s->l4 + CHECKSUM_AT, &sum, sizeof(sum), 0);
}

/* note keeps what our end says of itself: the first time, for what it says again differs in its timestamp alone. */
static __always_inline void note(struct __sk_buff *skb, const struct segment *s, struct session *own)
{
	struct options_read r = {};

	if (own->own_known || s->flags & TCP_RST || read_options(skb, s, &r) == OPTIONS_MALFORMED)
		return;
	own->own = r.o;
	own->own_known = 1;
}

#endif
