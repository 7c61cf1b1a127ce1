package features

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// adoption is the feature's name.
const adoption = "adopting a connection (bpf_sk_assign_tcp_reqsk)"

// Adoption says why connections of other instances cannot be continued here, nil where they can. It belongs
// to the network namespace of the calling thread.
func Adoption() error {
	if err := pretended(adoption); err != nil {
		return err
	}
	return adopt()
}

func adopt() error { return errors.Join(callable("bpf_sk_assign_tcp_reqsk"), cookies()) }

// cookies looks whether the kernel takes a handshake that it does not remember: what is adopted comes in the
// same way as a SYN cookie.
func cookies() error {
	const path = "/proc/sys/net/ipv4/tcp_syncookies"
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("look whether SYN cookies are on: %w", err)
	}
	if strings.TrimSpace(string(text)) == "0" {
		return errors.New("net.ipv4.tcp_syncookies is 0: set it to 1")
	}
	return nil
}
