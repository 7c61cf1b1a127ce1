package boost

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// route has a node send what is for a prefix the way that it has to an address.
func (b *rig) route(ctx context.Context, node, prefix, like string) error {
	told, err := b.ip(ctx, node, "route", "get", like)
	if err == nil {
		_, err = b.ip(ctx, node, append([]string{"route", "replace", prefix}, wayOf(told, like)...)...)
	}
	return err
}

// wayOf are the words of a route by the way that `ip route get` has told: up to its interface. An address on the link is its
// own way.
func wayOf(told, at string) []string {
	words := strings.Fields(told)
	dev := slices.Index(words, "dev")
	if dev < 1 || dev+1 >= len(words) {
		return nil // ip says what it misses
	}
	if dev == 1 {
		return []string{"via", at, "dev", words[2]}
	}
	return words[1 : dev+2] // behind the address
}

// ip has a node's ip do something, and returns what it says.
func (b *rig) ip(ctx context.Context, node string, words ...string) (string, error) {
	out, err := b.lab.Output(ctx, node, append([]string{"ip"}, words...)...)
	if err != nil {
		err = fmt.Errorf("ip %s in %s: %w: %s", strings.Join(words, " "), node, err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}
