/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ask.h: a client asks a host that it has a flow with, and not the network, for another port of the service,
 * docs/protocol.md §3.5. The host that opened the port knows of it before its controller and all routers do.
 */
#ifndef SCAFFOLD_HOST_ASK_H
#define SCAFFOLD_HOST_ASK_H

#include "csum.h"
#include "daemon.h"

#define LABEL bpf_htonl(0x000fffff)
#define MARK_LABELLED 0x5cb0 /* labelled in inject.go: the daemon's; a user cannot set it */
#define MARK_ASKED 0x5cb1    /* asked in inject.go: the same, and the label names the host to send it to */

/* mark_of: what leaves a guest's namespace loses its mark, and keeps its socket. */
static __always_inline __u32 mark_of(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	sk = sk ? bpf_sk_fullsock(sk) : 0;
	return sk ? sk->mark : 0;
}

/* sender_mark is the mark of the socket that the packet is from, in this namespace or in a guest's. */
static __noinline __u32 sender_mark(struct __sk_buff *skb)
{
	__u32 mark = skb->mark;

	barrier_var(mark); /* or the compiler makes one load of two addresses, which the verifier refuses */
	return guest_of(skb) ? mark_of(skb) : mark;
}

/*
 * named_host is the locator of the host that an unresolved packet is for, by its label, if the daemon says so; 0: of none.
 * No router returns a packet for the last time to who returned it: so its host knows such a packet from one that the
 * network sent it, and one of the version before refuses it at once.
 */
static __noinline __u64 named_host(struct __sk_buff *skb, __u32 word)
{
	__u32 label = bpf_ntohl(word & LABEL);

	if (sender_mark(skb) != MARK_ASKED || (label & MAX_RETRY) != MAX_RETRY)
		return 0;
	count(HOST_ASKED);
	return as_prefix | bpf_cpu_to_be64(label >> 4);
}

/* remember_peer remembers whom a flow of this host, or of its guest, is bound to. */
static __noinline void remember_peer(const struct flow_key *flow, __u64 locator)
{
	struct recent_peer_key k __attribute__((aligned(8))) = {
		.guest = flow->guest, .nth = bpf_be64_to_cpu(locator) * 0x9E3779B97F4A7C15ULL >> 61,
	};
	struct recent_peer *have, fresh;
	__u64 now = bpf_ktime_get_coarse_ns();

	ADDR(k.service) = ADDR(flow->remote);
	have = bpf_map_lookup_elem(&recent_peers, &k);
	/* The flow that lasts is the one over which ports are told: not each of those that come to such ports. */
	if (have && *(__u64 *)have->locator == locator && bpf_map_lookup_elem(&egress_flows, &have->flow)) {
		have->at = now;
		return;
	}
	__builtin_memset(&fresh, 0, sizeof(fresh));
	fresh.flow = *flow;
	*(__u64 *)fresh.locator = locator;
	fresh.at = now;
	bpf_map_update_elem(&recent_peers, &k, &fresh, BPF_ANY);
}

/* judged_as is what the daemon says of the triple to who asks this host itself, enum judgement; 0: nothing. */
static __noinline __u32 judged_as(const struct packet *p)
{
	struct instance_key k __attribute__((aligned(8))) = { .proto = p->proto };
	__u32 *j;

	__builtin_memcpy(k.suffix, &p->dst.lo, sizeof(k.suffix));
	PORT(k.port) = p->dport;
	j = bpf_map_lookup_elem(&judged, &k);
	return j ? *j : 0;
}

/*
 * opened_tcp and opened_udp: a socket of the namespace has the service's own address and the port. One that has the
 * wildcard address serves no name, but in some guests. Two functions, since the verifier wants one kind of socket at one
 * instruction. The kernel gives a socket on the address itself before one on the wildcard address, and gives connected
 * ones to their peers alone, which have a port: none is named here.
 */
static __noinline int opened_tcp(struct __sk_buff *skb, struct bpf_sock_tuple *t, __u64 netns, int wildcard)
{
	struct bpf_sock *sk = bpf_skc_lookup_tcp(skb, t, sizeof(t->ipv6), netns, 0);
	int own;

	if (!sk)
		return 0;
	own = sk->src_ip6[0] == t->ipv6.daddr[0] || (wildcard && !sk->src_ip6[0]);
	bpf_sk_release(sk);
	return own;
}

static __noinline int opened_udp(struct __sk_buff *skb, struct bpf_sock_tuple *t, __u64 netns)
{
	struct bpf_sock *sk = bpf_sk_lookup_udp(skb, t, sizeof(t->ipv6), netns, 0);
	int own;

	if (!sk)
		return 0;
	own = sk->src_ip6[0] == t->ipv6.daddr[0];
	bpf_sk_release(sk);
	return own;
}

/* opened says whether a namespace has a socket that serves what the packet is for: what the daemon takes for an instance. */
static __noinline int opened(struct __sk_buff *skb, const struct packet *p, __u64 upper, __u64 netns, int wildcard)
{
	struct bpf_sock_tuple t = {};

	*(__u64 *)t.ipv6.daddr = upper;
	*(__u64 *)(t.ipv6.daddr + 2) = p->dst.lo;
	t.ipv6.dport = p->dport;
	return p->proto == PROTO_TCP ? opened_tcp(skb, &t, netns, wildcard) : opened_udp(skb, &t, netns);
}

/* opened_by asks in the namespace of a guest, 0: of the host. unknown: the answer where the kernel cannot be asked. */
static __noinline int opened_by(struct __sk_buff *skb, const struct packet *p, __u64 upper, __u32 guest, int unknown)
{
	struct guest_space *at;

	if (!guest)
		return opened(skb, p, upper, BPF_F_CURRENT_NETNS, 0);
	at = bpf_map_lookup_elem(&guest_spaces, &guest);
	if (!at || at->listens == GUEST_UNKNOWN)
		return unknown;
	return opened(skb, p, upper, at->netns, at->listens == GUEST_WILDCARD);
}

#define ASKED_GUESTS 4

/* opened_inside: a guest that serves the service on another port has opened this one; of the first few. */
static __noinline int opened_inside(struct __sk_buff *skb, const struct packet *p, __u64 upper)
{
	struct owner_key k __attribute__((aligned(8))) = {};

	__builtin_memcpy(k.suffix, &p->dst.lo, sizeof(k.suffix));
#pragma unroll /* the verifier does not follow a counter in memory */
	for (__u32 i = 0; i < ASKED_GUESTS; i++) {
		__u32 *guest;

		k.nth = i;
		guest = bpf_map_lookup_elem(&owners, &k);
		if (!guest)
			return 0;
		if (*guest && opened_by(skb, p, upper, *guest, 0))
			return 1;
	}
	return 0;
}

/*
 * put_off: who asks this host itself for a port that is not admitted is to ask again. A program has opened it, and the
 * daemon, which alone says whether it may serve and who may connect, has not got to it yet.
 */
static __noinline int put_off(struct __sk_buff *skb, const struct packet *p, __u64 upper)
{
	if (p->fragment != WHOLE || judged_as(p) == JUDGED_UNFIT || !daemon_lives(bpf_ktime_get_ns()))
		return 0;
	return opened_by(skb, p, upper, 0, 0) || opened_inside(skb, p, upper);
}

#endif
