package routing

import (
	"fmt"
	"os"
)

const nonlocalBind = "/proc/sys/net/ipv6/ip_nonlocal_bind"

// AllowNonlocalBind lets programs bind service addresses, which are on no interface, and returns what
// the switch was before.
func AllowNonlocalBind() (before string, err error) {
	b, err := os.ReadFile(nonlocalBind)
	if err != nil {
		return "", fmt.Errorf("IPv6 is off in this network namespace: %w", err)
	}
	if err := os.WriteFile(nonlocalBind, []byte("1"), 0); err != nil {
		return "", fmt.Errorf("let programs bind service addresses: %w", err)
	}
	return string(b[:1]), nil
}

// RestoreNonlocalBind puts the switch back as it was.
func RestoreNonlocalBind(before string) {
	os.WriteFile(nonlocalBind, []byte(before), 0) //nolint:errcheck // it was written before; a guest may be gone
}
