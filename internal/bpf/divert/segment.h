/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* segment.h: from a frame's bytes to the few fields of its TCP segment that decide, IPv4 and IPv6. */
#ifndef SCAFFOLD_DIVERT_SEGMENT_H
#define SCAFFOLD_DIVERT_SEGMENT_H

#include "../include/parse.h"
#include "abi.h"

#define PROTO_ICMP 1
#define IP4_LEN 20
#define IP4_MORE 0x2000
#define IP4_OFFSET 0x1fff

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_MSS 2
#define OPTION_SCALE 3
#define OPTION_SACK 4
#define OPTION_TIMESTAMPS 8
#define OPTION_MD5 19
#define OPTION_AO 29
#define MAX_SCALE 14 /* RFC 7323 §2.3 */

enum direction { ARRIVING, LEAVING };

struct segment {
	struct ends ends; /* as the receiver sees them where it arrives, as the sender does where it leaves */
	__u32 l3, l4;     /* where the headers begin, from the start of the frame */
	__u32 end;        /* of the packet, as IP says */
	__u32 seq;
	__u8  flags;
	__u8  head; /* length of the TCP header */
	__u8  proto;
	__u8  family; /* 4 or 6 */
	__u8  fragment;
	__u8  pad[3];
};

/* network_ends puts source and destination where they belong. */
static __always_inline void network_ends(struct segment *s, const void *src, const void *dst, __u32 at, int leaving)
{
	__u32 len = at ? 4 : 16;

	if (leaving) {
		__builtin_memcpy(s->ends.local + at, src, len);
		__builtin_memcpy(s->ends.remote + at, dst, len);
	} else {
		__builtin_memcpy(s->ends.local + at, dst, len);
		__builtin_memcpy(s->ends.remote + at, src, len);
	}
}

/* Length 0: more than 65,535 bytes, as GSO makes them; then the frame says. */
static __always_inline int set_end(const struct __sk_buff *skb, struct segment *s, __u32 end)
{
	if (end > skb->len)
		return -1;
	s->end = end;
	return 0;
}

static __always_inline int parse_ip4(struct __sk_buff *skb, __u32 l3, struct segment *s, int leaving)
{
	__u8 h[IP4_LEN];

	if (bpf_skb_load_bytes(skb, l3, h, sizeof(h)))
		return -1;
	__u32 len = (h[0] & 15) * 4, total = h[2] << 8 | h[3], where = h[6] << 8 | h[7];

	if (h[0] >> 4 != 4 || len < IP4_LEN)
		return -1;
	if (where & IP4_OFFSET)
		return -1;
	s->fragment = where & IP4_MORE ? FIRST_FRAGMENT : WHOLE;
	s->family = 4;
	s->proto = h[9];
	s->l4 = l3 + len;
	s->ends.local[10] = s->ends.local[11] = s->ends.remote[10] = s->ends.remote[11] = 0xff;
	network_ends(s, h + 12, h + 16, 12, leaving);
	return set_end(skb, s, total ? l3 + total : skb->len);
}

/* mapped: an IPv4 address has no business on the wire of IPv6. */
static __always_inline int mapped(const __u8 *a)
{
	const __u32 *w = (const void *)a;

	return !w[0] && !w[1] && w[2] == bpf_htonl(0xffff);
}

/* skip_headers goes past the extension headers that hosts send. One that routes says that the packet is yet to go elsewhere. */
static __always_inline int skip_headers(struct __sk_buff *skb, struct segment *s)
{
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		__u8 h[8];

		if (s->proto != EXT_HOP && s->proto != EXT_OPTIONS && s->proto != EXT_FRAGMENT)
			return 0;
		if (bpf_skb_load_bytes(skb, s->l4, h, sizeof(h)))
			return -1;
		if (s->proto == EXT_FRAGMENT) {
			if (h[2] || h[3] & 0xf8)
				return -1;
			s->fragment = h[3] & 1 ? FIRST_FRAGMENT : WHOLE;
			s->l4 += 8;
		} else {
			s->l4 += (h[1] + 1) * 8;
		}
		s->proto = h[0];
	}
	return -1;
}

static __always_inline int parse_ip6(struct __sk_buff *skb, __u32 l3, struct segment *s, int leaving)
{
	__u32 h[IP6_LEN / 4];

	if (bpf_skb_load_bytes(skb, l3, h, sizeof(h)))
		return -1;
	const __u8 *b = (const void *)h;
	__u32 payload = b[4] << 8 | b[5];

	if (b[0] >> 4 != 6 || mapped(b + 8) || mapped(b + 24))
		return -1;
	s->family = 6;
	s->proto = b[6];
	s->l4 = l3 + IP6_LEN;
	network_ends(s, h + 2, h + 6, 0, leaving);
	if (set_end(skb, s, payload ? s->l4 + payload : skb->len))
		return -1;
	return skip_headers(skb, s);
}

static __always_inline int parse_segment(struct __sk_buff *skb, struct segment *s, int leaving)
{
	__u8 h[20];

	if (bpf_skb_load_bytes(skb, s->l4, h, sizeof(h)))
		return -1;
	s->head = (h[12] >> 4) * 4;
	if (s->head < sizeof(h) || s->l4 + s->head > s->end)
		return -1;
	__builtin_memcpy(leaving ? s->ends.local_port : s->ends.remote_port, h, 2);
	__builtin_memcpy(leaving ? s->ends.remote_port : s->ends.local_port, h + 2, 2);
	__builtin_memcpy(&s->seq, h + 4, 4);
	s->seq = bpf_ntohl(s->seq);
	s->flags = h[13];
	return 0;
}

/*
 * parse reads a frame of Ethernet. It says 0 for a TCP segment, or the beginning of one, and -1 for what is none of our
 * business; s->proto tells whether that is an ICMP error, perhaps. A frame with a VLAN tag is another network's.
 */
static __always_inline int parse(struct __sk_buff *skb, struct segment *s, int leaving)
{
	__builtin_memset(s, 0, sizeof(*s));
	s->l3 = ETH_HLEN;
	if (skb->vlan_present)
		return -1;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (parse_ip4(skb, ETH_HLEN, s, leaving))
			return -1;
	} else if (skb->protocol != bpf_htons(ETH_P_IPV6) || parse_ip6(skb, ETH_HLEN, s, leaving)) {
		return -1;
	}
	return s->proto == PROTO_TCP ? parse_segment(skb, s, leaving) : -1;
}

enum { OPTIONS_READ, OPTIONS_PROTECTED, OPTIONS_MALFORMED };

/* The options of one segment, and how far they are read. In memory that the verifier does not follow, see next_option. */
struct options_read {
	struct options o;
	__u32 at, length;
	__u32 protected;
	__u8  bytes[64]; /* 40 at most; the rest saves checks */
};

/* byte_at is one of the bytes behind the kind and length of the option at at. */
static __always_inline __u8 byte_at(const struct options_read *r, __u32 at)
{
	return r->bytes[at & 63];
}

/* take keeps what an option says; others are of no interest. The last of a kind counts, as in Linux. */
static __always_inline void take(struct options_read *r, __u32 at, __u8 kind, __u8 size)
{
	__u8 scale = byte_at(r, at + 2);

	if (kind == OPTION_MD5 || kind == OPTION_AO) {
		r->protected = 1;
	} else if (kind == OPTION_MSS && size == 4) {
		r->o.mss = byte_at(r, at + 2) << 8 | byte_at(r, at + 3);
	} else if (kind == OPTION_SCALE && size == 3) {
		r->o.scale = scale > MAX_SCALE ? MAX_SCALE : scale;
		r->o.has |= HAS_SCALE;
	} else if (kind == OPTION_SACK && size == 2) {
		r->o.has |= HAS_SACK;
	} else if (kind == OPTION_TIMESTAMPS && size == 10) {
		r->o.timestamp = (__u32)byte_at(r, at + 2) << 24 | (__u32)byte_at(r, at + 3) << 16 |
				 (__u32)byte_at(r, at + 4) << 8 | byte_at(r, at + 5);
		r->o.has |= HAS_TIMESTAMPS;
	}
}

enum { OPTION_READ, OPTIONS_OVER, OPTION_MALFORMED };

/* next_option is a global function: the verifier looks at it once, and knows nothing of what it leaves behind. */
__noinline int next_option(struct options_read *r)
{
	if (!r)
		return OPTION_MALFORMED;
	__u32 at = r->at, length = r->length;

	if (at >= length)
		return OPTIONS_OVER;
	__u8 kind = byte_at(r, at), size = byte_at(r, at + 1);

	if (kind == OPTION_END)
		return OPTIONS_OVER;
	if (kind == OPTION_NOP) {
		r->at = at + 1;
		return OPTION_READ;
	}
	if (at + 1 >= length || size < 2 || at + size > length)
		return OPTION_MALFORMED;
	take(r, at, kind, size);
	r->at = at + size;
	return OPTION_READ;
}

/* read_options reads the options of a SYN or SYN-ACK. *r is zero before. */
static __always_inline int read_options(struct __sk_buff *skb, const struct segment *s, struct options_read *r)
{
	__u32 length = s->head - 20;

	r->o.sequence = s->seq;
	if (!length)
		return OPTIONS_READ;
	if (length > 40 || bpf_skb_load_bytes(skb, s->l4 + 20, r->bytes, length))
		return OPTIONS_MALFORMED;
	r->length = length;
	for (int i = 0; i < 40; i++) {
		int result = next_option(r);

		if (result == OPTION_MALFORMED)
			return OPTIONS_MALFORMED;
		if (result == OPTIONS_OVER)
			break;
	}
	return r->protected ? OPTIONS_PROTECTED : OPTIONS_READ;
}

#endif
