/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lane.h: which lane a SYN is in: that of the longest server prefix, then the longest client prefix, then port and slot. */
#ifndef SCAFFOLD_DIVERT_LANE_H
#define SCAFFOLD_DIVERT_LANE_H

#include "maps.h"
#include "segment.h"

#define SERVER_BITS 192 /* generation, family, address */
#define CLIENT_BITS 160 /* class, address */

static __always_inline const struct rules *rules_of(const struct segment *s)
{
	struct server_key server = { .prefixlen = SERVER_BITS, .family = s->family };
	struct client_key client = { .prefixlen = CLIENT_BITS };
	__u32 zero = 0, *now = bpf_map_lookup_elem(&generation, &zero), *class;

	if (!now)
		return NULL;
	server.generation = *now;
	__builtin_memcpy(server.addr, s->ends.local, 16);
	class = bpf_map_lookup_elem(&servers, &server);
	if (!class)
		return NULL;
	client.class = *class;
	__builtin_memcpy(client.addr, s->ends.remote, 16);
	return bpf_map_lookup_elem(&clients, &client);
}

/* find_lane says whether there is one. */
static __always_inline int find_lane(const struct segment *s, __u64 *lane)
{
	__u16 server = s->ends.local_port[0] << 8 | s->ends.local_port[1];
	__u16 client = s->ends.remote_port[0] << 8 | s->ends.remote_port[1];
	const struct rules *all = rules_of(s);

	if (!all)
		return 0;
	for (__u32 i = 0; i < MAX_RULES; i++) {
		if (i >= all->count)
			break;
		const struct rule *r = &all->rule[i];

		if ((r->port && r->port != server) || (client & r->mask) != r->slot)
			continue;
		*lane = r->lane;
		return 1;
	}
	return 0;
}

#endif
