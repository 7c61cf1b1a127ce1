package emubench

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/bench/place"
)

// kernelKind is a chain of namespaces with veth pairs between them, in which the kernel forwards.
const kernelKind = "kernel"

// newKernelChain makes a chain of n router namespaces.
func newKernelChain(ctx context.Context, n int) (*Chain, error) {
	c := &Chain{Kind: kernelKind, Routers: n}
	return c.made(c.makeKernel(ctx))
}

func (c *Chain) makeKernel(ctx context.Context) (err error) {
	nodes := make([]*place.Place, c.Routers+2)
	for i := range nodes {
		if nodes[i], err = place.New(); err != nil {
			return err
		}
		c.later(nodes[i].Close)
	}
	c.from, c.to = nodes[0], nodes[len(nodes)-1]
	for i, node := range nodes[:len(nodes)-1] {
		if err := node.IP(ctx, nodes[i+1], "link add right type veth peer name left netns %far"); err != nil {
			return err
		}
	}
	for i, node := range nodes {
		if i > 0 && i <= c.Routers {
			if err := node.Set(map[string]string{"ipv6/conf/all/forwarding": "1"}); err != nil {
				return err
			}
		}
		if err := node.IP(ctx, nil, told(i, c.Routers)...); err != nil {
			return fmt.Errorf("node %d of a chain of kernel routers: %w", i, err)
		}
	}
	return c.ready(ctx)
}
