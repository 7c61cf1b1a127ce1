package wg

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

// aloneMTU is what wireguard-go takes by itself.
const aloneMTU = 1420

// Alone is wireguard-go as it is, over its own TUN device: what our tunnels are measured beside.
type Alone struct {
	Key, Peer []byte // private; the other end's public
	Listen    uint16
	Endpoint  netip.AddrPort // of the other end
	Address   netip.Prefix   // of this end inside
}

// Run keeps it until ctx ends, and writes a line when it is up.
func (a Alone) Run(ctx context.Context, up io.Writer) error {
	t, err := tun.CreateTUN(deviceName, aloneMTU)
	if err != nil {
		return err
	}
	d := device.NewDevice(t, conn.NewDefaultBind(), &device.Logger{Verbosef: device.DiscardLogf, Errorf: device.DiscardLogf})
	defer d.Close()
	err = d.IpcSet(fmt.Sprintf("private_key=%x\nlisten_port=%d\npublic_key=%x\nendpoint=%v\nallowed_ip=%v\n", a.Key, a.Listen, a.Peer, a.Endpoint, a.Address.Masked()))
	if err == nil {
		err = d.Up()
	}
	if err != nil {
		return fmt.Errorf("wireguard-go: %w", err)
	}
	link, err := netlink.LinkByName(deviceName)
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err == nil {
		to, _ := netlink.ParseAddr(a.Address.String())
		to.Flags = unix.IFA_F_NODAD // nobody else is there
		err = netlink.AddrAdd(link, to)
	}
	if err != nil {
		return fmt.Errorf("wireguard-go's device: %w", err)
	}
	fmt.Fprintln(up, "up")
	<-ctx.Done()
	return nil
}
