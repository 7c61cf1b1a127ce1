/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* icmp.h: ICMPv6 errors of our flows, outer and inner packet. */
#ifndef SCAFFOLD_HOST_ICMP_H
#define SCAFFOLD_HOST_ICMP_H

#include "answer.h"

/* The packet that an error quotes: addresses and ports as far as they are there. */
static __always_inline int parse_quote(struct __sk_buff *skb, const struct packet *p, struct packet *q)
{
	__u8 head[IP6_LEN] __attribute__((aligned(8)));
	__u16 ports[4];

	if (bpf_skb_load_bytes(skb, p->l4 + 8, head, sizeof(head)))
		return -1;
	q->proto = head[6];
	q->src = ADDR(head + 8);
	q->dst = ADDR(head + 24);
	q->l4 = p->l4 + 8 + IP6_LEN;
	q->sport = q->dport = 0;
	if (q->proto == EXT_FRAGMENT) {
		if (bpf_skb_load_bytes(skb, q->l4, head, 8))
			return -1;
		q->proto = head[0];
		q->l4 += 8;
		if (*(__u16 *)(head + 2) & bpf_htons(0xfff8))
			return 0;
	}
	if (bpf_skb_load_bytes(skb, q->l4, ports, sizeof(ports)))
		return 0;
	if (q->proto == PROTO_ICMPV6) {
		q->sport = q->dport = ports[2];
	} else {
		q->sport = ports[0];
		q->dport = ports[1];
	}
	return 0;
}

/*
 * rewrite_error replaces the addresses of the error and of the packet that it quotes. The outer ones count in
 * the pseudo header, the inner ones as data. The quoted transport checksum may stay wrong: nobody checks it.
 */
static __always_inline int rewrite_error(struct __sk_buff *skb, struct packet *p, struct packet *q,
					 const struct addr outer[2], const struct addr inner[2])
{
	struct addr from[2] = { q->src, q->dst }, to[2] = { inner[0], inner[1] };
	__s64 diff = bpf_csum_diff((__be32 *)from, sizeof(from), (__be32 *)to, sizeof(to), 0);

	if (bpf_l4_csum_replace(skb, p->l4 + 2, 0, diff, 0) ||
	    bpf_skb_store_bytes(skb, p->l4 + 8 + 8, to, sizeof(to), BPF_F_RECOMPUTE_CSUM))
		return -1;
	return rewrite(skb, l2_len, p, &outer[0], &outer[1]);
}

/* error_in: the network or the peer says that what this flow sent did not arrive. */
static __noinline int error_in(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	struct packet q;
	struct addr outer[2], inner[2];
	__u64 id = p->dst.lo;

	if (parse_quote(skb, p, &q) || !same(&q.src, &p->dst) || q.proto != f->key.proto)
		return drop(HOST_UNUSABLE_ERROR);
	inner[0] = outer[1] = ADDR(f->key.local);
	inner[1] = ADDR(f->key.remote);
	/* The peer itself goes by the name under which the socket knows it, a router by its own. */
	outer[0] = same(&p->src, &q.dst) || p->src.lo == inner[1].lo ? inner[1] : p->src;
	if (rewrite_error(skb, p, &q, outer, inner))
		return drop(HOST_REWRITE);
	/* A program that opens a socket for a datagram that it has announced elsewhere is often a moment late. */
	if (p->type == ICMP6_UNREACHABLE && f->role == ROLE_CLIENT && f->state == STATE_CONNECTING &&
	    (f->key.proto == PROTO_TCP || (f->key.proto == PROTO_UDP && p->code == 4)))
		return hold(skb, f, id, p->code);
	return TC_ACT_UNSPEC;
}

/* error_out: a local socket is gone, or this kernel cannot take what came. */
static __noinline int error_out(struct __sk_buff *skb, struct packet *p, __u64 locator)
{
	struct flow_key key __attribute__((aligned(8))) = {};
	struct packet q, seen;
	struct addr outer[2], inner[2];
	struct egress_flow *f;

	if (parse_quote(skb, p, &q))
		return drop(HOST_UNUSABLE_ERROR);
	seen.src = q.dst;
	seen.dst = q.src;
	seen.sport = q.dport;
	seen.dport = q.sport;
	seen.proto = q.proto;
	if (is_service(&q.src))
		client_key(&key, &seen);
	else
		server_key(&key, &seen);
	f = bpf_map_lookup_elem(&egress_flows, &key);
	if (f && f->state == STATE_BOUND) {
		outer[0] = (struct addr){ locator, *(__u64 *)f->socket };
		outer[1] = ADDR(f->peer);
		inner[0] = outer[1];
	} else if (!f && is_service(&q.dst) && is_peer(&q.src)) {
		/* A first packet met no socket: there is no flow yet, the instance itself answers. */
		outer[0] = (struct addr){ locator, q.dst.lo };
		outer[1] = p->dst;
		inner[0] = q.src;
	} else {
		return drop(HOST_LEAK);
	}
	inner[1] = outer[0];
	return rewrite_error(skb, p, &q, outer, inner) ? drop(HOST_REWRITE) : TC_ACT_UNSPEC;
}

#endif
