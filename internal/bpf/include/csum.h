/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* csum.h: changing addresses without breaking a checksum, whoever computes it. */
#ifndef SCAFFOLD_CSUM_H
#define SCAFFOLD_CSUM_H

#include "parse.h"

/* has_checksum says where the transport checksum lies in its header, or returns -1. */
static __always_inline int checksum_offset(const struct packet *p)
{
	if (p->fragment == LATER_FRAGMENT)
		return -1;
	switch (p->proto) {
	case PROTO_TCP:
		return 16;
	case PROTO_UDP:
		return 6;
	case PROTO_ICMPV6:
		return 2;
	}
	return -1;
}

static __always_inline __u64 checksum_flags(const struct packet *p)
{
	return p->proto == PROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
}

/* words adds the four 32-bit words of an address. */
static __always_inline __u64 words(const struct addr *a)
{
	return (a->hi & 0xffffffff) + (a->hi >> 32) + (a->lo & 0xffffffff) + (a->lo >> 32);
}

/* difference is what bpf_csum_diff gives for two addresses that replace two others, without its call. */
static __always_inline __u32 difference(const struct packet *p, const struct addr *src, const struct addr *dst)
{
	struct addr was_src = { ~p->src.hi, ~p->src.lo }, was_dst = { ~p->dst.hi, ~p->dst.lo };
	__u64 sum = words(src) + words(dst) + words(&was_src) + words(&was_dst);

	sum = (sum & 0xffffffff) + (sum >> 32);
	return sum + (sum >> 32);
}

/*
 * rewrite replaces both addresses. One difference over all 32 bytes with PSEUDO_HDR is right for complete
 * checksums and for the halves that GSO and offloading senders leave (CHECKSUM_PARTIAL). RECOMPUTE_CSUM at the
 * store keeps CHECKSUM_COMPLETE right on kernels that do not know BPF_F_IPV6, which fails at run time there.
 * Packet pointers are invalid afterwards; *p is updated.
 */
static __always_inline int rewrite(struct __sk_buff *skb, __u32 l2, struct packet *p, const struct addr *src,
				   const struct addr *dst)
{
	struct addr to[2] = { *src, *dst };
	int off = checksum_offset(p);

	if (off >= 0 && bpf_l4_csum_replace(skb, p->l4 + off, 0, difference(p, src, dst),
					    BPF_F_PSEUDO_HDR | checksum_flags(p)))
		return -1;
	if (bpf_skb_store_bytes(skb, l2 + 8, to, sizeof(to), BPF_F_RECOMPUTE_CSUM))
		return -1;
	p->src = *src;
	p->dst = *dst;
	return 0;
}

/* set_word replaces version, traffic class and flow label, which no checksum covers. */
static __always_inline int set_word(struct __sk_buff *skb, __u32 l2, struct packet *p, __u32 word)
{
	if (word == p->word)
		return 0;
	p->word = word;
	return bpf_skb_store_bytes(skb, l2, &word, sizeof(word), BPF_F_RECOMPUTE_CSUM);
}

/* fold makes the 16-bit one's complement sum of a 64-bit accumulator of 32-bit words. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* pseudo_sum starts a checksum over the pseudo header; len in bytes, host order. */
static __always_inline __u64 pseudo_sum(const struct addr *src, const struct addr *dst, __u32 len, __u8 proto)
{
	__u64 sum = bpf_htonl(len) + (__u64)bpf_htonl(proto);

	return sum + words(src) + words(dst);
}

/* The flow label of unresolved packets, docs/protocol.md §3.1: how often one was returned, and above that by whom last. */
#define RETRY_BITS 4
#define MAX_RETRY 15 /* sid.MaxRetry */
#define LABEL_MASK 0xfffff

static __always_inline __u32 label_of(const struct packet *p)
{
	return bpf_ntohl(p->word) & LABEL_MASK;
}

static __always_inline __u32 retry_of(const struct packet *p)
{
	return label_of(p) & MAX_RETRY;
}

/* with_refusal says that the host at this locator, in network order, returns the packet as the retry-th. */
static __always_inline __u32 with_refusal(__u32 word, __u64 locator, __u32 retry)
{
	__u32 host = bpf_be64_to_cpu(locator) & 0xffff;

	return (word & bpf_htonl(~LABEL_MASK)) | bpf_htonl(host << RETRY_BITS | retry);
}

#endif
