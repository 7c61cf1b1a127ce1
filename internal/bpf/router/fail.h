/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* fail.h: who sends to a locator at which nobody is any more is told so by FAIL, docs/protocol.md §4. */
#ifndef SCAFFOLD_ROUTER_FAIL_H
#define SCAFFOLD_ROUTER_FAIL_H

#include "../include/refuse.h"
#include "maps.h"

#define MESSAGE_PORT 23727
#define MESSAGE_FAIL 5
#define FAIL_HOST_GONE 4
#define FAIL_QUOTE_MIN 48
#define FAIL_EVERY_NS 100000000ULL /* between two FAILs to one sender's flow */

struct fail {
	__u32 word;
	__u16 payload_len;
	__u8  next, hops;
	struct addr src, dst;
	__u16 sport, dport, udp_len, sum;
	__u8  version, type;
	__u16 len;
	__u32 key;
	__u32 nonce[2];
	__u32 reason; /* one byte and three of zero */
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct fail) == IP6_LEN + 8 + 16 + 4, "no holes");

/* told_lately says whether the sender's end of the flow was answered a moment ago, and notes that it now is. */
static __always_inline int told_lately(const struct addr *sender)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 *last = bpf_map_lookup_elem(&told, sender);

	if (last && now - *last < FAIL_EVERY_NS)
		return 1;
	bpf_map_update_elem(&told, sender, &now, BPF_ANY);
	return 0;
}

/* quoted is how much of the packet the FAIL quotes; a short one is filled up with zeros. */
static __always_inline __u32 quoted(const struct __sk_buff *skb)
{
	__u32 len = skb->len - ETH_HLEN;

	if (len > QUOTE_MAX)
		len = QUOTE_MAX;
	if (len < FAIL_QUOTE_MIN)
		len = FAIL_QUOTE_MIN;
	return len & ~3U;
}

/*
 * fail makes the packet a FAIL from *from to its sender and turns the frame around; the caller redirects.
 * The transport must be parsed. Returns 0 or -1; packet pointers are invalid afterwards.
 */
static __always_inline int fail(struct __sk_buff *skb, const struct packet *p, const struct addr *from)
{
	__u32 quote = quoted(skb), summed = quote;
	struct fail f = {
		.word = bpf_htonl(0x60000000),
		.next = PROTO_UDP,
		.hops = 64,
		.src = *from,
		.dst = p->src,
		.sport = bpf_htons(MESSAGE_PORT),
		.dport = bpf_htons(MESSAGE_PORT),
		.version = 1,
		.type = MESSAGE_FAIL,
		.reason = bpf_htonl(FAIL_HOST_GONE << 24),
	};
	__u32 *body = (__u32 *)&f + IP6_LEN / 4;
	__u16 half = 0;
	__u64 sum;
	__s64 quoted;

	/* As in refuse(): a checksum that a device completes on the way does not change the sum. */
	if (unfinished(skb, ETH_HLEN, p, &half) && p->l4 - ETH_HLEN < quote) {
		summed = p->l4 - ETH_HLEN;
		half = ~half;
	} else {
		half = 0;
	}
	if (bpf_skb_change_tail(skb, ETH_HLEN + quote, 0))
		return -1;
	if (bpf_skb_adjust_room(skb, sizeof(f), BPF_ADJ_ROOM_MAC, 0))
		return -1;
	f.len = bpf_htons(sizeof(f) - IP6_LEN - 8 + quote);
	f.udp_len = f.payload_len = bpf_htons(sizeof(f) - IP6_LEN + quote);
	sum = pseudo_sum(from, &p->src, sizeof(f) - IP6_LEN + quote, PROTO_UDP) + half;
	for (__u32 i = 0; i < (sizeof(f) - IP6_LEN) / 4; i++)
		sum += body[i];
	quoted = sum_packet(skb, ETH_HLEN + sizeof(f), summed);
	if (quoted < 0)
		return -1;
	sum += quoted;
	f.sum = ~fold(sum);
	if (!f.sum)
		f.sum = 0xffff;
	if (bpf_skb_store_bytes(skb, ETH_HLEN, &f, sizeof(f), 0))
		return -1;
	return swap_macs(skb, ETH_HLEN);
}

#endif
