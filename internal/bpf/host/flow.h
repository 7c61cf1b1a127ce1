/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* flow.h: making, finding and ending flows. */
#ifndef SCAFFOLD_HOST_FLOW_H
#define SCAFFOLD_HOST_FLOW_H

#include "drop.h"
#include "maps.h"
#include "room.h"
#include "siphash.h"

#define ADDR(bytes) (*(struct addr *)(bytes))
#define PORT(bytes) (*(__u16 *)(bytes))
#define AS_MASK bpf_cpu_to_be64(~0xffffULL)

static __always_inline int is_service(const struct addr *a)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (__u32)a->hi == services_prefix;
#else
	return (__u32)(a->hi >> 32) == services_prefix;
#endif
}

static __always_inline int in_as(const struct addr *a)
{
	return (a->hi & AS_MASK) == as_prefix;
}

static __always_inline struct place *whereabouts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&places, &zero);
}

/* slot_at gives the index of the interface's slot, or NO_SLOT: nothing of ours leaves there. */
static __always_inline __u32 slot_at(const struct place *place, __u32 ifindex)
{
	for (__u32 i = 0; i < MAX_SLOTS; i++)
		if (place->slots[i].ifindex == ifindex)
			return i;
	return NO_SLOT;
}

/* accepted says whether what comes for the locator is ours. */
static __always_inline int accepted(__u64 locator)
{
	struct place *place = whereabouts();

	if (!place)
		return 0;
	for (int i = 0; i < MAX_LOCATORS; i++)
		if (*(__u64 *)place->locators[i] == locator)
			return 1;
	return 0;
}

static __always_inline int is_identity(const struct addr *a)
{
	return a->hi == identities;
}

/* A peer's wire address: what a flow may be bound to. */
static __always_inline int is_peer(const struct addr *a)
{
	return in_as(a) && is_socket(a);
}

static __always_inline int is_echo(const struct packet *p, __u8 type)
{
	return p->proto == PROTO_ICMPV6 && p->type == type;
}

/*
 * guest_of is the number of the guest that sends the packet, on its way out: from_guest writes it there. The verifier
 * passes over all that is for guests where there are none.
 */
static __always_inline __u32 guest_of(const struct __sk_buff *skb)
{
	return for_guests ? skb->cb[0] : 0;
}

/* slot_out is the slot by which a new flow leaves: the interface at hand, for a guest the one that is preferred. */
static __always_inline __u32 slot_out(struct __sk_buff *skb, const struct place *place)
{
	__u32 link = skb->ifindex, zero = 0, *preferred;

	if (guest_of(skb)) {
		preferred = bpf_map_lookup_elem(&guest_links, &zero);
		link = preferred ? *preferred : 0;
	}
	return link ? slot_at(place, link) : NO_SLOT;
}

/* deliver lets the kernel go on with what arrived, or takes it over to the guest that it is for. */
static __noinline int deliver(__u32 guest)
{
	__u32 *link;

	if (!guest)
		return TC_ACT_UNSPEC;
	link = bpf_map_lookup_elem(&guest_links, &guest);
	if (!link || !*link)
		return drop(HOST_NO_GUEST);
	return bpf_redirect_peer(*link, 0);
}

/* Keys of the flow that a packet from a local socket belongs to; the caller has zeroed them. */
static __always_inline void client_key(struct flow_key *k, const struct packet *p, __u32 guest)
{
	k->guest = guest;
	ADDR(k->local) = p->src;
	ADDR(k->remote) = p->dst;
	PORT(k->lport) = p->sport;
	PORT(k->rport) = p->proto == PROTO_ICMPV6 ? 0 : p->dport;
	k->proto = p->proto;
}

static __always_inline void server_key(struct flow_key *k, const struct packet *p, __u32 guest)
{
	k->guest = guest;
	ADDR(k->local) = p->src;
	ADDR(k->remote) = p->dst;
	PORT(k->lport) = p->proto == PROTO_TCP ? p->sport : 0;
	PORT(k->rport) = p->dport;
	k->proto = p->proto;
}

/*
 * new_socket gives 63 bits that nobody without the secret can predict, in network order: a keyed hash over
 * numbers that never repeat. bpf_get_prandom_u32 is a linear generator; five of its outputs betray the rest.
 */
static __always_inline __u64 new_socket(void)
{
	__u32 zero = 0;
	struct host_config *c = bpf_map_lookup_elem(&config, &zero);
	__u64 *n = bpf_map_lookup_elem(&ids, &zero);

	if (!c || !n)
		return 0;
	*n += 1;
	return bpf_cpu_to_be64(siphash(c->secret[0], c->secret[1],
				       (__u64)bpf_get_smp_processor_id() << 48 | *n)) | SOCKET_BIT;
}

/* What make needs to know beside the key. */
struct birth {
	struct addr peer;
	__u64 locator;
	__u64 socket; /* result, or 0 for a new one */
	__u64 owner;
	__u32 state;
	__u32 isn;
	__u16 lport;
	__u8  role;
	__u8  datagrams;
	__u8  dscp;
	__u8  slot;
	__u8  spare; /* in the LRU, where others may need its room */
	__u8  keep;  /* it gets an entry */
};

static __always_inline void policy_of(const struct addr *service, struct birth *b)
{
	struct policy *policy = bpf_map_lookup_elem(&policies, service);

	b->datagrams = policy ? policy->datagrams : DATAGRAMS_BOUND;
	b->dscp = policy ? policy->dscp : 0;
}

/* date notes when a flow began. */
static __always_inline void date(struct egress_flow *f)
{
	__u32 born = (f->seen >> 29 & 0xffffff) ?: 1;

	f->born[0] = born;
	f->born[1] = born >> 8;
	f->born[2] = born >> 16;
}

/*
 * make enters a flow into both maps and sets b->socket. Ingress first: its answer may be quick. A global function: verified
 * once, not for each kind of flow, which was a quarter of what it went through in edge_egress. The maps get the key that it has copied:
 * Linux 6.1 takes none from a caller's frame here.
 */
__noinline int make(const struct flow_key *from, struct birth *b)
{
	__u32 zero = 0;
	struct newborn *n = bpf_map_lookup_elem(&newborns, &zero);
	struct flow_key *key;
	__u64 id;

	if (!from || !b || !n)
		return -1;
	id = b->socket ?: new_socket();
	if (!id)
		return -1;
	__builtin_memset(n, 0, sizeof(*n));
	key = &n->in.key;
	*key = *from;
	n->in.seen = n->out.seen = bpf_ktime_get_coarse_ns();
	date(&n->out);
	n->in.state = n->out.state = b->state;
	n->in.role = n->out.role = b->role;
	n->in.datagrams = n->out.datagrams = b->datagrams;
	n->out.proto = key->proto;
	n->out.dscp = b->dscp;
	*(__u32 *)n->in.isn = *(__u32 *)n->out.isn = b->isn;
	n->in.slot = n->out.slot = b->slot;
	PORT(n->in.lport) = PORT(n->in.alt_port) = PORT(n->out.alt_port) = PORT(n->out.lport) = b->lport;
	ADDR(n->out.peer) = b->peer;
	if (b->state != STATE_CONNECTING)
		ADDR(n->in.peer) = b->peer;
	*(__u64 *)n->in.birth = *(__u64 *)n->out.birth = *(__u64 *)n->out.newest = id;
	*(__u64 *)n->out.socket = b->socket = id;
	if (b->role == ROLE_CLIENT)
		ADDR(n->out.stable) = (struct addr){ b->locator, id };
	n->out.owner = b->owner;
	if (b->state == STATE_HALF_OPEN || b->spare) {
		if (bpf_map_update_elem(&ingress_half, &id, &n->in, BPF_NOEXIST))
			return -1;
		return bpf_map_update_elem(&egress_half, key, &n->out, BPF_ANY) ? -1 : 0;
	}
	if (bpf_map_update_elem(&ingress_flows, &id, &n->in, BPF_NOEXIST))
		return -1;
	if (bpf_map_update_elem(&egress_flows, key, &n->out, BPF_ANY)) {
		bpf_map_delete_elem(&ingress_flows, &id);
		return -1;
	}
	take_note(key, b->role, 1);
	return 0;
}

/*
 * erase takes all socketIDs of a flow away. A global function, so that the verifier goes through the loop once; those return
 * a number, and get one in place of the flow's record.
 */
__noinline int erase(__u64 newest, __u64 birth)
{
	__u64 id = newest;

	for (int i = 0; i < MAX_ALIASES && id; i++) {
		struct ingress_flow *in = bpf_map_lookup_elem(&ingress_flows, &id);
		__u64 gone = id;

		if (!in || *(__u64 *)in->birth != birth)
			return 0;
		id = *(__u64 *)in->older;
		bpf_map_delete_elem(&ingress_flows, &gone);
	}
	return 0;
}

/* forget ends a flow whose tuple has come back as another one. */
static __always_inline void forget(struct flow_key *key, struct egress_flow *f)
{
	__u32 role = f->role;

	erase(*(__u64 *)f->newest, *(__u64 *)f->birth);
	if (!bpf_map_delete_elem(&egress_flows, key))
		take_note(key, role, -1);
}

/*
 * enter moves a server's flow out of the LRU: once the client has spoken, or when it is steered. Where there is no room
 * the packet that asks for it is dropped: a connection is not established until it is where no flood evicts it. A flow in
 * the LRU has one socketID.
 */
static __noinline int enter(struct flow_key *key, struct egress_flow *waiting, struct newborn *n, __u32 state)
{
	__u64 id = *(__u64 *)waiting->socket;
	struct ingress_flow *half = bpf_map_lookup_elem(&ingress_half, &id);

	if (!half)
		return -1;
	n->in = *half;
	n->out = *waiting;
	if (!has_room(&n->in.key, n->out.role)) {
		count(HOST_PEER_FULL);
		return -1;
	}
	n->in.state = n->out.state = state;
	if (bpf_map_update_elem(&ingress_flows, &id, &n->in, BPF_ANY)) {
		count(HOST_FULL);
		return -1;
	}
	if (bpf_map_update_elem(&egress_flows, &n->in.key, &n->out, BPF_ANY)) {
		bpf_map_delete_elem(&ingress_flows, &id);
		count(HOST_FULL);
		return -1;
	}
	take_note(&n->in.key, n->out.role, 1);
	bpf_map_delete_elem(&egress_half, &n->in.key);
	bpf_map_delete_elem(&ingress_half, &id);
	return 0;
}

/* become changes the state of those socketIDs of a flow that are in another one. */
static __noinline void become(const struct egress_flow *out, __u32 from, __u32 to)
{
	__u64 id = *(__u64 *)out->newest;

	for (int i = 0; i < MAX_ALIASES && id; i++) {
		struct ingress_flow *in = bpf_map_lookup_elem(&ingress_flows, &id);

		if (!in)
			return;
		if (in->state == from)
			in->state = to;
		id = *(__u64 *)in->older;
	}
}

/* spoken: the client of a half-open flow has, under any of the flow's socketIDs. -1: there is no room for it. */
static __noinline int spoken(struct flow_key *key, __u64 birth)
{
	struct egress_flow *out = bpf_map_lookup_elem(&egress_half, key);
	__u32 zero = 0;
	struct newborn *n;

	if (out && *(__u64 *)out->birth == birth) {
		n = bpf_map_lookup_elem(&newborns, &zero);
		return n ? enter(key, out, n, STATE_BOUND) : -1;
	}
	out = bpf_map_lookup_elem(&egress_flows, key);
	if (!out || *(__u64 *)out->birth != birth)
		return 0;
	out->state = STATE_BOUND;
	become(out, STATE_HALF_OPEN, STATE_BOUND);
	return 0;
}

/* ended notes a FIN or RST that arrived, under any socketID, where Sweep looks: once per flow. */
static __noinline void ended(struct flow_key *key, __u64 birth, __u8 bits)
{
	struct egress_flow *out = bpf_map_lookup_elem(&egress_flows, key);

	if (!out)
		out = bpf_map_lookup_elem(&egress_half, key);
	if (out && *(__u64 *)out->birth == birth)
		out->end |= bits;
}

/* A port that was silent for so long belongs to the socket that speaks from it now. */
#define PORT_REUSE_NS 5000000000ULL

/*
 * orphaned: a datagram flow whose socket is gone, and whose port another one has. Sockets that share a port take
 * turns on it, so a change of hands alone does not tell.
 */
static __always_inline int orphaned(struct __sk_buff *skb, const struct egress_flow *f)
{
	__u64 owner;

	if (!f->owner || bpf_ktime_get_coarse_ns() - f->seen < PORT_REUSE_NS)
		return 0;
	owner = bpf_get_socket_cookie(skb);
	return owner && owner != f->owner;
}

/* admitted is one of enum admission, 0: the triple is not registered. */
static __always_inline __u32 admitted(__u64 suffix, __u8 proto, __u16 port)
{
	struct instance_key k __attribute__((aligned(8))) = { .proto = proto };
	__u32 *how;

	*(__u64 *)k.suffix = suffix;
	PORT(k.port) = port;
	how = bpf_map_lookup_elem(&instances, &k);
	return how ? *how : 0;
}

#endif
