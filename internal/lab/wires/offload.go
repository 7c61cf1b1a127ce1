package wires

import (
	"fmt"

	"github.com/safchain/ethtool"
)

// cutDatagrams has the kernel cut large UDP sends (UDP_SEGMENT, as QUIC uses it) before they leave by the
// interface. Open vSwitch takes large TCP segments whole from a veth pair; large datagrams it drops.
func cutDatagrams(ns, dev string) error {
	return In(ns, func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return fmt.Errorf("%s/%s: offloads: %w", ns, dev, err)
		}
		defer e.Close()
		if err := e.Change(dev, map[string]bool{"tx-udp-segmentation": false}); err != nil {
			return fmt.Errorf("%s/%s: switch tx-udp-segmentation off: %w", ns, dev, err)
		}
		return nil
	})
}
