/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * room.h: who may have how much of the table, docs/protocol.md §3.6. A datagram with a made-up address costs its sender
 * nothing and the server an entry; a connection has shaken hands. Counted are the flows that peers begin, by the host
 * number of the address that they had first, which is in the key and never changes. Who ends a flow takes it off: the
 * programs here, and Go, which maps the counts into its memory and does so atomically, too.
 */
#ifndef SCAFFOLD_HOST_ROOM_H
#define SCAFFOLD_HOST_ROOM_H

#include "drop.h"
#include "maps.h"

/* Of the table: connections of one peer; datagram flows of one peer, of all peers, and with the host's own. */
#define PEER_CONNECTIONS (max_flows / 4 * 3)
#define PEER_DATAGRAMS (max_flows / 16)
#define ALL_DATAGRAMS (max_flows / 2)
#define OWN_DATAGRAMS (max_flows / 4 * 3)

static __always_inline __s64 *flows_of(__u32 who)
{
	return bpf_map_lookup_elem(&peers, &who);
}

static __always_inline __u32 host_number(const __u8 *addr)
{
	return addr[6] << 8 | addr[7];
}

/*
 * take_note counts a flow that was entered (1) or is gone (-1). Inlined: the chain of calls to make has no room for another
 * frame on Linux 6.1 (TestFramesFitTheOldestKernel).
 */
static __always_inline void take_note(const struct flow_key *key, __u32 role, __s64 by)
{
	__s64 *n;

	if (role == ROLE_SERVER && (n = flows_of(host_number(key->remote))))
		__sync_fetch_and_add(n, by);
	if (key->proto != PROTO_TCP && (n = flows_of(DATAGRAMS)))
		__sync_fetch_and_add(n, by);
}

/* has_room says whether another flow may be entered; a table that is full refuses by itself. */
static __noinline int has_room(const struct flow_key *key, __u32 role)
{
	__s64 *theirs = flows_of(host_number(key->remote)), *all = flows_of(DATAGRAMS);

	if (!theirs || !all)
		return 0;
	if (key->proto == PROTO_TCP)
		return role != ROLE_SERVER || *theirs < (__s64)PEER_CONNECTIONS;
	if (role != ROLE_SERVER)
		return *all < (__s64)OWN_DATAGRAMS;
	return *theirs < (__s64)PEER_DATAGRAMS && *all < (__s64)ALL_DATAGRAMS;
}

#endif
