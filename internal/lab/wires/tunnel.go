package wires

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/lab/plan"
)

// vxlanPort is IANA's, RFC 7348 §5.
const vxlanPort = 4789

// tunnel makes one end of a tunnel.
func (w *Wirer) tunnel(c *plan.Link, i int) error {
	ns, dev := c.Nodes[i].Netns, c.Ports[i].Dev
	e, err := w.at(ns)
	if err != nil {
		return err
	}
	link := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: dev, MTU: c.MTU},
		VxlanId:   c.Tunnel.VNI, SrcAddr: c.Tunnel.Outer[i].AsSlice(), Group: c.Tunnel.Outer[1-i].AsSlice(), Port: vxlanPort,
	}
	if err := e.link.LinkAdd(link); err != nil {
		return fmt.Errorf("%s/%s: tunnel to %v: %w", ns, dev, c.Tunnel.Outer[1-i], err)
	}
	return w.up(ns, dev)
}

// translate makes a node of the underlay a NAT: what comes from hosts leaves under its own address, and nothing
// comes to them that they did not ask for.
func translate(ctx context.Context, n *plan.Node) error {
	if !n.NAT {
		return nil
	}
	var inside []string
	for _, p := range n.Ports {
		if p.Far.Kind.IsHost() {
			inside = append(inside, fmt.Sprintf("%q", p.Dev))
		}
	}
	if len(inside) == 0 {
		return fmt.Errorf("%s: a NAT without hosts behind it", n.Name)
	}
	set := "{ " + strings.Join(inside, ", ") + " }"
	rules := "table ip nat {\n chain post {\n type nat hook postrouting priority 100\n oifname != " + set + " masquerade\n }\n" +
		" chain pass {\n type filter hook forward priority 0; policy drop\n ct state established,related accept\n iifname " + set + " accept\n }\n}\n"
	return In(n.Netns, func() error {
		cmd := exec.CommandContext(ctx, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: a NAT needs nft: %w: %s", n.Name, err, bytes.TrimSpace(out))
		}
		return nil
	})
}
