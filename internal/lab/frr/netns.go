package frr

import (
	"fmt"
	"net"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// Indexes finds the numbers of interfaces in the namespace at path netns: positions in names, by number.
func Indexes(netns string, names []string) (at map[int]int, err error) {
	at = map[int]int{}
	err = nsenter.DoAt(netns, func() error {
		for i, name := range names {
			one, err := net.InterfaceByName(name)
			if err != nil {
				return fmt.Errorf("interface %s in %s: %w", name, netns, err)
			}
			at[one.Index] = i
		}
		return nil
	})
	return at, err
}
