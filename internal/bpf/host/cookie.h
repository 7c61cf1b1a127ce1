/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * cookie.h: SYN-ACKs beyond what egress_half has room for, docs/protocol.md §3.3. The socketID of such a flow is
 * a keyed hash of what its client's first segment will say, so that nothing is kept until that comes. It is for
 * floods: a rate at which entries would be evicted before their clients, perhaps far away, have answered.
 */
#ifndef SCAFFOLD_HOST_COOKIE_H
#define SCAFFOLD_HOST_COOKIE_H

#include "meter.h"

#define HALF_RATE 2000 /* half-open flows a second, and at once, that get an entry: it stays for seconds */
#define CROWDED 75     /* in 2^30 ns: the kernel repeats a SYN-ACK for 63 s */
#define TAG_BITS 12    /* of a cookie: which service of this host; MAX_TAGS of them */
#define MAC_BITS 51    /* the rest below the top bit */

/* tag_of a service address: where its name stands in tags, unless another one of this host stands there. */
static __always_inline __u32 tag_of(const struct addr *service)
{
	return (service->lo ^ service->hi) * 0x9E3779B97F4A7C15ULL >> (64 - TAG_BITS);
}

/* named says whether the tag is the service's, and makes it so where it is nobody's. */
static __always_inline int named(__u32 tag, const struct addr *service)
{
	struct addr *have = bpf_map_lookup_elem(&tags, &tag);

	if (!have)
		return 0;
	if (!have->hi && !have->lo)
		*have = *service;
	return same(have, service);
}

/*
 * bake gives the socketID; client_seq is what the client's next segment begins with, isn the server's. A global function,
 * verified once: it may be called without a key, for all that the verifier knows.
 */
__noinline __u64 bake(const struct flow_key *key, __u32 tag, __u32 client_seq, __u32 isn)
{
	__u32 zero = 0;
	struct host_config *c = bpf_map_lookup_elem(&config, &zero);
	__u64 words[4];

	if (!c || !key)
		return 0;
	words[0] = ADDR(key->remote).hi;
	words[1] = ADDR(key->remote).lo;
	words[2] = (__u64)client_seq << 32 | isn;
	words[3] = (__u64)tag << 32 | (__u32)PORT(key->lport) << 16 | PORT(key->rport);
	return bpf_cpu_to_be64((__u64)tag << MAC_BITS | siphash4(c->secret[0], c->secret[1], words) >> (64 - MAC_BITS)) |
	       SOCKET_BIT;
}

/*
 * crowded: more connections are half open than there is room for, or were while the kernel may still repeat a SYN-ACK
 * that got a cookie, which must have the same one again. A map of an older program has no such meter.
 */
static __always_inline int crowded(void)
{
	__u32 which = METER_HALF, now = bpf_ktime_get_coarse_ns() >> 30 ?: 1;
	struct meter *m = bpf_map_lookup_elem(&meters, &which);

	if (!m)
		return 0;
	if (!token(m, HALF_RATE))
		m->empty = now;
	return m->empty && now - m->empty < CROWDED;
}

/* cookie gives a SYN-ACK its socketID without an entry; 0 where it gets one. */
static __noinline __u64 cookie(const struct packet *p, const struct flow_key *key)
{
	struct addr service = p->src;
	__u32 tag = tag_of(&service);

	if (!crowded() || !named(tag, &service))
		return 0;
	count(HOST_COOKIE);
	return bake(key, tag, p->ack, p->seq);
}

#define SPARE_RATE 500 /* entries a second that datagrams get among the half-open connections, whose own stay for seconds */

/* spare_entry says whether a datagram flow that is not to fill the table may have an entry in the LRU. */
static __always_inline int spare_entry(void)
{
	__u32 kind = BUDGET_SPARE;
	struct meter *m = bpf_map_lookup_elem(&budgets, &kind);

	return m && token(m, SPARE_RATE);
}

/*
 * echo_cookie is the socketID under which a service answers a client's pings, with an entry or without: a connection's
 * cookie with nothing in the place of sequence numbers and the server's port. 0: another service has its tag.
 */
static __noinline __u64 echo_cookie(const struct flow_key *key)
{
	struct addr service = ADDR(key->local);
	__u32 tag = tag_of(&service);

	return named(tag, &service) ? bake(key, tag, 0, 0) : 0;
}

/* pinged: the service that a ping without an entry is for, by the socketID under which that answers. */
static __noinline struct addr *pinged(const struct packet *p)
{
	__u32 tag = bpf_be64_to_cpu(p->dst.lo) >> MAC_BITS & ((1 << TAG_BITS) - 1);
	struct addr *service = bpf_map_lookup_elem(&tags, &tag);
	struct flow_key key __attribute__((aligned(8))) = { .proto = PROTO_ICMPV6 };

	if (!service || !service->hi || !is_peer(&p->src))
		return 0;
	ADDR(key.local) = *service;
	ADDR(key.remote) = p->src;
	PORT(key.rport) = p->sport;
	return bake(&key, tag, 0, 0) == p->dst.lo ? service : 0;
}

/* recall makes the flow of a client's first segment to a cookie. 0: there is one now. */
static __noinline int recall(struct packet *p)
{
	__u64 id = p->dst.lo;
	__u32 tag = bpf_be64_to_cpu(id) >> MAC_BITS & ((1 << TAG_BITS) - 1);
	struct addr *service = bpf_map_lookup_elem(&tags, &tag);
	struct flow_key key __attribute__((aligned(8))) = { .proto = PROTO_TCP };
	struct birth b = { .socket = id, .state = STATE_BOUND, .role = ROLE_SERVER, .slot = NO_SLOT };
	struct place *place = whereabouts();

	if (!service || !service->hi || !place || !is_peer(&p->src))
		return -1;
	ADDR(key.local) = *service;
	ADDR(key.remote) = b.peer = p->src;
	PORT(key.lport) = b.lport = p->dport;
	PORT(key.rport) = p->sport;
	b.isn = bpf_htonl(bpf_ntohl(p->ack) - 1);
	if (bake(&key, tag, p->seq, b.isn) != id)
		return -1;
	for (__u32 i = 0; i < MAX_SLOTS; i++)
		if (*(__u64 *)place->slots[i].locator == p->dst.hi)
			b.slot = i;
	if (b.slot == NO_SLOT)
		return -1;
	policy_of(service, &b);
	if (!has_room(&key, ROLE_SERVER)) {
		count(HOST_PEER_FULL);
		return -1;
	}
	if (make(&key, &b)) {
		count(HOST_FULL);
		return -1;
	}
	count(HOST_COOKIE_TAKEN);
	return 0;
}

#endif
