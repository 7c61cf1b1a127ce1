package etcd

import (
	"fmt"
	"strings"

	"scaffold.dev/scaffold/internal/api"
)

// Check says what is wrong with how endpoints of an etcd are written.
func Check(endpoints []string) error {
	for _, e := range endpoints {
		if strings.HasPrefix(e, "unix") { // which it has in forms of its own
			continue
		}
		if _, err := api.ParseEndpointAndPort(e); err != nil {
			return fmt.Errorf("--etcd: %w", err)
		}
	}
	return nil
}
