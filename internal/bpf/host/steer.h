/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * steer.h: what the daemon decides about flows, docs/protocol.md §6, done to the entries in place: the programs
 * write in them meanwhile.
 */
#ifndef SCAFFOLD_HOST_STEER_H
#define SCAFFOLD_HOST_STEER_H

#include "ports.h"

#define ENOENT 2
#define EBUSY 16
#define EEXIST 17
#define EINVAL 22
#define ENOSPC 28
#define EALREADY 114
#define ESTALE 116

/* entry_of finds one of the flow's socketIDs. */
static __always_inline struct ingress_flow *entry_of(const struct egress_flow *out, __u64 id)
{
	struct ingress_flow *in = bpf_map_lookup_elem(&ingress_flows, &id);

	return in && *(__u64 *)in->birth == *(__u64 *)out->birth ? in : 0;
}

static __always_inline void retire(__u64 id)
{
	__u64 now = bpf_ktime_get_coarse_ns();

	bpf_map_delete_elem(&ingress_flows, &id);
	bpf_map_update_elem(&former_ids, &id, &now, BPF_ANY);
}

/* make_room gives up the oldest of a flow's socketIDs when it has as many as it can have. */
static __noinline int make_room(struct egress_flow *out)
{
	__u64 id = *(__u64 *)out->newest, oldest = 0;
	struct ingress_flow *in = 0, *newer = 0;
	int n = 0;

	for (; n < MAX_ALIASES && id; n++) {
		newer = in;
		in = entry_of(out, id);
		if (!in)
			return 0;
		oldest = id;
		id = *(__u64 *)in->older;
	}
	if (n < MAX_ALIASES)
		return 0;
	if (!newer || oldest == *(__u64 *)out->socket)
		return -ENOSPC;
	*(__u64 *)newer->older = 0;
	retire(oldest);
	return 0;
}

/* accept_as adds a socketID to the flow, or sets the peer of one that it has. */
static __noinline int accept_as(struct egress_flow *out, const struct step *s, __u32 state)
{
	__u64 id = *(__u64 *)s->socket;
	struct ingress_flow *in = entry_of(out, id);
	struct addr peer = ADDR(s->peer);
	__u32 zero = 0;
	struct newborn *n;

	if (in) {
		if ((peer.hi || peer.lo) && in->state != STATE_BLOCKED)
			ADDR(in->peer) = peer;
		return 0;
	}
	n = bpf_map_lookup_elem(&alias, &zero);
	if (!n || !(id & SOCKET_BIT))
		return -EINVAL;
	if (bpf_map_lookup_elem(&ingress_flows, &id))
		return -EEXIST;
	if (make_room(out))
		return -ENOSPC;
	in = &n->in;
	__builtin_memset(in, 0, sizeof(*in));
	in->key = s->key;
	if (state != STATE_BLOCKED)
		ADDR(in->peer) = peer;
	in->seen = bpf_ktime_get_coarse_ns();
	in->state = state;
	*(__u32 *)in->isn = *(__u32 *)out->isn;
	PORT(in->lport) = PORT(out->lport);
	PORT(in->alt_port) = PORT(out->alt_port);
	in->role = out->role;
	in->datagrams = out->datagrams;
	in->slot = s->slot;
	in->watch = out->watch;
	*(__u64 *)in->older = *(__u64 *)out->newest;
	*(__u64 *)in->birth = *(__u64 *)out->birth;
	if (bpf_map_update_elem(&ingress_flows, &id, in, BPF_NOEXIST))
		return -ENOSPC;
	*(__u64 *)out->newest = id;
	return 0;
}

/* leave_as makes the flow's packets leave under a socketID that it has. */
static __always_inline void leave_as(struct egress_flow *out, const struct step *s)
{
	*(__u64 *)out->socket = *(__u64 *)s->socket;
	if (s->slot < MAX_SLOTS)
		out->slot = s->slot;
}

static __noinline int bind_as(struct egress_flow *out, const struct step *s)
{
	struct ingress_flow *in;
	int err = 0;

	if (out->slot >= MAX_SLOTS && s->slot >= MAX_SLOTS)
		return -EINVAL;
	if (!entry_of(out, *(__u64 *)s->socket))
		err = accept_as(out, s, STATE_BOUND);
	if (err)
		return err;
	in = entry_of(out, *(__u64 *)out->newest);
	if (!in)
		return -ENOENT;
	ADDR(in->peer) = ADDR(s->peer);
	if (out->state == STATE_BLOCKED)
		in->watch |= WATCH_HEAR;
	if (in->state != STATE_HALF_OPEN)
		in->state = STATE_BOUND;
	ADDR(out->peer) = ADDR(s->peer);
	leave_as(out, s);
	if (out->state != STATE_HALF_OPEN)
		out->state = STATE_BOUND;
	become(out, STATE_CONNECTING, STATE_LOST);
	return 0;
}

/* retry_as: an answer on another CPU either came before, or finds the new attempt. */
static __noinline int retry_as(struct egress_flow *out, const struct step *s)
{
	int err;

	if (out->role != ROLE_CLIENT)
		return -EINVAL;
	if (__sync_val_compare_and_swap(&out->state, STATE_CONNECTING, STATE_BINDING) != STATE_CONNECTING)
		return -EALREADY;
	err = accept_as(out, s, STATE_CONNECTING);
	if (!err) {
		leave_as(out, s);
		out->retried = 1;
	}
	out->state = STATE_CONNECTING;
	return err;
}

static __noinline int block(struct egress_flow *out)
{
	__u64 id = *(__u64 *)out->newest;

	out->slot = NO_SLOT;
	out->state = STATE_BLOCKED;
	for (int i = 0; i < MAX_ALIASES && id; i++) {
		struct ingress_flow *in = entry_of(out, id);

		if (!in)
			break;
		in->state = STATE_BLOCKED;
		ADDR(in->peer) = (struct addr){};
		id = *(__u64 *)in->older;
	}
	return 0;
}

static __noinline int unbind(struct egress_flow *out, const struct step *s)
{
	__u64 before = *(__u64 *)out->newest, id = *(__u64 *)s->socket;
	int err;

	if (out->role != ROLE_CLIENT || out->proto == PROTO_TCP || (out->slot >= MAX_SLOTS && s->slot >= MAX_SLOTS))
		return -EINVAL;
	if (bpf_map_lookup_elem(&ingress_flows, &id))
		return -EEXIST;
	*(__u64 *)out->newest = 0;
	err = accept_as(out, s, STATE_CONNECTING);
	if (err) {
		*(__u64 *)out->newest = before;
		return err;
	}
	for (int i = 0; i < MAX_ALIASES && before; i++) {
		struct ingress_flow *in = entry_of(out, before);
		__u64 gone = before;

		if (!in)
			break;
		before = *(__u64 *)in->older;
		retire(gone);
	}
	forget_answers(&s->key, out);
	leave_as(out, s);
	ADDR(out->peer) = ADDR(s->key.remote);
	out->retried = 1;
	out->state = STATE_CONNECTING;
	return 0;
}

/* give_up ends one socketID under which the flow does not leave. */
static __noinline int give_up(struct egress_flow *out, __u64 id)
{
	struct ingress_flow *in = entry_of(out, id), *newer;
	__u64 at = *(__u64 *)out->newest;

	if (!in)
		return 0;
	if (id == *(__u64 *)out->socket)
		return -EBUSY;
	if (at == id) {
		*(__u64 *)out->newest = *(__u64 *)in->older;
		retire(id);
		return 0;
	}
	for (int i = 0; i < MAX_ALIASES && at; i++) {
		newer = entry_of(out, at);
		if (!newer)
			return -ENOENT;
		at = *(__u64 *)newer->older;
		if (at == id) {
			*(__u64 *)newer->older = *(__u64 *)in->older;
			retire(id);
			return 0;
		}
	}
	return -ENOENT;
}

/* steered finds the flow, and takes it out of the LRU: a flood must not evict what the daemon steers. */
static __noinline struct egress_flow *steered(struct step *s)
{
	struct egress_flow *out = bpf_map_lookup_elem(&egress_flows, &s->key);
	__u32 zero = 0;
	struct newborn *n = bpf_map_lookup_elem(&alias, &zero);

	if (out || !n)
		return out;
	out = bpf_map_lookup_elem(&egress_half, &s->key);
	if (!out || enter(&s->key, out, n, out->state))
		return 0;
	return bpf_map_lookup_elem(&egress_flows, &s->key);
}

static __always_inline int apply(struct step *s)
{
	struct egress_flow *out = steered(s);

	if (!out)
		return s->verb == VERB_FORGET || s->verb == VERB_DROP ? 0 : -ENOENT;
	if (*(__u64 *)s->birth && *(__u64 *)s->birth != *(__u64 *)out->birth)
		return -ESTALE;
	switch (s->verb) {
	case VERB_ACCEPT:
		return accept_as(out, s, out->state == STATE_BINDING ? STATE_BOUND : out->state);
	case VERB_BIND:
		return bind_as(out, s);
	case VERB_RETRY:
		return retry_as(out, s);
	case VERB_BLOCK:
		return block(out);
	case VERB_UNBIND:
		return unbind(out, s);
	case VERB_FORGET:
		forget(&s->key, out);
		return 0;
	case VERB_DROP:
		return give_up(out, *(__u64 *)s->socket);
	}
	return -EINVAL;
}

/* steer_one is a global function: verified once, however many steps there are. */
__noinline int steer_one(__u32 at)
{
	struct step *s = bpf_map_lookup_elem(&steps, &at);

	if (!s)
		return 0;
	s->result = apply(s);
	return s->result;
}

#endif
