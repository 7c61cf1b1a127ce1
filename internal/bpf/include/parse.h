/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* parse.h: from a packet's bytes to the few fields that decide what becomes of it. */
#ifndef SCAFFOLD_PARSE_H
#define SCAFFOLD_PARSE_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define IP6_LEN 40
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ICMPV6 58

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10

#define ICMP6_UNREACHABLE 1
#define ICMP6_TOO_BIG 2
#define ICMP6_PARAMETER 4 /* the last of the errors */
#define ICMP6_ECHO 128
#define ICMP6_ECHO_REPLY 129

#define EXT_HOP 0
#define EXT_ROUTING 43
#define EXT_FRAGMENT 44
#define EXT_OPTIONS 60
#define MAX_EXTENSIONS 6

/* An IPv6 address as it lies in the packet: hi is the locator, lo the suffix or socketID. */
struct addr {
	__u64 hi;
	__u64 lo;
};

/* The top bit of the low half: a socketID. In network order that is the top bit of the first byte. */
#define SOCKET_BIT bpf_cpu_to_be64(1ULL << 63)
#define HOST_LOW bpf_cpu_to_be64(1)

static __always_inline int is_socket(const struct addr *a)
{
	return (a->lo & SOCKET_BIT) != 0;
}

static __always_inline int same(const struct addr *a, const struct addr *b)
{
	return a->hi == b->hi && a->lo == b->lo;
}

enum { WHOLE, FIRST_FRAGMENT, LATER_FRAGMENT };

/* All multi-byte fields are in network order, except offsets. */
struct packet {
	struct addr src, dst;
	__u32 word;         /* version, traffic class, flow label */
	__u32 l4;           /* where the transport header starts, from the start of the data */
	__u32 seq, ack;     /* TCP */
	__u32 fragment_id;
	__u16 payload_len;  /* IPv6 payload length */
	__u16 sport, dport; /* an echo's identifier stands in both */
	__u8  proto;
	__u8  fragment;     /* WHOLE, FIRST_FRAGMENT, LATER_FRAGMENT */
	__u8  flags;        /* TCP flags */
	__u8  type, code;   /* ICMPv6 */
	__u8  hop_limit;
};

/* parse_network reads the fixed header only: cheap enough for every packet of the machine. */
static __always_inline int parse_network(struct __sk_buff *skb, __u32 l2, struct packet *p)
{
	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return -1;
	if ((__u64)skb->data + l2 + IP6_LEN > (__u64)skb->data_end && bpf_skb_pull_data(skb, l2 + IP6_LEN))
		return -1;
	void *ip = (void *)(__u64)skb->data + l2;

	if (ip + IP6_LEN > (void *)(__u64)skb->data_end)
		return -1;
	p->word = *(__u32 *)ip;
	p->payload_len = *(__u16 *)(ip + 4);
	p->proto = *(__u8 *)(ip + 6);
	p->hop_limit = *(__u8 *)(ip + 7);
	p->src = (struct addr){ *(__u64 *)(ip + 8), *(__u64 *)(ip + 16) };
	p->dst = (struct addr){ *(__u64 *)(ip + 24), *(__u64 *)(ip + 32) };
	p->l4 = l2 + IP6_LEN;
	p->fragment = WHOLE;
	p->fragment_id = p->seq = p->ack = 0;
	p->sport = p->dport = 0;
	p->flags = p->type = p->code = 0;
	return 0;
}

/* skip_extensions moves p->l4 and p->proto past the extension headers that hosts send. */
static __always_inline int skip_extensions(struct __sk_buff *skb, struct packet *p)
{
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		__u8 head[8];

		switch (p->proto) {
		case EXT_HOP:
		case EXT_ROUTING:
		case EXT_OPTIONS:
		case EXT_FRAGMENT:
			break;
		default:
			return 0;
		}
		if (bpf_skb_load_bytes(skb, p->l4, head, sizeof(head)))
			return -1;
		if (p->proto == EXT_FRAGMENT) {
			__u16 where = *(__u16 *)(head + 2);

			p->fragment = where & bpf_htons(0xfff8) ? LATER_FRAGMENT :
				      where & bpf_htons(1) ? FIRST_FRAGMENT : WHOLE;
			p->fragment_id = *(__u32 *)(head + 4);
			p->l4 += 8;
		} else {
			p->l4 += (head[1] + 1) * 8;
		}
		p->proto = head[0];
		if (p->fragment == LATER_FRAGMENT)
			return 0;
	}
	return -1;
}

static __always_inline int parse_tcp(struct __sk_buff *skb, struct packet *p)
{
	__u32 head[5];

	if (bpf_skb_load_bytes(skb, p->l4, head, sizeof(head)))
		return -1;
	p->sport = *(__u16 *)head;
	p->dport = *((__u16 *)head + 1);
	p->seq = head[1];
	p->ack = head[2];
	p->flags = *((__u8 *)head + 13);
	return 0;
}

static __always_inline int parse_udp(struct __sk_buff *skb, struct packet *p)
{
	__u16 head[4];

	if (bpf_skb_load_bytes(skb, p->l4, head, sizeof(head)))
		return -1;
	p->sport = head[0];
	p->dport = head[1];
	return 0;
}

static __always_inline int parse_icmp(struct __sk_buff *skb, struct packet *p)
{
	__u8 head[8];

	if (bpf_skb_load_bytes(skb, p->l4, head, sizeof(head)))
		return -1;
	p->type = head[0];
	p->code = head[1];
	if (p->type == ICMP6_ECHO || p->type == ICMP6_ECHO_REPLY)
		p->sport = p->dport = *(__u16 *)(head + 4);
	return 0;
}

/* parse_transport follows parse_network. A later fragment has no ports; unknown protocols have none either. */
static __always_inline int parse_transport(struct __sk_buff *skb, struct packet *p)
{
	if (p->proto != PROTO_TCP && p->proto != PROTO_UDP && p->proto != PROTO_ICMPV6 && skip_extensions(skb, p))
		return -1;
	if (p->fragment == LATER_FRAGMENT)
		return 0;
	switch (p->proto) {
	case PROTO_TCP:
		return parse_tcp(skb, p);
	case PROTO_UDP:
		return parse_udp(skb, p);
	case PROTO_ICMPV6:
		return parse_icmp(skb, p);
	}
	return 0;
}

/* parse_plain_tcp reads a header that follows the IPv6 header and lies in the linear data: nearly all of them. */
static __always_inline int parse_plain_tcp(struct __sk_buff *skb, __u32 l2, struct packet *p)
{
	void *tcp = (void *)(__u64)skb->data + l2 + IP6_LEN;

	if (tcp + 20 > (void *)(__u64)skb->data_end)
		return parse_tcp(skb, p);
	p->sport = *(__u16 *)tcp;
	p->dport = *(__u16 *)(tcp + 2);
	p->seq = *(__u32 *)(tcp + 4);
	p->ack = *(__u32 *)(tcp + 8);
	p->flags = *(__u8 *)(tcp + 13);
	return 0;
}

/* parse_ports is parse_transport, quicker for most packets of a host. */
static __always_inline int parse_ports(struct __sk_buff *skb, __u32 l2, struct packet *p)
{
	return p->proto == PROTO_TCP ? parse_plain_tcp(skb, l2, p) : parse_transport(skb, p);
}

static __always_inline int is_icmp_error(const struct packet *p)
{
	return p->proto == PROTO_ICMPV6 && p->fragment == WHOLE && p->type >= ICMP6_UNREACHABLE &&
	       p->type <= ICMP6_PARAMETER;
}

/* A SYN that opens a connection: no ACK, no RST. */
static __always_inline int is_syn(const struct packet *p)
{
	return p->proto == PROTO_TCP && (p->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN;
}

static __always_inline int is_syn_ack(const struct packet *p)
{
	return p->proto == PROTO_TCP && (p->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == (TCP_SYN | TCP_ACK);
}

#endif
