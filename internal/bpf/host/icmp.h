/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* icmp.h: ICMPv6 errors of our flows, outer and inner packet. */
#ifndef SCAFFOLD_HOST_ICMP_H
#define SCAFFOLD_HOST_ICMP_H

#include "answer.h"
#include "ports.h"
#include "uplink.h"

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
static __noinline int rewrite_error(struct __sk_buff *skb, struct packet *p, struct packet *q,
				    const struct addr outer[2], const struct addr inner[2])
{
	__u32 both = 2 * sizeof(struct addr); /* q->dst follows q->src */
	__s64 diff = bpf_csum_diff((__be32 *)&q->src, both, (__be32 *)inner, both, 0);

	if (bpf_l4_csum_replace(skb, p->l4 + 2, 0, diff, 0) ||
	    bpf_skb_store_bytes(skb, p->l4 + 8 + 8, inner, both, BPF_F_RECOMPUTE_CSUM))
		return -1;
	return rewrite(skb, l2_len, p, &outer[0], &outer[1]);
}

#define EARLY_NS 1000000000ULL

/*
 * early: a router has no route to a connection's peer, which was heard within the last second. Each such error takes
 * back one doubling of the kernel's timer (RFC 6069), so that it sends into nothing again and again, and it sends
 * nothing within a timeout of that: not even when the peer has come elsewhere and the daemon kicks. Later the errors
 * keep the timer from growing further. Without a daemon nobody kicks.
 */
static __always_inline int early(const struct packet *p, const struct ingress_flow *f)
{
	__u64 now;

	if (p->type != ICMP6_UNREACHABLE || p->code != 0 || f->key.proto != PROTO_TCP || f->state != STATE_BOUND)
		return 0;
	now = bpf_ktime_get_ns();
	return now - f->seen < EARLY_NS && daemon_reads(now);
}

/*
 * sent_to: the packet that the error quotes is one that the flow sent. A router may have written another locator on the
 * way, of an instance or of where the peer has gone (docs/protocol.md §3.2, §5.4); the low half is as it left. The
 * peer's kernel, where it answers from its host's own address, quotes what its edge had made of the packet.
 */
static __noinline int sent_to(const struct addr *dst, struct ingress_flow *f)
{
	struct egress_flow *out;

	if (!in_as(dst) && !is_service(dst))
		return 0;
	if (f->state == STATE_CONNECTING)
		return dst->lo == ADDR(f->key.remote).lo;
	if (dst->lo == ADDR(f->peer).lo || same(dst, &ADDR(f->key.remote)))
		return 1;
	out = bpf_map_lookup_elem(&egress_flows, &f->key);
	return out && *(__u64 *)out->birth == *(__u64 *)f->birth && dst->lo == ADDR(out->peer).lo;
}

/*
 * nowhere: a router knew no way to the instance that was chosen, or its neighbour did not answer. Another instance may be
 * reached, and other ways are found within moments; what the instance's own host says is another matter.
 */
static __always_inline int nowhere(const struct packet *p, const struct packet *q, const struct ingress_flow *f)
{
	return p->type == ICMP6_UNREACHABLE && (p->code == 0 || p->code == 3) && f->role == ROLE_CLIENT &&
	       f->state == STATE_CONNECTING && in_as(&q->dst) && p->src.hi != q->dst.hi;
}

/* error_in: the network or the peer says that what this flow sent did not arrive. */
static __noinline int error_in(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	struct packet q;
	struct addr outer[2], inner[2];
	__u64 id = p->dst.lo;
	int lost;

	if (parse_quote(skb, p, &q) || !same(&q.src, &p->dst) || q.proto != f->key.proto || f->state == STATE_LOST)
		return drop(HOST_UNUSABLE_ERROR);
	if (f->state == STATE_BLOCKED)
		return drop(HOST_BLOCKED);
	if (!sent_to(&q.dst, f))
		return drop(HOST_UNUSABLE_ERROR);
	if (early(p, f))
		return drop(HOST_EARLY_ERROR);
	lost = nowhere(p, &q, f);
	inner[0] = outer[1] = ADDR(f->key.local);
	inner[1] = ADDR(f->key.remote);
	/* The peer itself goes by the name under which the socket knows it, a router by its own. */
	outer[0] = same(&p->src, &q.dst) || p->src.lo == inner[1].lo ? inner[1] : p->src;
	if (rewrite_error(skb, p, &q, outer, inner))
		return drop(HOST_REWRITE);
	if (lost) { /* without a daemon, counted as HOST_DAEMON_AWAY, the kernel asks by its next SYN */
		__u32 host = bpf_be64_to_cpu(q.dst.hi) & 0xffff;

		if (hand_over(skb, &f->key, (const __u32 *)f->isn, id, host << 16 | EVENT_REFUSED << 8 | p->code))
			return TC_ACT_SHOT;
		return drop(HOST_HELD);
	}
	/* A program that opens a socket for a datagram that it has announced elsewhere is often a moment late. */
	if (p->type == ICMP6_UNREACHABLE && f->role == ROLE_CLIENT && f->state == STATE_CONNECTING &&
	    (f->key.proto == PROTO_TCP || (f->key.proto == PROTO_UDP && p->code == 4)))
		return hold(skb, f, id, p->code, 0);
	return deliver(f->key.guest);
}

/* turn makes of a packet that arrived one that answers it, or back. */
static __always_inline void turn(struct packet *q)
{
	struct addr src = q->src;
	__u16 port = q->sport;

	q->src = q->dst;
	q->dst = src;
	q->sport = q->dport;
	q->dport = port;
}

/* answerer is the address under which an error leaves, and the slot. Returns the reason if there is none. */
static __noinline int answerer(struct __sk_buff *skb, struct packet *q, struct addr outer[2], __u32 *slot)
{
	struct flow_key key __attribute__((aligned(8))) = {};
	struct place *place = whereabouts();
	struct egress_flow *f;

	if (!place)
		return HOST_NO_UPLINK;
	turn(q);
	if (is_service(&q->dst)) {
		client_key(&key, q, guest_of(skb));
		f = client_flow(&key);
	} else {
		server_key(&key, q, guest_of(skb));
		f = bpf_map_lookup_elem(&egress_flows, &key);
		if (!f)
			f = bpf_map_lookup_elem(&egress_half, &key);
	}
	turn(q);
	*slot = slot_out(skb, place);
	if (f && f->state == STATE_BLOCKED)
		return HOST_BLOCKED;
	if (f && f->state == STATE_BOUND) {
		__u32 own = f->slot;

		if (own >= MAX_SLOTS || (*slot >= MAX_SLOTS && !place->slots[own].ifindex))
			return HOST_NO_UPLINK;
		outer[0] = (struct addr){ *(__u64 *)place->slots[own].locator, *(__u64 *)f->socket };
		outer[1] = ADDR(f->peer);
		if (place->slots[own].ifindex)
			*slot = own;
		return 0;
	}
	if ((f && f->state != STATE_HALF_OPEN) || !is_service(&q->dst) || !is_peer(&q->src))
		return HOST_LEAK;
	if (*slot >= MAX_SLOTS)
		return HOST_NO_UPLINK;
	/* A first packet met no socket: there is no flow yet, the instance itself answers. */
	outer[0] = (struct addr){ *(__u64 *)place->slots[*slot & (MAX_SLOTS - 1)].locator, q->dst.lo };
	outer[1] = q->src;
	return 0;
}

/* error_out: a local socket is gone, or this kernel cannot take what came. */
static __noinline int error_out(struct __sk_buff *skb, struct packet *p)
{
	struct addr ends[3]; /* ours, the peer's, ours: what is quoted went the other way. 512 bytes of stack have to do for all */
	struct place *place = whereabouts();
	__u32 slot = NO_SLOT;
	struct packet q;
	int reason;

	if (parse_quote(skb, p, &q))
		return drop(HOST_UNUSABLE_ERROR);
	reason = answerer(skb, &q, ends, &slot);
	if (reason)
		return drop(reason);
	ends[2] = ends[0];
	if (rewrite_error(skb, p, &q, ends, ends + 1))
		return drop(HOST_REWRITE);
	return place ? by_slot(skb, place, slot) : TC_ACT_UNSPEC;
}

#endif
