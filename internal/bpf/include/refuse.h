/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* refuse.h: a packet becomes its own answer and goes back out of the interface on which it came. */
#ifndef SCAFFOLD_REFUSE_H
#define SCAFFOLD_REFUSE_H

#include "csum.h"

#define ICMP6_LEN 8
#define QUOTE_MAX 128 /* bytes of the offending packet; enough for headers and every TCP option */

/* swap_macs turns the frame around; a link without Ethernet header needs nothing. */
static __always_inline int swap_macs(struct __sk_buff *skb, __u32 l2)
{
	__u8 mac[12], back[12];

	if (l2 != ETH_HLEN)
		return 0;
	if (bpf_skb_load_bytes(skb, 0, mac, sizeof(mac)))
		return -1;
	__builtin_memcpy(back, mac + 6, 6);
	__builtin_memcpy(back + 6, mac, 6);
	return bpf_skb_store_bytes(skb, 0, back, sizeof(back), 0);
}

/*
 * sum_packet sums the words of len bytes from off on, len a multiple of four and at most QUOTE_MAX; -1 where they are not
 * there. A global function: the verifier goes through the loop once, not on each way that leads to it.
 */
__noinline __s64 sum_packet(struct __sk_buff *skb, __u32 off, __u32 len)
{
	__s64 sum = 0;

	for (__u32 i = 0; i < QUOTE_MAX / 4; i++) {
		__u32 word;

		if (i * 4 >= len)
			break;
		if (bpf_skb_load_bytes(skb, off + i * 4, &word, 4))
			return -1;
		sum += word;
	}
	return sum;
}

/*
 * unfinished says whether the transport checksum is still the half that an offloading sender leaves: the pseudo
 * header's sum, which then is *half. The last device on the way completes it, inside the quote.
 */
static __always_inline int unfinished(struct __sk_buff *skb, __u32 l2, const struct packet *p, __u16 *half)
{
	__u32 len = bpf_ntohs(p->payload_len) - (p->l4 - l2 - IP6_LEN);
	int off = checksum_offset(p);

	if (off < 0 || p->fragment != WHOLE || bpf_skb_load_bytes(skb, p->l4 + off, half, sizeof(*half)))
		return 0;
	return *half == fold(pseudo_sum(&p->src, &p->dst, len, p->proto));
}

/*
 * refuse makes the packet an ICMPv6 destination unreachable with the given code from *from to its sender, and
 * turns the frame around; the caller redirects. The kernel's own errors are rate-limited, these are not. The word, in
 * network order, stands where RFC 4443 has nothing: receivers that do not know it ignore it.
 * Returns 0 or -1; packet pointers are invalid afterwards.
 */
static __always_inline int refuse(struct __sk_buff *skb, __u32 l2, const struct packet *p, const struct addr *from,
				  __u8 code, __u32 word)
{
	__u32 quote = skb->len - l2;
	struct {
		__u32 word;
		__u16 len;
		__u8  next, hops;
		struct addr src, dst;
		__u8  type, code;
		__u16 sum;
		__u32 unused;
	} h = {
		.word = bpf_htonl(0x60000000),
		.next = PROTO_ICMPV6,
		.hops = 64,
		.src = *from,
		.dst = p->src,
		.type = ICMP6_UNREACHABLE,
		.code = code,
		.unused = word,
	};
	_Static_assert(sizeof(h) == IP6_LEN + ICMP6_LEN, "no holes");
	__u16 half = 0;
	__u64 sum;
	__s64 quoted;

	if (quote > QUOTE_MAX)
		quote = QUOTE_MAX;
	quote &= ~3U;
	/* A completed transport checksum makes header and data sum up to the complement of the half. */
	__u32 summed = quote;

	if (unfinished(skb, l2, p, &half) && p->l4 - l2 < quote) {
		summed = p->l4 - l2;
		half = ~half;
	} else {
		half = 0;
	}
	if (bpf_skb_change_tail(skb, l2 + quote, 0))
		return -1;
	if (bpf_skb_adjust_room(skb, sizeof(h), BPF_ADJ_ROOM_MAC, 0))
		return -1;
	sum = pseudo_sum(&h.src, &h.dst, ICMP6_LEN + quote, PROTO_ICMPV6);
	sum += (__u16)(h.type | h.code << 8) + (__u64)half + word;
	quoted = sum_packet(skb, l2 + sizeof(h), summed);
	if (quoted < 0)
		return -1;
	sum += quoted;
	h.len = bpf_htons(ICMP6_LEN + quote);
	h.sum = ~fold(sum);
	if (bpf_skb_store_bytes(skb, l2, &h, sizeof(h), 0))
		return -1;
	return swap_macs(skb, l2);
}

#endif
