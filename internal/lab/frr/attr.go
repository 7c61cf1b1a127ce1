package frr

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Netlink writes numbers in the machine's own byte order; zebra runs on this machine.
var native = binary.NativeEndian

// The upper two bits of an attribute's type are flags (include/uapi/linux/netlink.h).
const attrType = 1<<14 - 1

// attrs calls f for each attribute in b: 2 bytes of length, which counts itself, 2 bytes of type, the value,
// padding to 4.
func attrs(b []byte, f func(typ uint16, value []byte) error) error {
	for len(b) >= 4 {
		size := int(native.Uint16(b))
		if size < 4 || size > len(b) {
			return fmt.Errorf("attribute of %d bytes where %d are left", size, len(b))
		}
		if err := f(native.Uint16(b[2:])&attrType, b[4:size]); err != nil {
			return err
		}
		b = b[min(align(size), len(b)):]
	}
	if len(b) != 0 {
		return fmt.Errorf("%d bytes after the last attribute", len(b))
	}
	return nil
}

func align(n int) int { return (n + 3) &^ 3 }

func number(value []byte) (uint32, error) {
	if len(value) != 4 {
		return 0, fmt.Errorf("number of %d bytes, want 4", len(value))
	}
	return native.Uint32(value), nil
}

func address(value []byte) (netip.Addr, error) {
	a, ok := netip.AddrFromSlice(value)
	if !ok {
		return a, fmt.Errorf("address of %d bytes, want 4 or 16", len(value))
	}
	return a, nil
}

// viaAddress is the value of RTA_VIA: 2 bytes of family, then the address.
func viaAddress(value []byte) (netip.Addr, error) {
	if len(value) < 2 {
		return netip.Addr{}, fmt.Errorf("gateway of another family has %d bytes, want 6 or 18", len(value))
	}
	return address(value[2:])
}
