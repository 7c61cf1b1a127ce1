/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* egress.h: what local sockets send. No service or identity address leaves as a source. */
#ifndef SCAFFOLD_HOST_EGRESS_H
#define SCAFFOLD_HOST_EGRESS_H

#include "dying.h"
#include "fragment.h"
#include "icmp.h"

#define LABEL bpf_htonl(0x000fffff)
#define DSCP bpf_htonl(0x0fc00000)

/* clamp_mss keeps the MSS of a SYN or SYN-ACK within the uplink's MTU. */
static __noinline int clamp_mss(struct __sk_buff *skb, __u32 l4, __u32 mtu)
{
	__u16 limit = bpf_htons(mtu - IP6_LEN - 20);
	__u32 off = l4 + 20, end;
	__u8 words, option[2];
	__u16 mss;

	if (mtu < 1280 || bpf_skb_load_bytes(skb, l4 + 12, &words, 1))
		return 0;
	end = l4 + (words >> 4) * 4;
	for (int i = 0; i < 20 && off + 4 <= end; i++) {
		if (bpf_skb_load_bytes(skb, off, option, 2) || option[0] == 0)
			return 0;
		if (option[0] == 2)
			break;
		off += option[0] == 1 ? 1 : option[1];
	}
	if (off + 4 > end || bpf_skb_load_bytes(skb, off, option, 2) || option[0] != 2 ||
	    bpf_skb_load_bytes(skb, off + 2, &mss, 2) || bpf_ntohs(mss) <= bpf_ntohs(limit))
		return 0;
	if ((off - l4) & 1) /* straddles two words of the checksum */
		bpf_l4_csum_replace(skb, l4 + 16, __builtin_bswap16(mss), __builtin_bswap16(limit), 2);
	else
		bpf_l4_csum_replace(skb, l4 + 16, mss, limit, 2);
	return bpf_skb_store_bytes(skb, off + 2, &limit, 2, BPF_F_RECOMPUTE_CSUM);
}

/* leave writes the wire addresses; the socket's are gone afterwards. */
static __always_inline int leave(struct __sk_buff *skb, struct packet *p, const struct uplink *up,
				 const struct addr *src, const struct addr *dst, __u32 word)
{
	__u32 mtu = up->mtu;

	if (p->fragment == FIRST_FRAGMENT && remember_fragment(p, src, dst, word))
		return drop(HOST_FRAGMENT);
	if (p->proto == PROTO_TCP && p->flags & TCP_SYN && mtu && clamp_mss(skb, p->l4, mtu))
		return drop(HOST_REWRITE);
	if (set_word(skb, l2_len, p, word) || rewrite(skb, l2_len, p, src, dst))
		return drop(HOST_REWRITE);
	return TC_ACT_UNSPEC;
}

/* word_of: an unresolved packet's flow label is its retry count, 0 when it leaves its host. */
static __always_inline __u32 word_of(__u32 word, int resolved, __u8 dscp)
{
	if (!resolved)
		word &= ~LABEL;
	if (dscp)
		word = (word & ~DSCP) | bpf_htonl((__u32)dscp << 20);
	return word;
}

/*
 * cut_off: the process behind the socket died, and the kernel ends its connection as if all had been said. What
 * was sent before still goes out; then, in the place of the FIN, an RST. A FIN that shares its segment with data
 * is only taken away: when the data has been acknowledged the kernel sends it again, alone.
 */
static __noinline int cut_off(struct __sk_buff *skb, struct packet *p)
{
	__u16 was, now;
	__u32 end;

	if (bpf_skb_load_bytes(skb, p->l4 + 12, &was, 2))
		return -1;
	end = p->l4 + (bpf_ntohs(was) >> 12) * 4;
	now = was & ~bpf_htons(TCP_FIN | TCP_PSH);
	if (skb->len <= end)
		now |= bpf_htons(TCP_RST);
	p->flags = bpf_ntohs(now);
	count(HOST_CUT_OFF);
	if (bpf_l4_csum_replace(skb, p->l4 + 16, was, now, 2))
		return -1;
	return bpf_skb_store_bytes(skb, p->l4 + 12, &now, 2, BPF_F_RECOMPUTE_CSUM);
}

static __always_inline void note_end(const struct packet *p, __u64 id)
{
	if (p->proto == PROTO_TCP && p->flags & (TCP_FIN | TCP_RST))
		mark_end(id, (p->flags & TCP_RST ? END_RST : 0) | (p->flags & TCP_FIN ? END_FIN_OUT : 0));
}

/* known sends a packet of a flow that has an entry. */
static __always_inline int known(struct __sk_buff *skb, struct packet *p, const struct uplink *up,
				 struct egress_flow *f)
{
	struct addr src = { *(__u64 *)up->locator, *(__u64 *)f->socket }, dst = ADDR(f->peer);
	__u32 word = word_of(p->word, !is_service(&dst), f->dscp);

	f->seen = bpf_ktime_get_coarse_ns();
	if (p->proto == PROTO_TCP && p->flags & TCP_FIN && skb->mark == MARK_DYING && f->role == ROLE_SERVER &&
	    cut_off(skb, p))
		return drop(HOST_REWRITE);
	note_end(p, src.lo);
	return leave(skb, p, up, &src, &dst, word);
}

/* first sends the first packet of a new flow. */
static __noinline int first(struct __sk_buff *skb, struct packet *p, const struct uplink *up, struct flow_key *key,
			    struct birth *b)
{
	struct addr src = { *(__u64 *)up->locator };

	if (make(key, b))
		return drop(HOST_FULL);
	src.lo = b->socket;
	return leave(skb, p, up, &src, &b->peer, word_of(p->word, !is_service(&b->peer), b->dscp));
}

/* stateless leaves as the instance itself: its suffix stands for it. */
static __noinline int stateless(struct __sk_buff *skb, struct packet *p, const struct uplink *up)
{
	struct addr src = { *(__u64 *)up->locator, p->src.lo }, dst = p->dst;

	return leave(skb, p, up, &src, &dst, word_of(p->word, !is_service(&dst), 0));
}

/* dialled refuses, on this host, what a program sends to an address that it once saw as a peer. */
static __noinline int dialled(struct __sk_buff *skb, struct packet *p)
{
	struct flow_key key __attribute__((aligned(8))) = {};
	struct addr from = p->dst;

	if (!is_syn(p))
		return drop(HOST_DIALLED_PEER);
	client_key(&key, p);
	if (!refuse(skb, l2_len, p, &from, 3))
		hand_over(skb, &key, &p->seq, 0, EVENT_REFUSED << 8 | 3);
	return drop(HOST_DIALLED_PEER);
}

static __always_inline int new_client(struct __sk_buff *skb, struct packet *p, const struct uplink *up,
				 struct flow_key *key)
{
	struct birth b = { .peer = p->dst, .state = STATE_CONNECTING, .isn = p->seq, .lport = p->sport,
			   .role = ROLE_CLIENT };

	policy_of(&p->dst, &b);
	if (p->proto != PROTO_TCP)
		b.owner = bpf_get_socket_cookie(skb);
	if (b.datagrams == DATAGRAMS_UNSET && p->proto == PROTO_UDP && is_service(&p->src))
		return stateless(skb, p, up);
	return first(skb, p, up, key, &b);
}

/* to_service: a client's packet. */
static __always_inline int to_service(struct __sk_buff *skb, struct packet *p, const struct uplink *up)
{
	struct flow_key key __attribute__((aligned(8))) = {};
	struct egress_flow *f;

	if (p->proto != PROTO_TCP && p->proto != PROTO_UDP && !is_echo(p, ICMP6_ECHO))
		return drop(HOST_LEAK);
	client_key(&key, p);
	f = bpf_map_lookup_elem(&egress_flows, &key);
	if (p->proto == PROTO_TCP) {
		if (f && is_syn(p) && *(__u32 *)f->isn != p->seq) {
			forget(&key, f); /* the port has come back: another connection */
			f = 0;
		}
		if (!f && !is_syn(p))
			return drop(HOST_NO_FLOW_OUT);
	} else if (f && orphaned(skb, f)) {
		forget(&key, f);
		f = 0;
	}
	return f ? known(skb, p, up, f) : new_client(skb, p, up, &key);
}

/* another_port notes from which port a UDP server answers: the client may write to it. */
static __noinline void another_port(struct egress_flow *f, __u16 port)
{
	__u64 id = *(__u64 *)f->socket;
	struct ingress_flow *in = bpf_map_lookup_elem(&ingress_flows, &id);

	PORT(f->alt_port) = port;
	if (in)
		PORT(in->alt_port) = port;
}

static __always_inline int new_server(struct __sk_buff *skb, struct packet *p, const struct uplink *up,
				 struct flow_key *key)
{
	struct birth b = { .peer = p->dst, .state = STATE_BOUND, .isn = p->seq, .lport = p->sport,
			   .role = ROLE_SERVER };

	policy_of(&p->src, &b);
	if (p->proto == PROTO_TCP) {
		if (is_syn(p))
			return dialled(skb, p);
		if (p->flags & TCP_RST)
			return stateless(skb, p, up); /* a connecting client is refused */
		if (!is_syn_ack(p))
			return drop(HOST_NO_FLOW_OUT);
		b.state = STATE_HALF_OPEN;
	}
	return first(skb, p, up, key, &b);
}

/* from_service: a server's packet to the frozen address of its peer. */
static __always_inline int from_service(struct __sk_buff *skb, struct packet *p, const struct uplink *up)
{
	struct flow_key key __attribute__((aligned(8))) = {};
	struct egress_flow *f;

	if (p->proto != PROTO_TCP && p->proto != PROTO_UDP && !is_echo(p, ICMP6_ECHO_REPLY))
		return drop(HOST_LEAK);
	server_key(&key, p);
	f = bpf_map_lookup_elem(&egress_flows, &key);
	if (!f && p->proto == PROTO_TCP)
		f = bpf_map_lookup_elem(&egress_half, &key);
	if (f) {
		if (p->proto == PROTO_UDP && PORT(f->alt_port) != p->sport)
			another_port(f, p->sport);
		return known(skb, p, up, f);
	}
	if (is_peer(&p->dst))
		return new_server(skb, p, up, &key);
	if (p->proto == PROTO_UDP && in_as(&p->dst) && p->dst.lo != HOST_LOW)
		return stateless(skb, p, up); /* a source that was left unset */
	return drop(HOST_LEAK);
}

/* from_host: an address of the host itself as source, a flow's address as destination. */
static __always_inline int from_host(struct __sk_buff *skb, struct packet *p)
{
	if (is_identity(&p->src) && !is_peer(&p->dst))
		return drop(HOST_LEAK);
	if (p->proto == PROTO_TCP || is_echo(p, ICMP6_ECHO) || p->proto == PROTO_UDP) {
		if (p->proto == PROTO_UDP && p->dport == bpf_htons(MESSAGE_PORT) && !is_identity(&p->src))
			return TC_ACT_UNSPEC;
		return dialled(skb, p);
	}
	return is_identity(&p->src) ? drop(HOST_LEAK) : TC_ACT_UNSPEC;
}

static __always_inline int egress(struct __sk_buff *skb)
{
	struct packet p;
	struct uplink *up;

	if (parse_network(skb, l2_len, &p))
		return TC_ACT_UNSPEC;
	if (!is_service(&p.dst) && !is_service(&p.src) && !is_identity(&p.src) && !is_peer(&p.dst))
		return TC_ACT_UNSPEC;
	/* What is only passing through, also our own bounces and answers, is somebody else's flow. */
	if (skb->ingress_ifindex && !is_service(&p.src) && !is_identity(&p.src))
		return TC_ACT_UNSPEC;
	if (parse_ports(skb, l2_len, &p))
		return drop(HOST_MALFORMED);
	if (!is_service(&p.dst) && !is_service(&p.src) && !is_icmp_error(&p))
		return from_host(skb, &p);
	up = uplink_of(skb->ifindex);
	if (!up || !*(__u64 *)up->locator)
		return drop(HOST_NO_UPLINK);
	if (p.fragment == LATER_FRAGMENT)
		return later_fragment(skb, &p);
	if (is_icmp_error(&p) && (is_service(&p.src) || is_identity(&p.src)))
		return error_out(skb, &p, *(__u64 *)up->locator);
	if (is_service(&p.dst))
		return to_service(skb, &p, up);
	return is_service(&p.src) ? from_service(skb, &p, up) : TC_ACT_UNSPEC;
}

#endif
