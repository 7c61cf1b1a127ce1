//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Turns a wildcard IPv6 bind into a bind of one service's address, for the programs of one cgroup. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define AF_INET6 10

const volatile __u8 to[16] = {};

SEC("cgroup/bind6")
int rewrite_bind6(struct bpf_sock_addr *ctx)
{
	__u32 addr[4];

	if (ctx->user_family != AF_INET6 || !ctx->user_port)
		return 1;
	if (ctx->user_ip6[0] | ctx->user_ip6[1] | ctx->user_ip6[2] | ctx->user_ip6[3])
		return 1;
	__builtin_memcpy(addr, (const void *)to, sizeof(addr));
	ctx->user_ip6[0] = addr[0];
	ctx->user_ip6[1] = addr[1];
	ctx->user_ip6[2] = addr[2];
	ctx->user_ip6[3] = addr[3];
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
