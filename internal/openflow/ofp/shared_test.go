package ofp

import (
	"bytes"
	"sync"
	"testing"
)

// What is written is only read: two may write the same flow at a time, and a third compare it. The race detector says
// whether they do.
func TestSeveralWriteTheSameMessage(t *testing.T) {
	for _, m := range sampleMessages() {
		var both [2][]byte
		var all sync.WaitGroup
		for i := range both {
			all.Go(func() {
				var err error
				if both[i], err = m.Append(nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if !bytes.Equal(both[0], both[1]) {
			t.Errorf("%v is written as %x and as %x", m, both[0], both[1])
		}
	}
}
