package emud

import (
	"bufio"
	"strings"
	"testing"
)

func TestDropsAreReadFromTheTableOfInterfaces(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1000      10    0    1    0     0          0         0     1000      10    0    0    0     0       0          0
 to-r1:5000      50    0    2    0     0          0         0     7000      70    0    42    0     0       0          0
`
	drops, err := parseDrops(bufio.NewScanner(strings.NewReader(text)))
	if err != nil || len(drops) != 2 || drops["to-r1"] != 42 || drops["lo"] != 0 {
		t.Errorf("%v, %v", drops, err)
	}
}
