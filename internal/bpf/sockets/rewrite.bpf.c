//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Turns a wildcard IPv6 bind into a bind of one service's address, for the programs of one cgroup. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define AF_INET6 10

const volatile __u32 to[4] = {}; /* network order */

SEC("cgroup/bind6")
int rewrite_bind6(struct bpf_sock_addr *ctx)
{
	if (ctx->user_family != AF_INET6 || !ctx->user_port)
		return 1;
	/* Word by word, with barriers: the verifier takes the context at constant offsets only. */
	if (ctx->user_ip6[0])
		return 1;
	barrier();
	if (ctx->user_ip6[1])
		return 1;
	barrier();
	if (ctx->user_ip6[2])
		return 1;
	barrier();
	if (ctx->user_ip6[3])
		return 1;
	barrier();
	ctx->user_ip6[0] = to[0];
	barrier();
	ctx->user_ip6[1] = to[1];
	barrier();
	ctx->user_ip6[2] = to[2];
	barrier();
	ctx->user_ip6[3] = to[3];
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
