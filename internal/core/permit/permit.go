package permit

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"scaffold.dev/scaffold/wire"
)

// MaxFile bounds a file of permits or a key.
const MaxFile = 64 << 10

// ErrNoPermit is of a text without a permit.
var ErrNoPermit = errors.New("no permit: want the output of `scaffold service delegate`")

// Format is a permit as a file. service and host are for people alone.
func Format(p wire.Permit, service, host string) []byte {
	headers := map[string]string{"Not-After": time.Unix(p.NotAfter, 0).UTC().Format(time.RFC3339)}
	for key, value := range map[string]string{"Service": service, "Host": host} {
		if value != "" && !strings.ContainsAny(value, "\r\n:") {
			headers[key] = value
		}
	}
	return pem.EncodeToMemory(&pem.Block{Type: permitBlock, Headers: headers, Bytes: p.Append(nil)})
}

// Parse reads all permits of a file; it does not check them.
func Parse(text []byte) ([]wire.Permit, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("%d bytes: a file of permits has at most %d", len(text), MaxFile)
	}
	var all []wire.Permit
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if text = rest; block.Type != permitBlock {
			continue
		}
		p, err := wire.ParsePermit(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, ErrNoPermit
	}
	return all, nil
}
