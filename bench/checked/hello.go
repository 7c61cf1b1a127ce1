package checked

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// A Rate is bytes per second; 0 sends nothing.
type Rate uint64

// Bulk sends as fast as the network takes it.
const Bulk Rate = 1 << 62

// ParseRate reads "0", "bulk" and a number of bytes per second such as "16000000".
func ParseRate(text string) (Rate, error) {
	if text == "bulk" {
		return Bulk, nil
	}
	n, err := strconv.ParseUint(text, 10, 40)
	if err != nil {
		return 0, fmt.Errorf("rate %q: want bytes per second, or bulk", text)
	}
	return Rate(n), nil
}

// String writes it as ParseRate reads it.
func (r Rate) String() string {
	if r == Bulk {
		return "bulk"
	}
	return strconv.FormatUint(uint64(r), 10)
}

// A Hello is how a stream begins: the client tells the server what follows in both directions.
type Hello struct {
	Flow     uint64 // number of the flow, of the client's choice
	Seed     uint64
	Up, Down Rate
	Step     time.Duration // what is due is sent every so often
}

const (
	helloLen   = 48
	helloMagic = 0x5ca77010de7ec7ed
)

// Append writes the hello, 48 bytes.
func (h Hello) Append(b []byte) []byte {
	for _, v := range [...]uint64{helloMagic, h.Flow, h.Seed, uint64(h.Up), uint64(h.Down), uint64(h.Step)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// ParseHello reads a hello.
func ParseHello(b []byte) (h Hello, err error) {
	if len(b) < helloLen || binary.BigEndian.Uint64(b) != helloMagic {
		return h, fmt.Errorf("checked: a stream began with %x", b)
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	h = Hello{Flow: word(1), Seed: word(2), Up: Rate(word(3)), Down: Rate(word(4)), Step: time.Duration(word(5))}
	if h.Step < 100*time.Microsecond || h.Step > time.Minute {
		return h, fmt.Errorf("checked: flow %d sends every %v", h.Flow, h.Step)
	}
	return h, nil
}
