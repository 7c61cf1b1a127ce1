package frame

import (
	"fmt"
	"slices"
	"strings"
)

// A Protection is what becomes of frames on data connections. Both ends of a trunk have the same.
type Protection uint8

// The protections that agents may agree on.
const (
	Sealed        Protection = 1 // by AES-GCM: 16 bytes follow the payload, the header is authenticated
	Authenticated Protection = 2 // by a tag of 16 bytes; the payload can be read
	None          Protection = 3 // CRC32C alone, 4 bytes: mistakes are found, changes are not; open networks only
)

// MaxOverhead is the most that any protection adds to a frame, bytes.
const MaxOverhead = 16

var protections = []string{Sealed: "seal", Authenticated: "auth", None: "none"}

// String is the word of the flag --protect.
func (p Protection) String() string {
	if !p.known() {
		return fmt.Sprintf("protection %d", uint8(p))
	}
	return protections[p]
}

func (p Protection) known() bool { return p >= Sealed && p <= None }

// ParseProtection reads a word of --protect.
func ParseProtection(s string) (Protection, error) {
	if i := slices.Index(protections, s); i > 0 {
		return Protection(i), nil
	}
	return 0, fmt.Errorf("%.40q is no protection: choose %s", s, strings.Join(protections[1:], ", "))
}

// Overhead is how many bytes follow a payload, and are not counted in its header's length.
func (p Protection) Overhead() int {
	if p == None {
		return 4
	}
	return MaxOverhead
}
